"""Several workers share the memory for conversions: what needs more than a share gets all of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from crdkeeper.core.conversion.review import BadReview, Reply
from crdkeeper.webhook.conversion.worker import Busy, Worker, WorkerFailed, WorkerHandle, WorkerRules
from crdkeeper.webhook.conversion.workerprocess import MEMORY_BYTES
from crdkeeper.webhook.http.types import Body
from tests import virtualtime
from tests.unit.webhook.conversion.test_converting import SERVED
from tests.unit.webhook.conversion.test_worker_limits import SERVED as MAPS
from tests.unit.webhook.conversion.test_worker_limits import at, review
from tests.unit.webhook.conversion.working import working

HERE = "10.0.0.1"
SMALL, LARGE, ENDLESS, WRONG = b"small", b"large", b"endless", b"wrong"


class Handle(WorkerHandle):
    """Works until it is told to finish; fails at once with a share of the memory if that is not enough."""

    def __init__(self, pool: "Pool") -> None:
        super().__init__()
        self.pool = pool
        self.memory = 0
        """That its process may have."""

    async def ask(self, rules: WorkerRules, body: Body, memory: int) -> Reply:
        self.memory = memory
        self.pool.looked()
        self.pool.working.append((bytes(body), memory))
        try:
            if body == WRONG:
                raise BadReview("as told")
            if body == ENDLESS or (body == LARGE and memory < MEMORY_BYTES):
                raise EOFError
            await self.pool.finish.acquire()
            return Reply(bytes(body), 1)
        finally:
            self.pool.working.remove((bytes(body), memory))

    async def end(self) -> None:
        self.memory = 0


class Pool(Worker):
    def __init__(self, processes: int) -> None:
        super().__init__(processes)
        self.fakes = [Handle(self) for _ in self.handles]
        self.handles = list(self.fakes)
        self.working: list[tuple[bytes, int]] = []
        self.finish = asyncio.Semaphore(0)

    def looked(self) -> None:
        assert sum(each.memory for each in self.fakes) <= MEMORY_BYTES

    def ask(self, body: bytes) -> asyncio.Task[Reply]:
        return asyncio.create_task(self.convert(SERVED, body, HERE))


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    made = Pool(2)
    async with working(made.run()):
        yield made


async def settled(holds: Callable[[], bool]) -> None:
    """Everything here is one event loop's: it need not be waited for, only let run."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    pytest.fail("it never came to be")


@pytest.mark.parametrize(("processes", "workers"), [(1, 1), (2, 2), (4, 2), (64, 2)])
def test_there_are_no_more_workers_than_have_enough_memory(processes: int, workers: int) -> None:
    assert len(Worker(processes).handles) == workers


async def test_each_worker_has_its_share_of_the_memory(pool: Pool) -> None:
    asked = [pool.ask(SMALL) for _ in range(3)]
    await settled(lambda: pool.working == [(SMALL, MEMORY_BYTES // 2)] * 2)
    for _ in asked:
        pool.finish.release()
    await asyncio.gather(*asked)


async def test_what_needs_more_waits_for_the_others_and_then_works_alone(pool: Pool) -> None:
    first = pool.ask(SMALL)
    await settled(lambda: len(pool.working) == 1)
    large = pool.ask(LARGE)
    await settled(lambda: pool._alone.locked())
    last = pool.ask(SMALL)
    await asyncio.sleep(0)
    assert pool.working == [(SMALL, MEMORY_BYTES // 2)]
    pool.finish.release()
    await first
    await settled(lambda: pool.working == [(LARGE, MEMORY_BYTES)])
    pool.finish.release()
    assert (await large).content == LARGE
    pool.finish.release()
    await last


async def test_two_that_need_more_do_not_wait_for_each_other(pool: Pool) -> None:
    both = [pool.ask(LARGE), pool.ask(LARGE)]
    for _ in both:
        await settled(lambda: pool.working == [(LARGE, MEMORY_BYTES)])
        pool.finish.release()
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*both)


async def test_what_fails_with_all_memory_too_fails(pool: Pool) -> None:
    with pytest.raises(WorkerFailed):
        await pool.ask(ENDLESS)
    with pytest.raises(BadReview):
        await pool.ask(WRONG)
    pool.finish.release()
    assert (await pool.ask(SMALL)).objects == 1


def test_who_waits_too_long_for_all_memory_may_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        pool = Pool(2)
        async with working(pool.run()):
            first = pool.ask(SMALL)
            await settled(lambda: len(pool.working) == 1)
            monkeypatch.setattr("crdkeeper.webhook.conversion.worker._WORK_SECONDS", 0.05)
            with pytest.raises(Busy):
                await pool.ask(LARGE)
            assert not pool._alone.locked()
            pool.finish.release()
            await first
            pool.finish.release()
            assert (await pool.ask(SMALL)).objects == 1

    virtualtime.run(story())


async def test_a_large_request_has_all_memory_at_once(pool: Pool) -> None:
    asked = pool.ask(bytes(3 << 20))
    await settled(lambda: bool(pool.working))
    assert [memory for _, memory in pool.working] == [MEMORY_BYTES]
    pool.finish.release()
    await asked


async def test_the_largest_object_is_converted_by_one_of_several_workers() -> None:
    """Half of the memory is not enough for it."""
    asked: list[int] = []

    class Counted(WorkerHandle):
        async def ask(self, rules: WorkerRules, body: Body, memory: int) -> Reply:
            asked.append(memory)
            return await super().ask(rules, body, memory)

    pool = Worker(2)
    pool.handles = [Counted() for _ in pool.handles]

    def value(size: int) -> dict[str, Any]:
        return at("v1", {"containers": [{"name": f"{i:x}", "memory": "1"} for i in range(size)]})

    async with working(pool.run()):
        reply = await pool.convert(MAPS, review(value(52_000), "v2"), HERE)
        assert (reply.objects, reply.error) == (1, "")
        assert asked == [MEMORY_BYTES // 2, MEMORY_BYTES]
        del asked[:]
        assert (await pool.convert(MAPS, review(value(5_000), "v2"), HERE)).objects == 1
        assert asked == [MEMORY_BYTES // 2], "a share is enough for what is usual"
