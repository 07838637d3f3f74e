"""Tasks that must not end: the first that does ends their process, and says why.

A task that dies silently leaves a process that looks alive and does half of its work.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any


class TaskEnded(Exception):
    """A task that should run until cancelled has ended; its name, and how it ended."""


async def supervise(tasks: Mapping[str, Coroutine[Any, Any, object]], failed: Callable[[str], None]) -> None:
    """Run all of them until cancelled; when the first ends, report it to `failed` and end the others.

    Raises TaskEnded, caused by the task's own error.
    """
    running = {asyncio.create_task(work, name=name): name for name, work in tasks.items()}
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        first = done.pop()
        cause = None if first.cancelled() else first.exception()
        how = "it was cancelled" if first.cancelled() else "it returned" if cause is None else repr(cause)
        ended = TaskEnded(f"{running[first]}: {how}")
        failed(str(ended))
        raise ended from cause
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
