"""Waits for several things at once, and ends them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

_AGAIN_SECONDS = 600.0
"""After which who waits for a turn looks again unasked: a look may fail, and commands watch no CRDs."""


async def first_of(task: asyncio.Future[Any], *events: asyncio.Event, seconds: float) -> None:
    """Wait until the task is done or one of the events is set, at most so many seconds."""
    waits = [asyncio.create_task(each.wait()) for each in events]
    any_of: set[asyncio.Future[Any]] = {task, *waits}
    try:
        await asyncio.wait(any_of, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait until all have ended. What they raise is ignored.

    A cancellation meanwhile is raised afterwards. `gather` would pass it on, which cuts their last writes.
    """
    for each in tasks:
        each.cancel()
    cancelled: asyncio.CancelledError | None = None
    while any(not each.done() for each in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    for each in tasks:
        if not each.cancelled():
            each.exception()
    if cancelled is not None:
        raise cancelled


@asynccontextmanager
async def in_turn(
    slots: asyncio.Semaphore, woken: asyncio.Event, outdated: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bool]:
    """Have one of the slots until the end of the block; False, and none, if `outdated` before that.

    It is asked whenever the event is set, which does not cost the place in the queue: whoever is woken more
    often than others would else come after all of them. After a wait, it is asked once more in its turn.
    """
    turn, given_up = asyncio.create_task(slots.acquire()), False
    try:
        await asyncio.sleep(0)  # whoever need not wait has its slot now
        waits = not turn.done()
        while not turn.done() and not given_up:
            await first_of(turn, woken, seconds=_AGAIN_SECONDS)
            if not turn.done():
                woken.clear()
                given_up = await outdated()
        if not given_up and (waits or woken.is_set()):
            # What was decided may be hours old: nothing begins that would have to be stopped.
            woken.clear()
            given_up = await outdated()
        yield not given_up
    finally:
        try:
            await end(turn)
        finally:
            if not turn.cancelled():
                slots.release()
