"""Runs the converter for as long as a test needs it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def working(run: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(run)
    try:
        yield
    finally:
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})
