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
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.diagnosis.facts import SeenDefinition
from tests import virtualtime
from tests.kstatus import Status, status_of
from tests.unit.builders import NAME, crd, migration, policy, with_condition
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi
from tests.unit.core.diagnosis.builders import seen

MIGRATIONS = f"{OURS}/storagemigrations"
EVENTS = "/apis/events.k8s.io"
POLICIES = f"{OURS}/definitionpolicies"
STATUS = f"{POLICIES}/p/status"


def play(
    people: Callable[[ClusterState, FakeApi], Awaitable[None]], *, watch_labels: bool = False, **changes: Any
) -> None:
    """One CRD and one policy that selects it, and what people do. With labels, there is no policy."""

    async def main() -> None:
        api, state = FakeApi(), ClusterState()
        api.objects[f"{DEFINITIONS}/{NAME}"] = crd(**changes)
        controller = DefinitionPolicies(
            cast(Client, api),
            state,
            OperatorMetrics(),
            identity="me",
            watch_labels=watch_labels,
            namespace="crdkeeper-system",
            webhook=WebhookAddress(),
        )
        queues = [asyncio.create_task(each.run()) for each in (controller.definitions, controller.policies)]
        state.saw_definition(NAME, seen(**changes))
        if not watch_labels:
            api.objects[f"{POLICIES}/p"] = policy().to_object()
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


def test_a_migration_of_another_release_keeps_no_other_from_being_made() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.objects[f"{MIGRATIONS}/newer"] = {
            "metadata": {"name": "newer"},
            "spec": {"resource": {"group": "other.example.com", "resource": "others"}, "mode": "Sometimes"},
        }
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people)


def test_a_migration_of_another_release_with_the_wanted_name_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        await asyncio.sleep(5.0)
        (path,) = (each for each in api.objects if each.startswith(f"{MIGRATIONS}/"))
        api.objects[path]["status"] = {"sweep": {"type": "NewerType"}}
        assert caplog.messages == []
        state.saw_definition(NAME, seen())
        await asyncio.sleep(299.0)
        assert api.writes("POST", MIGRATIONS) == 1
        (said,) = caplog.messages
        assert f"StorageMigration {path.rpartition('/')[2]} is of another release" in said
        # Whoever does as told need not do more.
        del api.objects[path]
        state.saw_migration(path.rpartition("/")[2], None)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 2

    with caplog.at_level("WARNING", "crdkeeper"):
        play(people)


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
    [
        ("GET", DEFINITIONS),
        ("GET", MIGRATIONS),
        ("GET", POLICIES),
        ("POST", MIGRATIONS),
        ("PATCH", STATUS),
        ("POST", EVENTS),
    ],
    ids=["read the CRD", "list", "read the policies", "create", "status", "event"],
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


LABEL = "crdkeeper.dev/storage-migration"


def test_a_label_alone_leads_to_a_migration_and_an_event_on_the_crd() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1
        (made,) = (each for path, each in api.objects.items() if path.startswith(MIGRATIONS))
        assert made["metadata"]["labels"] == {LABEL: "automatic"}
        (event,) = (each for path, each in api.objects.items() if path.startswith(EVENTS))
        assert event["regarding"]["kind"] == "CustomResourceDefinition"
        assert (event["regarding"]["uid"], event["reason"]) == ("u1", "MigrationCreated")
        await asyncio.sleep(600.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, watch_labels=True, labels={LABEL: "automatic"})


def test_a_label_does_not_count_while_a_policy_is_only_stored() -> None:
    """At the start, the watch of policies may begin after that of CRDs."""

    async def people(state: ClusterState, api: FakeApi) -> None:
        api.objects[f"{OURS}/definitionpolicies/p"] = policy(mode="Disabled").to_object()
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0
        del api.objects[f"{OURS}/definitionpolicies/p"]
        for late in (policy(mode="Disabled"), None):
            state.saw(DefinitionPolicy, "p", late)
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 1

    play(people, watch_labels=True, labels={LABEL: "automatic"})


def test_a_label_that_is_taken_off_before_the_migration_is_made_counts_no_more() -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.objects[f"{DEFINITIONS}/{NAME}"] = crd()
        await asyncio.sleep(5.0)
        assert api.writes("POST", MIGRATIONS) == 0

    play(people, watch_labels=True, labels={LABEL: "automatic"})


@pytest.mark.parametrize("code", ["no answer", "403", "500"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", f"{OURS}/definitionpolicies"), ("GET", DEFINITIONS), ("POST", MIGRATIONS), ("POST", EVENTS)],
)
def test_trouble_with_a_label_is_got_over(code: str, method: str, path: str) -> None:
    async def people(_: ClusterState, api: FakeApi) -> None:
        api.failures.extend([(method, path, TROUBLES[code])] * 3)
        await asyncio.sleep(60.0)
        assert sum(each.startswith(MIGRATIONS) for each in api.objects) == 1

    play(people, watch_labels=True, labels={LABEL: "automatic"})


def test_whom_a_changed_policy_leaves_its_crds_to_counts_them() -> None:
    other = f"{OURS}/definitionpolicies/younger/status"

    async def people(state: ClusterState, api: FakeApi) -> None:
        def counted() -> int:
            return int(api.written[other]["status"].get("selected", 0))

        state.saw(DefinitionPolicy, "younger", policy("younger", created=1, mode="Disabled"))
        await asyncio.sleep(5.0)
        assert counted() == 0
        state.saw(DefinitionPolicy, "p", policy(groups=["elsewhere.example.org"]))
        await asyncio.sleep(5.0)
        assert counted() == 1
        state.saw(DefinitionPolicy, "p", policy())
        await asyncio.sleep(5.0)
        assert counted() == 0
        state.saw(DefinitionPolicy, "p", None)
        await asyncio.sleep(5.0)
        assert counted() == 1

    play(people)


def test_a_policy_counts_crds_as_they_come_change_and_go() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        async def counted(crd: SeenDefinition | None) -> tuple[int, int]:
            state.saw_definition("others.example.com", crd)
            await asyncio.sleep(5.0)
            status = api.written[STATUS]["status"]
            return status.get("selected", 0), status.get("outdated", 0)

        assert await counted(None) == (1, 1)
        assert await counted(seen(stored=["v2"])) == (2, 1)
        assert await counted(seen(stored=["v1", "v2"])) == (2, 2)
        assert await counted(None) == (1, 1)

    play(people)


def test_crds_are_counted_as_they_come_change_and_go() -> None:
    async def main() -> None:
        state, metrics = ClusterState(), OperatorMetrics()
        DefinitionPolicies(
            cast(Client, FakeApi()),
            state,
            metrics,
            identity="me",
            namespace="crdkeeper-system",
            webhook=WebhookAddress(),
        )

        def counted(name: str, crd: SeenDefinition | None) -> tuple[float | None, float | None]:
            state.saw_definition(name, crd)
            current, outdated = (
                metrics.registry.get_sample_value("crdkeeper_definitions", {"state": each})
                for each in ("current", "outdated")
            )
            return current, outdated

        assert counted("a", seen(stored=["v1", "v2"])) == (0, 1)
        assert counted("b", seen(stored=["v2"])) == (1, 1)
        assert counted("a", seen(stored=["v1", "v2"])) == (1, 1)
        assert counted("a", seen(stored=["v2"])) == (2, 0)
        assert counted("b", seen(stored=["v1", "v2"])) == (1, 1)
        assert counted("b", None) == (1, 0)
        assert counted("a", None) == (0, 0)

    virtualtime.run(main())
