"""Objects that take long to convert: they delay nobody, and their work is bounded."""

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest

from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.bundle import packed
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.review import BadReview, Reply
from crdkeeper.webhook.conversion import worker, workerprocess
from crdkeeper.webhook.conversion.converting import Converting
from crdkeeper.webhook.conversion.worker import Busy, Worker, WorkerFailed, WorkerHandle, WorkerRules
from crdkeeper.webhook.conversion.workerprocess import _Worker
from crdkeeper.webhook.http.types import Body, Response
from crdkeeper.webhook.metrics import WebhookMetrics
from crdkeeper.webhook.rules.rulebook import RuleBook, Served
from crdkeeper.webhook.timelimit import OutOfTime, TimeLimit
from tests.unit.webhook.conversion.working import working

GROUP = "example.com"
NAME = f"sums.{GROUP}"
MANY, FEW = 150, 3
HERE, THERE = "10.0.0.1", "10.0.0.2"


def schema(*fields: str) -> Schema:
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    properties = {"numbers": numbers, **{each: {"type": "integer"} for each in fields}}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def served() -> Served:
    """Rules that compare each number with each other ten times: 150 are 1 KB, and take 100 ms."""
    fields = [f"pairs{number}" for number in range(10)]
    pairs = "object.spec.numbers.filter(a, object.spec.numbers.exists(b, a + b == 1000000)).size()"
    rules = [{"spoke": f"spec.{each}", "cel": {"toSpoke": pairs}} for each in fields]
    document = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": NAME},
        "spec": {
            "resource": {"group": GROUP, "resource": "sums"},
            "hub": "v1",
            "spokes": [{"version": "v2", "rules": rules}],
        },
    }
    spec = VersionConversion.model_validate(document).spec
    schemas = {"v1": schema(), "v2": schema(*fields)}
    made = compile_conversion(spec, schemas)
    assert isinstance(made, Conversion), made
    return Served(made, "digest", packed(spec, schemas))


SERVED = served()


def review(count: int) -> bytes:
    sum_ = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Sum",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"numbers": list(range(count))},
    }
    request = {"uid": "7", "desiredAPIVersion": f"{GROUP}/v2", "objects": [sum_]}
    return orjson.dumps(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    )


@pytest.fixture
async def converting() -> Any:
    rules = RuleBook(())
    rules.conversions[NAME] = SERVED
    slowly = Worker()
    async with working(slowly.run()):
        yield Converting(rules, WebhookMetrics(), slowly)


def pairs(answer: Response) -> int:
    (made,) = orjson.loads(answer.body)["response"]["convertedObjects"]
    found: int = made["spec"]["pairs9"]
    return found


async def test_what_takes_long_is_broken_off_and_done_by_the_worker(converting: Converting) -> None:
    coming = converting.answer(NAME, review(MANY), HERE)
    assert not isinstance(coming, Response)
    small = converting.answer(NAME, review(FEW), HERE)
    assert isinstance(small, Response)
    assert (pairs(small), pairs(await coming)) == (0, 0)


async def test_what_is_as_large_as_something_slow_goes_to_the_worker(
    converting: Converting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crdkeeper.webhook.conversion.converting._SLOW_SECONDS", 3600.0)
    await until_answered(converting.answer(NAME, review(MANY), HERE))
    converting._limit.run = pytest.fail  # type: ignore[assignment]
    await until_answered(converting.answer(NAME, review(MANY), HERE))


async def until_answered(coming: Response | Awaitable[Response]) -> None:
    assert not isinstance(coming, Response)
    assert (await coming).status == 200


async def test_the_worker_refuses_what_is_no_review(converting: Converting) -> None:
    coming = converting.answer(NAME, b" " * 100_000, HERE)
    assert not isinstance(coming, Response)
    answer = await coming
    assert (answer.status, b"not a ConversionReview" in answer.body) == (400, True)


def test_the_work_of_a_request_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workerprocess, "CPU_SECONDS", 0.02)
    reply = _worked(review(MANY))
    assert reply["error"] == "Sum default/mine: the conversion takes more than 0 s"
    answered = reply["review"]["response"]
    assert (answered["uid"], answered["convertedObjects"]) == ("7", [])
    assert answered["result"] == {"status": "Failed", "message": reply["error"]}


def test_the_answer_to_a_request_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workerprocess, "ANSWER_BYTES", 100)
    assert "the converted objects are larger than" in _worked(review(FEW))["error"]


def _worked(body: bytes) -> dict[str, Any]:
    job = {"digest": SERVED.digest, "bundle": len(SERVED.bundle), "body": len(body), "memory": 1 << 30}
    source, target = io.BytesIO(orjson.dumps(job) + b"\n" + SERVED.bundle + body), io.BytesIO()
    _Worker(source, target).run()
    line, _, content = target.getvalue().partition(b"\n")
    said: dict[str, Any] = orjson.loads(line)
    assert len(content) == said["content"]
    return {**said, "review": orjson.loads(content)}


