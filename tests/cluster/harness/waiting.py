"""Waiting for what others do in their own time: looking again until a deadline, no hopeful sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")
POLL_SECONDS = 0.05
TIMEOUT_SECONDS = 30.0


async def eventually(
    look: Callable[[], Awaitable[_T | None]],
    *,
    seconds: float = TIMEOUT_SECONDS,
    otherwise: Callable[[], str] | None = None,
) -> _T:
    """What `look` returns, as soon as that is true; fails with what `otherwise` says if it takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := await look()):
        if time.monotonic() > deadline:
            raise AssertionError(otherwise() if otherwise else f"not so after {seconds:.0f} seconds")
        await asyncio.sleep(POLL_SECONDS)
    return found
