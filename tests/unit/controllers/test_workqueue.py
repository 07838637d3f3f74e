"""The work queue, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.workqueue import WorkQueue
from tests import virtualtime
from tests.virtualtime import now


class Reconciler:
    """Takes a second for each key and records its start. `failures` says how often a key fails first."""

    def __init__(self, seconds: float = 1.0, failures: dict[str, int] | None = None) -> None:
        self.began: list[tuple[float, str]] = []
        self.at_work: list[str] = []
        self.most = 0
        self._seconds = seconds
        self._failures = failures or {}

    async def __call__(self, key: str) -> None:
        assert key not in self.at_work, "two workers at one key"
        self.began.append((now(), key))
        self.at_work.append(key)
        self.most = max(self.most, len(self.at_work))
        await asyncio.sleep(self._seconds)
        self.at_work.remove(key)
        if self._failures.get(key, 0):
            self._failures[key] -= 1
            raise RuntimeError("not yet")

    @property
    def times(self) -> list[float]:
        return [round(time, 3) for time, _ in self.began]


def work(
    reconciler: Reconciler,
    people: Callable[[WorkQueue], Awaitable[None]],
    *,
    workers: int = 4,
    seconds: float = 1000.0,
) -> None:
    """Run the queue for a while, during these actions."""

    async def main() -> None:
        queue = WorkQueue(reconciler, workers)
        running = asyncio.create_task(queue.run())
        await people(queue)
        await asyncio.sleep(seconds)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    virtualtime.run(main())


def adding(*keys: str) -> Callable[[WorkQueue], Coroutine[Any, Any, None]]:
    async def people(queue: WorkQueue) -> None:
        for key in keys:
            queue.add(key)

    return people


def test_each_key_once() -> None:
    reconciler = Reconciler()
    work(reconciler, adding("a", "b", "a", "a"))
    assert reconciler.began == [(0, "a"), (0, "b")]


def test_a_key_that_is_added_while_it_is_at_work_comes_once_more() -> None:
    reconciler = Reconciler()

    async def people(queue: WorkQueue) -> None:
        queue.add("a")
        await asyncio.sleep(0.5)
        for _ in range(3):
            queue.add("a")

    work(reconciler, people)
    assert reconciler.began == [(0, "a"), (1, "a")]


def test_a_key_can_come_again_later() -> None:
    reconciler = Reconciler()

    async def people(queue: WorkQueue) -> None:
        queue.add("a")
        await asyncio.sleep(5)
        queue.add("a")

    work(reconciler, people)
    assert reconciler.times == [0, 5]


@pytest.mark.parametrize("workers", [1, 3])
def test_as_many_at_the_same_time_as_there_are_workers(workers: int) -> None:
    reconciler = Reconciler()
    work(reconciler, adding(*"abcdefg"), workers=workers)
    assert reconciler.most == workers
    assert len(reconciler.began) == 7


def test_failures_are_tried_again_ever_later() -> None:
    reconciler = Reconciler(seconds=0.0, failures={"a": 9})
    work(reconciler, adding("a"))
    waits = [after - before for before, after in zip(reconciler.times, reconciler.times[1:], strict=False)]
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_failure_hinders_no_other_key() -> None:
    reconciler = Reconciler(failures={"a": 1000})
    work(reconciler, adding("a", "b"), workers=1)
    assert (1, "b") in reconciler.began


def test_a_success_makes_up_for_all_failures() -> None:
    reconciler = Reconciler(seconds=0.0, failures={"a": 3})

    async def people(queue: WorkQueue) -> None:
        queue.add("a")
        await asyncio.sleep(100)
        reconciler._failures["a"] = 1
        queue.add("a")

    work(reconciler, people)
    assert reconciler.times[-2:] == [100, 100.5]


def test_a_key_that_waits_for_a_retry_comes_at_once_when_it_is_added() -> None:
    reconciler = Reconciler(seconds=0.0, failures={"a": 6})

    async def people(queue: WorkQueue) -> None:
        queue.add("a")
        await asyncio.sleep(20)
        queue.add("a")

    work(reconciler, people)
    assert reconciler.times == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 20]


def test_a_key_that_failed_and_was_added_meanwhile_comes_at_once() -> None:
    reconciler = Reconciler(failures={"a": 1})

    async def people(queue: WorkQueue) -> None:
        queue.add("a")
        await asyncio.sleep(0.5)
        queue.add("a")

    work(reconciler, people)
    assert reconciler.times == [0, 1]


def test_a_failure_does_not_put_off_what_was_heard_meanwhile() -> None:
    reconciler = Reconciler(failures={"a": 6})

    async def people(queue: WorkQueue) -> None:
        queue.add("a")
        await asyncio.sleep(21)
        assert reconciler.at_work == ["a"]
        queue.add_within("a", 2.0)

    work(reconciler, people)
    assert reconciler.times == [0, 1.5, 3.5, 6.5, 11.5, 20.5, 23]


def test_later() -> None:
    reconciler = Reconciler()

    async def people(queue: WorkQueue) -> None:
        queue.add_within("a", 30)
        queue.add_within("b", 30)
        await asyncio.sleep(10)
        queue.add("b")

    work(reconciler, people)
    assert reconciler.began == [(10, "b"), (30, "a")]


def test_the_end_waits_for_nobody() -> None:
    reconciler = Reconciler(seconds=1e6)
    work(reconciler, adding("a", "b"), workers=1)
    assert reconciler.began == [(0, "a")]


def test_many_changes_in_a_row_make_one_soon_enough() -> None:
    reconciler = Reconciler()

    async def people(queue: WorkQueue) -> None:
        for _ in range(6):
            queue.add_within("a", 1.9)
            await asyncio.sleep(0.5)

    work(reconciler, people)
    assert reconciler.times == [1.9, 3.9]


def test_what_waits_for_a_retry_comes_within_the_time_too() -> None:
    reconciler = Reconciler()

    async def people(queue: WorkQueue) -> None:
        queue.add_within("a", 60.0)
        queue.add_within("a", 2.0)
        queue.add_within("b", 5.0)
        queue.add_within("b", 9.0)

    work(reconciler, people)
    assert reconciler.began == [(2.0, "a"), (5.0, "b")]


def test_what_changes_during_a_run_does_not_wait_for_the_next_look() -> None:
    queues: list[WorkQueue] = []

    class Looking(Reconciler):
        async def __call__(self, key: str) -> None:
            await super().__call__(key)
            queues[0].add_within(key, 30.0)

    reconciler = Looking()

    async def people(queue: WorkQueue) -> None:
        queues.append(queue)
        queue.add("a")
        await asyncio.sleep(0.8)
        queue.add_within("a", 0.5)

    work(reconciler, people, seconds=20.0)
    assert reconciler.times == [0, 1.3]


def test_what_is_due_at_once_may_be_due_again() -> None:
    """The programs run on uvloop, whose handle of a timer that rounds to no milliseconds is not a timer's."""
    began: list[str] = []

    async def reconcile(key: str) -> None:
        began.append(key)

    async def main() -> None:
        queue = WorkQueue(reconcile)
        queue.add_within("a", 0.0001)
        queue.add_within("a", 10.0)
        queue.add_within("a", 0.0)
        running = asyncio.create_task(queue.run())
        await asyncio.sleep(0.1)
        running.cancel()

    uvloop.run(main())
    assert began == ["a"]


@pytest.mark.parametrize(
    ("error", "traces"),
    [(RuntimeError("odd"), True), (ApiError(403, {"message": "no"}), False), (Unreachable("down"), False)],
)
def test_a_traceback_only_where_the_text_says_too_little(
    caplog: pytest.LogCaptureFixture, error: Exception, traces: bool
) -> None:
    class Failing(Reconciler):
        async def __call__(self, key: str) -> None:
            raise error

    async def people(queue: WorkQueue) -> None:
        queue.add("a")

    work(Failing(), people)
    assert len(caplog.records) > 5
    assert str(error) in caplog.messages[-1]
    assert any(each.exc_info for each in caplog.records) is traces
