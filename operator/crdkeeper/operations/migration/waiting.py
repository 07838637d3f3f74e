"""Waits for several things at once."""

import asyncio
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