def test_a_limit_counts_for_one_piece_of_work_only() -> None:
    limit = TimeLimit()

    def for_ever() -> None:
        while True:
            pass

    for _ in range(3):
        with pytest.raises(OutOfTime):
            limit.run(0.01, for_ever)
        assert limit.run(0.01, lambda: 7) == 7
        sum(range(3_000_000))  # the timer is off


@pytest.fixture
async def workers() -> AsyncIterator[Worker]:
    made = Worker()
    async with working(made.run()):
        yield made


async def test_a_worker_that_does_not_answer_is_replaced(
    workers: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await workers.convert(SERVED, review(FEW), HERE)).objects == 1
    assert workers.handles[0].process is not None
    os.kill(workers.handles[0].process.pid, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(worker, "_WORK_SECONDS", 0.1)
        with pytest.raises(WorkerFailed):
            await workers.convert(SERVED, review(FEW), HERE)
    assert (await workers.convert(SERVED, review(FEW), HERE)).objects == 1
    with pytest.raises(BadReview):
        await workers.convert(SERVED, b"{}", HERE)


async def test_a_worker_that_nobody_needs_ends(workers: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_IDLE_SECONDS", 0.05)
    await workers.convert(SERVED, review(FEW), HERE)
    process = workers.handles[0].process
    assert process is not None
    async with asyncio.timeout(60.0):
        await process.wait()
    assert (await workers.convert(SERVED, review(FEW), HERE)).objects == 1


async def test_a_worker_that_talks_nonsense_fails_one_request_only(
    workers: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(orjson, "loads", lambda _: {})
        with pytest.raises(WorkerFailed):
            await workers.convert(SERVED, review(FEW), HERE)
    assert (await workers.convert(SERVED, review(FEW), HERE)).objects == 1


class HeldHandle(WorkerHandle):
    """Only records whose turn it is, until it is released. The bodies are the sources."""

    def __init__(self, turns: list[str], go_on: asyncio.Event) -> None:
        super().__init__()
        self.turns, self.go_on = turns, go_on

    async def ask(self, rules: WorkerRules, body: Body, memory: int) -> Reply:
        self.turns.append(body.decode())
        await self.go_on.wait()
        return Reply(b"{}", 1)


class Held(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.turns: list[str] = []
        self.go_on = asyncio.Event()
        self.handles = [HeldHandle(self.turns, self.go_on)]

    async def turn(self, source: str) -> Reply:
        return await self.convert(SERVED, source.encode(), source)


@pytest.fixture
async def held() -> Any:
    made = Held()
    async with working(made.run()):
        yield made


async def test_who_waits_when_it_ends_has_an_answer() -> None:
    held = Held()
    run = asyncio.create_task(held.run())
    first = asyncio.create_task(held.turn(HERE))
    await _until(lambda: held.turns == [HERE])
    second = asyncio.create_task(held.turn(HERE))
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(WorkerFailed):
        await first
    with pytest.raises(Busy):
        await second


async def test_each_source_has_its_turn(held: Held) -> None:
    many = [asyncio.create_task(held.turn(THERE)) for _ in range(5)]
    await _until(lambda: held.turns == [THERE])
    one = asyncio.create_task(held.turn(HERE))
    await asyncio.sleep(0)
    held.go_on.set()
    await asyncio.gather(one, *many)
    assert held.turns == [THERE, HERE, THERE, THERE, THERE, THERE]


async def test_work_does_not_pile_up(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    first = asyncio.create_task(held.turn(THERE))
    await _until(lambda: held.turns == [THERE])
    one = asyncio.create_task(held.turn(HERE))
    many = [asyncio.create_task(held.turn(THERE)) for _ in range(40)]
    await _until(lambda: sum(each.done() for each in many) == 9)
    for each in many[:9]:
        with pytest.raises(Busy):
            each.result()
    held.go_on.set()
    await asyncio.gather(first, one, *many[9:])


async def test_nobody_waits_for_long(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_WAIT_SECONDS", 0.05)
    first = asyncio.create_task(held.turn(HERE))
    await _until(lambda: held.turns == [HERE])
    with pytest.raises(Busy):
        await held.turn(HERE)
    held.go_on.set()
    await first


async def test_who_is_gone_is_not_worked_for(held: Held) -> None:
    first = asyncio.create_task(held.turn(HERE))
    await _until(lambda: held.turns == [HERE])
    gone = asyncio.create_task(held.turn(THERE))
    await asyncio.sleep(0)
    gone.cancel()
    held.go_on.set()
    await first
    await asyncio.wait({gone})
    assert held.turns == [HERE]


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
