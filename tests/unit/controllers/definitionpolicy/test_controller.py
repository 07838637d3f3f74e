"""What the DefinitionPolicy controller does on each event, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.definitionpolicy.controller import DefinitionPolicies
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from tests import virtualtime
from tests.kstatus import Status, status_of
from tests.unit.builders import NAME, crd, migration, policy, with_condition
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi
from tests.unit.core.diagnosis.builders import seen

MIGRATIONS = f"{OURS}/storagemigrations"
EVENTS = "/apis/events.k8s.io"
STATUS = f"{OURS}/definitionpolicies/p/status"


def play(people: Callable[[ClusterState, FakeApi], Awaitable[None]], **changes: Any) -> None:
    """One CRD and one policy that selects it, and what people do."""

    async def main() -> None:
        api, state = FakeApi(), ClusterState()
        api.objects[f"{DEFINITIONS}/{NAME}"] = crd(**changes)
        controller = DefinitionPolicies(cast(Client, api), state, OperatorMetrics(), identity="me")
        queues = [asyncio.create_task(each.run()) for each in (controller.definitions, controller.policies)]
        state.saw_definition(NAME, seen(**changes))
        state.saw(DefinitionPolicy, "p", policy())
        await people(state, api)
        for each in queues:
            each.cancel()
        await asyncio.gather(*queues, return_exceptions=True)

    virtualtime.run(main())


def failed() -> StorageMigration:
    return with_condition(migration("by-hand"), "Succeeded", "False", "RetriesExhausted")


def test_a_selected_crd_gets_a_migration() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)


def test_the_status_is_written_while_events_never_stop() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        for _ in range(100):
            state.saw_migration("at-work", migration("at-work"))
            await asyncio.sleep(0.1)
            if api.writes("PATCH", STATUS):
                return
        raise AssertionError("eight checkpoints a second kept the status from being written")

    play(people)


def test_the_next_migration_is_made_when_one_that_failed_is_deleted() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        state.saw_migration("by-hand", failed())
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0
        del api.objects[f"{MIGRATIONS}/by-hand"]
        state.saw_migration("by-hand", None)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    async def with_the_failed_one(state: ClusterState, api: FakeApi) -> None:
        api.objects[f"{MIGRATIONS}/by-hand"] = failed().to_object()
        await people(state, api)

    play(with_the_failed_one)


def test_a_deleted_migration_of_a_crd_that_nobody_knows_is_nothing() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        state.saw_migration("never-seen", None)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)


TROUBLES = {
    "no answer": Unreachable("connection reset by peer"),
    "403": ApiError(403, {"message": "no rights"}),
    "500": ApiError(500, {"message": "etcdserver: leader changed"}),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", DEFINITIONS), ("GET", MIGRATIONS), ("POST", MIGRATIONS), ("PATCH", STATUS), ("POST", EVENTS)],
    ids=["read the CRD", "list", "create", "status", "event"],
)
def test_trouble_is_got_over(trouble: str, method: str, path: str) -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.failures.extend([(method, path, TROUBLES[trouble])] * 3)
        await asyncio.sleep(60.0)
        assert sum(path.startswith(MIGRATIONS) for path in api.objects) == 1
        assert api.writes("PATCH", STATUS) >= 1
        assert (api.failures == []) == (path != EVENTS)

    play(people)


def test_who_was_faster_is_fine() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.failures.append(("POST", MIGRATIONS, ApiError(409, {"message": "exists"})))
        await asyncio.sleep(60.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)


def test_what_is_stored_counts_and_not_what_the_watch_has_shown() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.objects[f"{DEFINITIONS}/{NAME}"] = crd(stored=("v2",))
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0

    play(people)


def test_a_deleted_crd_needs_nothing() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        del api.objects[f"{DEFINITIONS}/{NAME}"]
        state.saw_definition(NAME, None)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0
        state.saw_migration("m", migration())
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0

    play(people)


def test_a_crd_that_becomes_outdated_gets_a_migration() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0
        api.objects[f"{DEFINITIONS}/{NAME}"] = crd()
        state.saw_definition(NAME, seen())
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, stored=("v2",))


def test_a_policy_that_is_gone_wants_nothing() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        state.saw(DefinitionPolicy, "p", None)
        await asyncio.sleep(5.0)
        assert api.requests == []

    play(people)


def test_the_mode_of_a_policy_can_be_changed() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        state.saw(DefinitionPolicy, "p", policy(mode="Disabled"))
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0
        state.saw(DefinitionPolicy, "p", policy())
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)


def test_a_status_that_stays_the_same_is_not_written() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        await asyncio.sleep(5.0)
        before = api.writes("PATCH", STATUS)
        stored = {**policy().to_object(), "status": api.written[STATUS]["status"]}
        state.saw(DefinitionPolicy, "p", DefinitionPolicy.model_validate(stored))
        await asyncio.sleep(5.0)
        state.saw_definition(NAME, seen())
        await asyncio.sleep(5.0)
        assert api.writes("PATCH", STATUS) == before

    play(people)


def test_kstatus_judges_a_policy_as_ready_does() -> None:
    def judged(found: Any) -> Status:
        return status_of({"metadata": {"generation": policy().metadata.generation}, "status": found})

    async def people(state: ClusterState, api: FakeApi) -> None:
        assert judged(policy().to_object()["status"]) == "InProgress"
        for seen_migration, status in ((None, "Current"), (failed(), "Failed"), (None, "Current")):
            state.saw_migration("by-hand", seen_migration)
            await asyncio.sleep(5.0)
            assert judged(api.written[STATUS]["status"]) == status

    play(people)
