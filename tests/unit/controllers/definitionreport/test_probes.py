"""Probes in virtual time: run when due, a few at a time, with results kept while they are valid."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import pytest

from crdkeeper.controllers.definitionreport.probes import Probe, Probes, Subject
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.conditions import versions
from tests import virtualtime
from tests.unit.core.diagnosis.builders import seen
from tests.virtualtime import now

NAME = "widgets.example.com"
TTL = 100.0


class World:
    """A probe that takes a second, the existing CRDs, and which of them were notified."""

    def __init__(self, *names: str) -> None:
        self.about: Hashable | None = "first"
        self.value: Any = "well"
        self.failures = 0
        self.crowded = False
        self.asked: list[tuple[float, Any]] = []
        self.reported: list[str] = []
        self.at_work = self.most = 0
        self.subjects = {name: Subject(seen(), Assessment()) for name in names or (NAME,)}
        probe = Probe(versions.CONDITION, lambda _: TTL, lambda _: self.about, self.ask)
        self.probes = Probes(
            [probe], self.subjects.get, self.reported.append, lambda: self.crowded, at_once=2
        )

    async def ask(self, _: Subject, before: Any) -> Any:
        self.asked.append((now(), before))
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        await asyncio.sleep(1.0)
        self.at_work -= 1
        if self.failures:
            self.failures -= 1
            raise RuntimeError("not yet")
        return self.value

    def look(self, name: str = NAME) -> tuple[Any, frozenset[str]]:
        """A reconciliation's view: the fact, and what is pending."""
        subject = self.subjects[name]
        pending = self.probes.pending(name, subject)
        return self.probes.live(name, subject).census, pending


def play(world: World, people: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        running = asyncio.create_task(world.probes.queue.run())
        await people()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    virtualtime.run(main())


PENDING = frozenset(("VersionsCurrent",))


def test_the_first_answer_comes_and_is_told() -> None:
    world = World()

    async def people() -> None:
        assert world.look() == (None, PENDING)
        await asyncio.sleep(2.0)
        assert world.reported == [NAME]
        assert world.look() == ("well", frozenset())

    play(world, people)
    assert len(world.asked) == 1


def test_a_crowd_of_new_crds_goes_first() -> None:
    world = World()
    world.crowded = True

    async def people() -> None:
        world.look()
        await asyncio.sleep(5.0)
        assert world.asked == []
        world.crowded = False
        await asyncio.sleep(2.0)
        assert world.reported == [NAME]

    play(world, people)


def test_a_crowd_that_never_ends_delays_an_answer_by_seconds() -> None:
    world = World()
    world.crowded = True

    async def people() -> None:
        world.look()
        await asyncio.sleep(12.0)
        assert world.reported == [NAME]

    play(world, people)


def test_what_becomes_due_right_at_the_end_of_a_probe_does_not_wait_until_the_answer_is_old() -> None:
    class Changing(World):
        async def ask(self, subject: Subject, before: Any) -> Any:
            value = await super().ask(subject, before)
            if len(self.asked) == 1:
                self.about = "second"
                assert self.look() == (None, PENDING)
            return value

    world = Changing()

    async def people() -> None:
        world.look()
        await asyncio.sleep(3.0)

    play(world, people)
    assert [round(at) for at, _ in world.asked] == [0, 1]


def test_it_is_asked_again_when_the_answer_is_old_and_told_only_if_it_differs() -> None:
    world = World()

    async def people() -> None:
        world.look()
        await asyncio.sleep(TTL + 10)
        assert world.reported == [NAME]
        world.value = "ill"
        await asyncio.sleep(TTL + 10)
        assert world.reported == [NAME, NAME]
        assert world.look() == ("ill", frozenset())

    play(world, people)
    assert [before for _, before in world.asked] == [None, "well", "well"]


def test_another_question_is_due_at_once_and_has_no_answer_until_then() -> None:
    world = World()

    async def people() -> None:
        world.look()
        await asyncio.sleep(2.0)
        world.about = "second"
        assert world.look() == (None, PENDING)
        await asyncio.sleep(2.0)
        assert world.look() == ("well", frozenset())
        assert world.reported == [NAME, NAME]

    play(world, people)


def test_where_there_is_nothing_to_ask_nothing_is_pending() -> None:
    world = World()
    world.about = None

    async def people() -> None:
        assert world.look() == (None, frozenset())
        await asyncio.sleep(2.0)

    play(world, people)
    assert world.asked == []
    assert world.reported == []


def test_a_few_are_asked_at_a_time() -> None:
    names = [f"{number}.example.com" for number in range(10)]
    world = World(*names)

    async def people() -> None:
        for name in names:
            world.look(name)
        await asyncio.sleep(20.0)
        assert sorted(world.reported) == sorted(names)

    play(world, people)
    assert world.most == 2


def test_a_probe_that_breaks_is_made_again() -> None:
    world = World()
    world.failures = 2

    async def people() -> None:
        world.look()
        await asyncio.sleep(30.0)
        assert world.look() == ("well", frozenset())

    play(world, people)
    assert len(world.asked) == 3


def test_a_crd_that_is_gone_is_not_asked_about_again() -> None:
    world = World()

    async def people() -> None:
        world.look()
        await asyncio.sleep(2.0)
        del world.subjects[NAME]
        world.probes.forget(NAME)
        await asyncio.sleep(10 * TTL)

    play(world, people)
    assert len(world.asked) == 1
