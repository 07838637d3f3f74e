"""One pass over objects whose writes fail in various ways, in virtual time and without a server."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from crdkeeper.cluster.resources.objects import Page
from crdkeeper.cluster.transport.client import Answer, ApiError, Unreachable
from crdkeeper.operations.migration import sweep as sweep_module
from crdkeeper.operations.migration.sweep import Interrupted
from tests import virtualtime
from tests.unit.operations.migration.scriptedobjects import Objects, error, sweep_of
from tests.virtualtime import now

OUTAGE = {
    "message": 'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: EOF'
}
DENIAL = {"message": 'admission webhook "w.example.com" denied the request: no'}
LEADERLESS = {"message": "etcdserver: leader changed"}


def work(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_module, "time", SimpleNamespace(monotonic=now))
        virtualtime.run(main())


def test_all_objects_are_written() -> None:
    async def main() -> None:
        objects = Objects("a b", "c", "", "d e f")
        sweep = sweep_of(objects)
        await sweep.run(None)
        tally = sweep.tally
        assert (tally.scanned, tally.rewritten, tally.total) == (6, 6, 6)
        assert sweep.checkpoint() == ("3", 3)  # a list has no token for its end
        assert set(objects.attempts.values()) == {1}

    work(main)


def test_it_goes_on_from_a_token() -> None:
    async def main() -> None:
        objects = Objects("a b", "c", "d")
        await sweep_of(objects).run("1")
        assert sorted(objects.attempts) == ["c", "d"]

    work(main)


def test_what_is_above_the_separator_costs_no_write() -> None:
    async def main() -> None:
        objects = Objects("a b")
        objects.versions["a"] = "501"
        objects.versions["b"] = "500"
        sweep = sweep_of(objects)
        await sweep.run(None)
        assert sorted(objects.attempts) == ["b"]
        assert (sweep.tally.current, sweep.tally.rewritten) == (1, 1)

    work(main)


def test_refused_objects_are_named_and_hinder_no_other() -> None:
    async def main() -> None:
        objects = Objects("a b c", answer=lambda name, _: error(403, DENIAL) if name == "b" else None)
        sweep = sweep_of(objects)
        await sweep.run(None)
        assert [each.name for each in sweep.refused] == ["b"]
        assert (sweep.tally.scanned, sweep.tally.refused_count, sweep.tally.rewritten) == (3, 1, 2)

    work(main)


@pytest.mark.parametrize("retry_after", [None, 2.0])
def test_throttled_writes_are_repeated(retry_after: float | None) -> None:
    async def main() -> None:
        throttled = error(429, {"message": "storage is (re)initializing"}, retry_after)
        objects = Objects("a b", answer=lambda name, attempt: throttled if attempt < 10 else None)
        sweep = sweep_of(objects)
        await sweep.run(None)
        assert sweep.tally.rewritten == 2
        assert now() >= 9 * (retry_after or 0.2)

    work(main)


def test_a_failing_server_interrupts() -> None:
    async def main() -> None:
        sweep = sweep_of(Objects("a b", answer=lambda *_: error(500, LEADERLESS)))
        with pytest.raises(Interrupted) as raised:
            await sweep.run(None)
        assert raised.value.reason == "APIServerUnavailable"
        assert "leader changed" in raised.value.message
        assert sweep.refused == []

    work(main)


def test_one_object_that_makes_the_server_fail_is_refused() -> None:
    async def main() -> None:
        def answer(name: str, attempt: int) -> Answer | None:
            return error(500, LEADERLESS) if name == "a" else None

        sweep = sweep_of(Objects("a", *(f"w{number}" for number in range(200)), answer=answer))
        await sweep.run(None)
        assert [each.name for each in sweep.refused] == ["a"]

    work(main)


@pytest.mark.parametrize(
    ("code", "body", "reason"),
    [
        (403, {"message": 'User "me" cannot patch resource "widgets"'}, "Forbidden"),
        (401, {"message": "Unauthorized"}, "Forbidden"),
        (404, {"message": "404 page not found"}, "ResourceGone"),
    ],
)
def test_what_is_no_objects_fault_interrupts(code: int, body: dict[str, Any], reason: str) -> None:
    async def main() -> None:
        with pytest.raises(Interrupted) as raised:
            await sweep_of(Objects("a b", answer=lambda *_: error(code, body))).run(None)
        assert raised.value.reason == reason

    work(main)


def test_a_broken_webhook_interrupts_before_all_are_refused() -> None:
    async def main() -> None:
        names = " ".join(f"w{number}" for number in range(200))
        sweep = sweep_of(Objects(names, answer=lambda *_: error(500, OUTAGE)))
        with pytest.raises(Interrupted) as raised:
            await sweep.run(None)
        assert raised.value.reason == "WebhookUnavailable"
        assert "webhook w.example.com" in raised.value.message
        assert sweep.refused == []

    work(main)


def test_a_plan_tries_few_objects_of_an_outage_again() -> None:
    async def main() -> None:
        objects = Objects(
            *(" ".join(f"w{page}-{number}" for number in range(500)) for page in range(5)),
            answer=lambda *_: error(500, OUTAGE),
        )
        sweep = sweep_of(objects, "Plan")
        await sweep.run(None)
        assert (sweep.tally.scanned, sweep.tally.refused_count, len(sweep.refused)) == (2500, 2500, 1000)
        assert sum(each > 1 for each in objects.attempts.values()) <= 1000

    work(main)


def test_objects_of_an_outage_are_come_by_again() -> None:
    """A run that ends during an outage has not decided about its objects: it must come back to them."""

    async def main() -> None:
        # The outage begins on the first page and continues after it.
        objects = Objects(
            "a b c", " ".join(f"w{number}" for number in range(200)), answer=lambda *_: error(500, OUTAGE)
        )
        first = sweep_of(objects, maxConcurrency=1)
        with pytest.raises(Interrupted):
            await first.run(None)
        token, dealt_with = first.checkpoint()
        assert (token, dealt_with) == (None, 0)
        objects.answer = lambda *_: None
        second = sweep_of(objects)
        await second.run(token)
        assert second.tally.rewritten == 203

    work(main)


def test_a_short_outage_is_the_fault_of_its_objects() -> None:
    async def main() -> None:
        objects = Objects("a b", "c", answer=lambda name, _: error(500, OUTAGE) if name == "a" else None)
        sweep = sweep_of(objects, maxConcurrency=1)
        await sweep.run(None)
        assert [each.name for each in sweep.refused] == ["a"]
        assert (sweep.tally.scanned, sweep.checkpoint()) == (3, ("1", 2))

    work(main)


def test_an_object_that_the_webhook_cannot_judge_is_tried_a_few_times() -> None:
    async def main() -> None:
        names = " ".join(f"w{number}" for number in range(200))
        objects = Objects(names, answer=lambda name, _: error(500, OUTAGE) if name == "w7" else None)
        sweep = sweep_of(objects)
        await sweep.run(None)
        assert [each.name for each in sweep.refused] == ["w7"]
        assert (sweep.tally.rewritten, sweep.tally.scanned, sweep.checkpoint()) == (199, 200, (None, 0))
        assert 2 <= objects.attempts["w7"] <= 4

    work(main)


@pytest.mark.parametrize("first", [0, 90], ids=["at the beginning", "at the end"])
@pytest.mark.parametrize("pages", [1, 4])
def test_objects_of_a_short_outage_are_written_when_the_webhook_is_back(first: int, pages: int) -> None:
    async def main() -> None:
        names = [f"w{number:02d}" for number in range(100)]
        writes = Counter[str]()

        def answer(name: str, attempt: int) -> Answer | None:
            writes["all"] += 1
            return error(500, OUTAGE) if first < writes["all"] <= first + 20 else None

        size = len(names) // pages
        objects = Objects(*(" ".join(names[at : at + size]) for at in range(0, 100, size)), answer=answer)
        sweep = sweep_of(objects)
        await sweep.run(None)
        assert sweep.refused == []
        assert (sweep.tally.rewritten, sweep.tally.scanned) == (100, 100)
        last = (None, 0) if pages == 1 else (str(pages - 1), 100 - size)
        assert (sweep.tally.refused_count, sweep.checkpoint()) == (0, last)

    work(main)


def test_no_answer_is_tried_again() -> None:
    async def main() -> None:
        def answer(name: str, attempt: int) -> Answer | None:
            if attempt < 3:
                raise Unreachable("refused")
            return None

        sweep = sweep_of(Objects("a b", answer=answer))
        await sweep.run(None)
        assert sweep.tally.rewritten == 2

    work(main)


def test_a_conflict_is_looked_at_again() -> None:
    async def main() -> None:
        objects = Objects("a")

        def answer(name: str, attempt: int) -> Answer | None:
            objects.versions[name] = "501"
            return error(409, {"reason": "Conflict"})

        objects.answer = answer
        sweep = sweep_of(objects)
        await sweep.run(None)
        assert (sweep.tally.current, objects.attempts["a"]) == (1, 1)

    work(main)


def test_endless_conflicts_are_a_refusal() -> None:
    async def main() -> None:
        sweep = sweep_of(
            Objects("a", answer=lambda *_: error(409, {"reason": "Conflict", "message": "again"}))
        )
        await sweep.run(None)
        assert [(each.name, each.code) for each in sweep.refused] == [("a", 409)]

    work(main)


def test_workers_that_become_too_many_do_not_all_leave() -> None:
    """All answers arrive at the same moment, with a limit that falls from four to one."""

    async def main() -> None:
        def answer(name: str, attempt: int) -> Answer | None:
            return error(429, {"message": "Too many requests"}) if attempt == 1 else None

        sweep = sweep_of(Objects("a b c d e f g h", answer=answer), maxConcurrency=8)
        async with asyncio.timeout(600):
            await sweep.run(None)
        assert sweep.tally.rewritten == 8

    work(main)


@pytest.mark.parametrize(("seconds", "counted"), [(1.0, 4), (9.0, 0)])
def test_a_pass_that_ends_early_waits_a_little_for_writes_in_flight(seconds: float, counted: int) -> None:
    async def main() -> None:
        objects = Objects("a b c d e f g h")
        objects.seconds = seconds
        sweep = sweep_of(objects)
        running = asyncio.create_task(sweep.run(None))
        await asyncio.sleep(0.1 + seconds / 2)
        running.cancel()
        began = now()
        await asyncio.gather(running, return_exceptions=True)
        assert now() - began < 2.1
        assert sum(objects.attempts.values()) == 4
        assert sweep.tally.rewritten == sweep.tally.scanned == counted

    work(main)


@pytest.mark.parametrize(
    "answer",
    [
        error(409, {"reason": "Conflict"}),
        error(429, {}, retry_after=1.0),
        error(503, {}),
    ],
)
def test_a_pass_that_ends_early_tries_nothing_again(answer: Answer) -> None:
    async def main() -> None:
        objects = Objects("a b c d e f g h", answer=lambda name, attempt: answer)
        objects.seconds = 0.4
        sweep = sweep_of(objects)
        running = asyncio.create_task(sweep.run(None))
        await asyncio.sleep(0.3)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert sum(objects.attempts.values()) == 4
        assert sweep.tally.scanned == 0

    work(main)


def test_an_error_of_the_list_is_told() -> None:
    async def main() -> None:
        class Expired(Objects):
            def page(self, token: str | None) -> Page:
                raise ApiError(410, {"reason": "Expired"})

        with pytest.raises(ApiError, match="410"):
            await sweep_of(Expired("a")).run(None)

    work(main)


def test_a_limit_of_objects_per_second() -> None:
    async def main() -> None:
        await sweep_of(Objects(" ".join("abcdefghij")), maxObjectsPerSecond=2).run(None)
        assert now() >= 4

    work(main)


def test_retrying_by_name_takes_each_object_as_it_is() -> None:
    async def main() -> None:
        objects = Objects("a b c", answer=lambda name, _: error(403, DENIAL) if name != "c" else None)
        first = sweep_of(objects)
        await first.run(None)
        objects.versions["b"] = "700"
        objects.answer = lambda *_: None
        second = sweep_of(objects)
        await second.retry(first.refused)
        assert (second.tally.rewritten, second.tally.current, second.refused) == (1, 1, [])

    work(main)
