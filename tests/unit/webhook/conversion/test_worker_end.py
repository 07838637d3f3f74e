"""The end of a worker process is waited for, also by the next one who ends it."""

import asyncio
from asyncio.subprocess import Process
from typing import cast

from crdkeeper.webhook.conversion.worker import WorkerHandle


class Slow:
    """A process that takes its time to end."""

    stdout = None

    def __init__(self) -> None:
        self.returncode: int | None = None
        self.kills = 0
        self.ended = asyncio.Event()

    def kill(self) -> None:
        self.kills += 1

    async def wait(self) -> int:
        await self.ended.wait()
        self.returncode = -9
        return -9


async def test_after_a_cancellation_the_next_one_waits() -> None:
    slow = Slow()
    handle = WorkerHandle(process=cast(Process, slow))
    first = asyncio.create_task(handle.end())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(handle.end())
    await asyncio.sleep(0)
    assert not second.done()
    slow.ended.set()
    await second
    assert slow.returncode == -9
    assert handle.process is None
