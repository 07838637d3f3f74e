"""Migrations that wait while all slots are taken by others, in virtual time."""

import asyncio

import pytest

from tests.unit.builders import NAME
from tests.unit.controllers.storagemigration.test_controller import DENIAL, Operator, operate
from tests.unit.core.diagnosis.builders import seen
from tests.unit.operations.migration.scene import About, assert_migrated, refusal


async def taken(operator: Operator) -> asyncio.Semaphore:
    """The slots, all of which others have now."""
    slots = operator.controller._slots
    for _ in range(4):
        await slots.acquire()
    return slots


async def queued(operator: Operator) -> asyncio.Semaphore:
    """The same, with the migration waiting for one."""
    slots = await taken(operator)
    operator.watch()
    await operator.until(lambda: operator.ready() == ["Queued"])
    return slots


def test_a_changed_spec_reaches_one_that_waits_for_its_turn() -> None:
    async def story(operator: Operator) -> None:
        slots = await queued(operator)
        operator.cluster.change_spec(suspend=True)
        operator.watch()
        await operator.until(lambda: operator.ready() == ["Suspended"], 5.0)
        slots.release()
        async with asyncio.timeout(1.0), slots:
            assert operator.rewritten == 0
        operator.cluster.change_spec(suspend=False)
        operator.watch()
        await operator.until(operator.ended)
        assert_migrated(operator.cluster)
        async with asyncio.timeout(1.0), slots:
            assert slots.locked()

    operate(story)


def test_who_is_touched_keeps_its_place_and_writes_nothing() -> None:
    async def story(operator: Operator) -> None:
        slots = await queued(operator)
        behind = asyncio.create_task(slots.acquire())
        before = operator.cluster.requests.copy()
        for _ in range(10):
            operator.state.saw_definition(NAME, seen())
            await asyncio.sleep(1.0)
        asked = operator.cluster.requests - before
        assert set(asked) == {"revision", "others", "older"}
        assert asked["revision"] <= 10
        slots.release()
        await operator.until(lambda: operator.rewritten > 0, 5.0)
        await behind

    operate(story)


@pytest.mark.parametrize("told", [True, False], ids=["an event", "no event"])
def test_another_migrator_goes_first(told: bool) -> None:
    async def story(operator: Operator) -> None:
        slots = await queued(operator)
        resource = {"group": "example.com", "resource": "widgets"}
        operator.cluster.others.append({"metadata": {"name": "svm"}, "spec": {"resource": resource}})
        if told:
            operator.state.saw_definition(NAME, seen())
        else:
            slots.release()
        await operator.until(lambda: operator.ready() == ["AnotherMigrator"], 5.0)
        await asyncio.sleep(100.0)
        assert operator.rewritten == 0
        operator.cluster.others.clear()
        if told:
            slots.release()
        await operator.until(operator.ended)
        assert_migrated(operator.cluster)

    operate(story)


def test_one_that_is_suspended_during_the_last_look_writes_nothing() -> None:
    async def story(operator: Operator) -> None:
        cluster, slots = operator.cluster, await queued(operator)

        def happens(about: About, nth: int) -> None:
            if about == "revision":
                cluster.happens = lambda about, nth: None
                cluster.change_spec(suspend=True)
                operator.watch()

        cluster.happens = happens
        slots.release()
        await operator.until(lambda: operator.ready() == ["Suspended"], 5.0)
        assert operator.rewritten == 0
        assert cluster.stored.status.sweep is None

    operate(story)


def test_limits_that_change_are_those_of_its_turn() -> None:
    async def story(operator: Operator) -> None:
        slots = await queued(operator)
        operator.cluster.change_spec(limits={"maxObjectsPerSecond": 1})
        operator.watch()
        await asyncio.sleep(60.0)
        slots.release()
        await operator.until(lambda: operator.rewritten > 0, 5.0)
        await asyncio.sleep(4.0)
        assert 4 <= operator.rewritten <= 6
        # The pass began once: it listed each page, after one list for the separator.
        assert operator.cluster.requests["list"] == 1 + 3

    operate(story)


@pytest.mark.parametrize(("event", "reason"), [("suspended", "Suspended"), ("deleted", "DefinitionDeleted")])
def test_a_retry_round_heeds_what_changes(event: str, reason: str) -> None:
    async def story(operator: Operator) -> None:
        cluster = operator.cluster
        cluster.troubles["rewrite"].extend([refusal(403, "Forbidden", DENIAL)] * 2)
        operator.watch()
        await operator.until(lambda: operator.ready() == ["ObjectsRefused"])
        slots = await taken(operator)
        await asyncio.sleep(3600.0)
        written, rounds = operator.rewritten, cluster.stored.status.quarantine.rounds
        if event == "suspended":
            cluster.change_spec(suspend=True)
            operator.watch()
        else:
            cluster.definition = None
            operator.state.saw_definition(NAME, None)
        await operator.until(lambda: operator.ready() == [reason], 5.0)
        assert operator.ended() == (event == "deleted")
        assert (operator.rewritten, cluster.stored.status.quarantine.rounds) == (written, rounds)
        if event == "suspended":
            cluster.change_spec(suspend=False)
            operator.watch()
            await asyncio.sleep(60.0)
            slots.release()
            await operator.until(operator.ended)
            assert_migrated(cluster)

    operate(story)
