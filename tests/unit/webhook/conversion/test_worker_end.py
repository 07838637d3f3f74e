"""The end of a worker process is waited for, also by the next one who ends it."""

import asyncio
from asyncio.subprocess import Process
from typing import cast

from crdkeeper.webhook.conversion.worker import WorkerHandle
from crdkeeper.webhook.conversion.workerprocess import MEMORY_BYTES
from tests.unit.webhook.conversion.test_worker_limits import SERVED, at, review


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


async def test_one_that_was_killed_while_it_was_idle_costs_no_request() -> None:
    handle, body = WorkerHandle(), review(at("v1", {}), "v2")
    try:
        first = await handle.ask(SERVED, body, MEMORY_BYTES)
        assert handle.process is not None
        handle.process.kill()
        await handle.process.wait()
        assert await handle.ask(SERVED, body, MEMORY_BYTES) == first
    finally:
        await handle.end()
