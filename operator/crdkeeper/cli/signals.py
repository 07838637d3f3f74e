"""Ctrl-C and SIGTERM end a command cleanly: what is in progress can save its state."""

import asyncio
import atexit
import os
import signal
import sys
import time
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

_T = TypeVar("_T")
SAME_SECONDS: Final = 1.0
"""A signal so soon after the first one is the same: `timeout` signals the process, and then its group."""
_SHOW_CURSOR: Final = b"\x1b[?25h"


class Signalled(Exception):
    """The command was told to stop by the signal `number`."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)

    @property
    def exit_code(self) -> int:
        """The exit code that shells expect: 130 for Ctrl-C, 143 for SIGTERM."""
        return _exit_code(self.number)


async def until_signal(work: Coroutine[Any, Any, _T]) -> _T:
    """Await the work; a signal cancels it, lets it clean up, and raises Signalled.

    Only the first signal does so, and the command is to end then: another one, unless it is the same, ends
    the process at once with the exit code of a Signalled.
    """
    loop = asyncio.get_running_loop()
    received: list[tuple[int, float]] = []
    task = loop.create_task(work)

    def stop(number: int, _: FrameType | None) -> None:
        if not received:
            received.append((number, time.monotonic()))
            loop.call_soon_threadsafe(task.cancel)
        elif time.monotonic() - received[0][1] >= SAME_SECONDS:
            _end_at_once(number)

    # Not by the loop, which may hang or be over at the next signal, and leaves a gap where it has a handler
    # no more: the signal would kill, or its exception show up anywhere.
    before = [(each, signal.signal(each, stop)) for each in (signal.SIGINT, signal.SIGTERM)]
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Signalled(received[0][0]) from None
        raise
    finally:
        if received:
            atexit.register(_ignore)
        else:
            for each, handler in before:
                signal.signal(each, handler)


def _ignore() -> None:
    # All is done. The interpreter gives its handlers up, and a signal would kill it, with another code.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)


def _end_at_once(number: int) -> NoReturn:
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR)  # a display of progress hides it
    os._exit(_exit_code(number))


def _exit_code(number: int) -> int:
    return 128 + number
