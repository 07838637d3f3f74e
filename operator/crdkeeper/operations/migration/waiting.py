"""Waits for several things at once, and ends them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


async def first_of(task: asyncio.Future[None], *events: asyncio.Event, seconds: float) -> None:
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
async def in_turn(slots: asyncio.Semaphore, woken: asyncio.Event) -> AsyncIterator[bool]:
    """Have one of the slots until the end of the block; False, and none, if the event is set before that."""
    turn = asyncio.create_task(slots.acquire())
    waking = asyncio.create_task(woken.wait())
    try:
        await asyncio.wait({turn, waking}, return_when=asyncio.FIRST_COMPLETED)
        yield turn.done()
    finally:
        try:
            await end(turn, waking)
        finally:
            if not turn.cancelled():
                slots.release()
