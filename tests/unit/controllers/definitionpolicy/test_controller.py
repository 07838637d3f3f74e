"""What the policies' controller does on each event, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.definitionpolicy.controller import DefinitionPolicies
from crdkeeper.controllers.metrics import Metrics
from crdkeeper.controllers.state import State
from tests import virtualtime
from tests.unit.builders import NAME, crd, migration, policy, with_condition
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi
from tests.unit.core.diagnosis.builders import seen

MIGRATIONS = f"{OURS}/storagemigrations"
STATUS = f"{OURS}/definitionpolicies/p/status"


def play(people: Callable[[State, FakeApi], Awaitable[None]], **changes: Any) -> None:
    """One CRD and one policy that selects it, and what people do."""

    async def main() -> None:
        api, state = FakeApi(), State()
        api.objects[f"{DEFINITIONS}/{NAME}"] = crd(**changes)
        controller = DefinitionPolicies(cast(Client, api), state, Metrics(), identity="me")
        queues = [asyncio.create_task(each.run()) for each in (controller.definitions, controller.policies)]
        state.saw_definition(NAME, seen(**changes))
        state.saw_policy("p", policy())
        await people(state, api)
        for each in queues:
            each.cancel()
        await asyncio.gather(*queues, return_exceptions=True)

    virtualtime.run(main())


def failed() -> StorageMigration:
    return with_condition(migration("by-hand"), "Succeeded", "False", "RetriesExhausted")


def test_a_selected_crd_gets_a_migration() -> None:
    async def people(_: State, api: FakeApi) -> None:
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)


def test_the_status_is_written_while_events_never_stop() -> None:
    async def people(state: State, api: FakeApi) -> None:
        for _ in range(100):
            state.saw_migration("at-work", migration("at-work"))
            await asyncio.sleep(0.1)
            if api.writes("PATCH", STATUS):
                return
        raise AssertionError("eight checkpoints a second kept the status from being written")

    play(people)


def test_the_next_migration_is_made_when_one_that_failed_is_deleted() -> None:
    async def people(state: State, api: FakeApi) -> None:
        state.saw_migration("by-hand", failed())
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0
        del api.objects[f"{MIGRATIONS}/by-hand"]
        state.saw_migration("by-hand", None)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    async def with_the_failed_one(state: State, api: FakeApi) -> None:
        api.objects[f"{MIGRATIONS}/by-hand"] = failed().to_object()
        await people(state, api)

    play(with_the_failed_one)


def test_a_deleted_migration_of_a_crd_that_nobody_knows_is_nothing() -> None:
    async def people(state: State, api: FakeApi) -> None:
        state.saw_migration("never-seen", None)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)
