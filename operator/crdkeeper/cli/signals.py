"""Ctrl-C and SIGTERM end a command cleanly: what is in progress can save its state."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class Signalled(Exception):
    """The command was told to stop by the signal `number`."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)

    @property
    def exit_code(self) -> int:
        """The exit code that shells expect: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.number


async def until_signal(work: Coroutine[Any, Any, _T]) -> _T:
    """Await the work; a signal cancels it, lets it clean up, and raises Signalled.

    Only the first signal does so: a second one ends the process as usual.
    """
    loop = asyncio.get_running_loop()
    received: list[int] = []
    task = loop.create_task(work)

    def stop(number: int) -> None:
        received.append(number)
        release()
        task.cancel()

    def release() -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop, each)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Signalled(received[0]) from None
        raise
    finally:
        release()
