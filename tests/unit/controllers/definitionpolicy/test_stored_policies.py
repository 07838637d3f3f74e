"""By which policies a migration is created: those that are stored, whatever a watch has shown of them."""

import asyncio

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.controllers.state import ClusterState
from tests.unit.builders import NAME, crd, policy
from tests.unit.controllers.definitionpolicy.test_controller import LABEL, MIGRATIONS, POLICIES, play
from tests.unit.controllers.fakeapi import DEFINITIONS, FakeApi

MISSING = ApiError(404, {"message": "the server could not find the requested resource"})


def test_an_older_policy_that_no_watch_has_shown_yet_governs() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        older = policy("older", mode="Disabled", created=-1)
        api.objects[f"{POLICIES}/older"] = older.to_object()
        await asyncio.sleep(600.0)
        assert api.writes("POST", MIGRATIONS) == 0
        state.saw(DefinitionPolicy, "older", older)
        del api.objects[f"{POLICIES}/older"]
        state.saw(DefinitionPolicy, "older", None)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)


def test_a_policy_counts_as_it_is_stored_while_its_watch_is_late() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.objects[f"{POLICIES}/p"] = policy(mode="Disabled").to_object()
        await asyncio.sleep(600.0)
        assert api.writes("POST", MIGRATIONS) == 0

    play(people)


@pytest.mark.parametrize("kind", [POLICIES, MIGRATIONS])
@pytest.mark.parametrize("labelled", [False, True], ids=["by a policy", "by a label"])
def test_an_api_server_that_does_not_serve_our_kinds_yet_is_waited_for(kind: str, labelled: bool) -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        api.failures.extend([("GET", kind, MISSING)] * 3)
        await asyncio.sleep(12.0)
        assert api.writes("POST", MIGRATIONS) == 0
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, watch_labels=labelled, **({"labels": {LABEL: "automatic"}} if labelled else {}))


def test_the_policies_are_not_read_if_nothing_has_to_be_created() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.objects[f"{DEFINITIONS}/{NAME}"] = crd(stored=("v2",))
        api.failures.append(("GET", POLICIES, MISSING))
        await asyncio.sleep(5.0)
        assert len(api.failures) == 1

    play(people)
