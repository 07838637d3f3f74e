"""How often an update is tried on the composites, and how long a result counts, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition.rehearsing import Place, Rehearsals
from crdkeeper.core.composer.update import Rehearsed
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.report import RehearsalReport
from tests import virtualtime
from tests.unit.controllers.compositeresourcedefinition.scene import ALL, OBJECTS, Server, play
from tests.unit.controllers.compositeresourcedefinition.test_controller import BREAKING, established
from tests.unit.controllers.compositeresourcedefinition.test_deletion_lists import slow
from tests.unit.controllers.fakeapi import FakeApi
from tests.unit.core.composition.documents import SPEC, document, schema, version

NAME = "databases.platform.example.com"
NO = ApiError(500, {"message": "etcdserver: leader changed"})


def harmful() -> RehearsalReport:
    report = RehearsalReport(NAME)
    report.tally.add("default", "a", [Effect(EffectKind.REFUSED, "spec", "v1", "no", "no", "spec")])
    return report


class Scene:
    """Attempts that take some seconds, and who waits for them: asks each second, and when one has ended."""

    def __init__(self, seconds: float, outcome: Callable[[], RehearsalReport]) -> None:
        self.begun: list[float] = []
        self.seconds = seconds
        self.outcome = outcome
        self.rehearsals = Rehearsals(cast(Client, FakeApi()), self.ask)
        self.found = Rehearsed()

    async def attempt(self, place: Place) -> RehearsalReport:
        async with place:
            self.begun.append(virtualtime.now())
            await asyncio.sleep(self.seconds)
        return self.outcome()

    def ask(self, name: str) -> None:
        self.found = self.rehearsals.of(name, 1, self.attempt)

    async def go_on(self, seconds: float) -> None:
        end = virtualtime.now() + seconds
        while virtualtime.now() < end:
            self.ask(NAME)
            await asyncio.sleep(1.0)

    def pauses(self) -> list[float]:
        """The time between the end of each attempt and the next."""
        return [
            after - before - self.seconds for before, after in zip(self.begun, self.begun[1:], strict=False)
        ]


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    virtualtime.run(story())


def fails() -> RehearsalReport:
    raise NO


@pytest.mark.parametrize("seconds", [0.5, 60.0, 400.0])
def test_the_pause_after_a_failure_grows(seconds: float) -> None:
    async def story() -> None:
        scene = Scene(seconds, fails)
        await scene.go_on(3_600.0)
        pauses = scene.pauses()
        assert pauses == sorted(pauses)
        assert all(max(5.0, seconds) <= each <= max(302.0, seconds + 2.0) for each in pauses)
        assert pauses[-1] >= 300.0
        assert scene.found.failure is not None
        assert scene.found.failure.problem == "etcdserver: leader changed"
        assert (scene.found.failure.next - scene.found.failure.at).total_seconds() >= max(5.0, seconds)
        scene.outcome = harmful
        await scene.go_on(1_600.0)
        assert scene.found.failure is None
        assert scene.found.report is not None

    run(story)


@pytest.mark.parametrize(
    ("seconds", "least", "most"),
    [(0.1, 10.0, 12.0), (2.0, 40.0, 42.0), (60.0, 120.0, 122.0), (400.0, 400.0, 402.0)],
)
def test_a_refusal_is_tried_again_soon_however_long_that_takes(
    seconds: float, least: float, most: float
) -> None:
    async def story() -> None:
        scene = Scene(seconds, harmful)
        await scene.go_on(4_000.0)
        pauses = scene.pauses()
        assert all(least <= each <= most for each in pauses)
        assert len(pauses) > 3
        assert scene.found.report is not None, "it counts until there is another"
        assert (scene.found.at is not None) == (least > 30.0)

    run(story)


def test_the_wait_for_a_place_is_not_part_of_what_an_attempt_costs() -> None:
    async def story() -> None:
        scene = Scene(1.0, harmful)
        for each in range(20):
            scene.ask(f"{each}.example.com")
        await asyncio.sleep(10.0)
        assert scene.begun[19] == 9.0
        while virtualtime.now() < 40.0:
            scene.ask("19.example.com")
            await asyncio.sleep(1.0)
        assert scene.begun[20:] == [30.0]

    run(story)


def test_definitions_with_slow_pages_do_not_hold_up_the_others() -> None:
    async def story() -> None:
        scene = Scene(1.0, harmful)

        async def slow(place: Place) -> RehearsalReport:
            for _ in range(400):
                async with place:
                    await asyncio.sleep(25.0)
            return harmful()

        for each in range(4):
            scene.rehearsals.of(f"slow{each}.example.com", 1, slow)
        await asyncio.sleep(30.0)
        scene.ask(NAME)
        await asyncio.sleep(0.5)
        assert scene.found.waits
        await asyncio.sleep(80.0)
        assert not scene.found.waits
        assert scene.found.report is not None

    run(story)


def test_who_waits_for_others_says_so_until_it_begins() -> None:
    async def story() -> None:
        scene = Scene(5.0, harmful)
        for each in ("a", "b"):
            scene.ask(f"{each}.example.com")
        scene.ask(NAME)
        await asyncio.sleep(1.0)
        assert scene.rehearsals.of(NAME, 1, scene.attempt).waits
        assert not scene.rehearsals.of("a.example.com", 1, scene.attempt).waits
        await asyncio.sleep(5.0)
        assert not scene.rehearsals.of(NAME, 1, scene.attempt).waits

    run(story)


@pytest.mark.parametrize(("late", "counts"), [(60.0, True), (200.0, False)])
def test_a_result_counts_until_somebody_comes_to_see_it(late: float, counts: bool) -> None:
    """All workers of the queue may be busy for longer than it is valid; but it must not be too old."""

    async def story() -> None:
        scene = Scene(1.0, lambda: RehearsalReport(NAME))
        scene.rehearsals = Rehearsals(cast(Client, FakeApi()), lambda _: None)
        scene.ask(NAME)
        await asyncio.sleep(late)
        scene.ask(NAME)
        assert (scene.found.report is not None) == counts
        assert len(scene.begun) == 1
        scene.ask(NAME)
        assert scene.found.report is None
        await asyncio.sleep(0.5)
        assert len(scene.begun) == 2

    run(story)


def test_an_error_in_the_program_is_no_loop_either(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Any:
        raise ValueError("invalid password: s3cret")

    async def story() -> None:
        scene = Scene(0.0, broken)
        await scene.go_on(600.0)
        assert len(scene.begun) < 10
        assert scene.found.failure is not None
        assert not scene.found.failure.passing
        assert "an error in crdkeeper (ValueError)" in scene.found.failure.problem
        assert "s3cret" not in scene.found.failure.problem

    run(story)
    assert "in broken" in caplog.text
    assert "s3cret" not in caplog.text.replace('raise ValueError("invalid password: s3cret")', "")


def test_a_definition_that_cannot_be_read_is_quoted() -> None:
    def broken() -> Any:
        raise UnreadableDefinition("v1 has no schema")

    async def story() -> None:
        scene = Scene(0.0, broken)
        await scene.go_on(5.0)
        assert scene.found.failure is not None
        assert scene.found.failure.problem == "v1 has no schema"

    run(story)


def test_composites_are_not_read_all_the_time_when_a_late_page_fails() -> None:
    async def people(server: Server) -> None:
        async def late(method: str, path: str) -> None:
            if path == ALL and "continue=" in server.requests[-1][1]:
                raise NO

        server.before = late
        server.make(BREAKING)
        await asyncio.sleep(60.0)
        begun = [path for _, path in server.requests if path == f"{ALL}?limit=50"]
        assert 2 <= len(begun) <= 6
        status, reason, message = server.condition("Accepted")
        assert (status, reason) == ("Unknown", "Rehearsing")
        assert "etcdserver: leader changed" in message

    def begin(server: Server) -> None:
        established(server)
        server.make_composites(60)

    play(people, begin=begin)


def test_composites_that_are_converted_slowly_are_tried_too() -> None:
    async def people(server: Server) -> None:
        slow(server, 0.5)
        server.make(BREAKING)
        await asyncio.sleep(300.0)
        assert server.condition("Accepted")[:2] == ("False", "BreakingChanges")
        assert "Tried on 120 composites" in server.condition("Accepted")[2]

    def begin(server: Server) -> None:
        established(server)
        server.make_composites(120)

    play(people, begin=begin)


def described(**contact: str) -> Any:
    """A definition whose composites may have any fields."""
    spec = {**SPEC, "x-kubernetes-preserve-unknown-fields": True}
    if contact:
        spec["properties"] = {**SPEC["properties"], "contact": contact}
    return document(version(of=schema(spec)))


def test_a_composite_that_is_too_large_to_read_is_named() -> None:
    """A list of 150,000 empty objects may be stored, and take 50 times as much with the defaults of each."""

    async def people(server: Server) -> None:
        name = server.composites()[1]["metadata"]["name"]
        server.objects[f"{OBJECTS}/{name}"]["spec"]["many"] = "x" * (3 << 20)
        server.make(described(type="string", format="email"))
        await asyncio.sleep(60.0)
        status, reason, message = server.condition("Accepted")
        assert (status, reason) == ("False", "NotPredicted")
        assert f"Tried on 3 composites: 1 (default/{name}): not predicted, or not wholly: " in message
        assert "the response is larger than" in message
        assert server.condition("Stalled")[0] == "True"
        server.delete(f"{OBJECTS}/{name}")
        await asyncio.sleep(60.0)
        assert server.condition("Accepted")[0] == "True"

    def begin(server: Server) -> None:
        established(server, described())
        server.make_composites(3)
        for each in server.composites():
            server.objects[f"{OBJECTS}/{each['metadata']['name']}"]["spec"] = {"engine": "MySQL"}

    play(people, begin=begin)
