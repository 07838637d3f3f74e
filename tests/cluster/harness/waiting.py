"""Waiting for asynchronous changes: polling until a deadline, never a hopeful sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")
POLL_SECONDS = 0.05
TIMEOUT_SECONDS = 120.0
"""It only ends a test that hangs: four times what a busy machine has needed."""


async def settled(look: Callable[[], float], *, seconds: float = 3.0) -> float:
    """A number, once it has not changed for that long."""

    async def same() -> bool:
        before = look()
        await asyncio.sleep(seconds)
        return look() == before

    await eventually(same)
    return look()


async def eventually(
    look: Callable[[], Awaitable[_T | None]],
    *,
    seconds: float = TIMEOUT_SECONDS,
    every: float = POLL_SECONDS,
    otherwise: Callable[[], str] | None = None,
) -> _T:
    """The result of `look` once it is true; fails with the text of `otherwise` if that takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := await look()):
        if time.monotonic() > deadline:
            raise AssertionError(otherwise() if otherwise else f"not so after {seconds:.0f} seconds")
        await asyncio.sleep(every)
    return found
