"""What a pass of a retirement does beside others who change the same CRD, in the operator and without it."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.api.meta import READY, find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.versionretirement.controller import VersionRetirements
from crdkeeper.core.retirement.evidence import Obstacle
from crdkeeper.operations.retirement.standalone import StandaloneRetirement, unstored
from tests import virtualtime
from tests.unit.core.composer.test_storage import succeeded
from tests.unit.core.retirement.cases import definition, entry, owner
from tests.unit.operations.retirement.scene import CRD, MIGRATIONS, RETIREMENT, Api, Gathered
from tests.unit.operations.retirement.scene import gathered as gathered  # a fixture

NEW = entry("v1")
SERVED = definition(entry("v1alpha1"), NEW)
STORED = definition(entry("v1alpha1", deprecated=True, served=False), NEW, stored=("v1alpha1", "v1"))


def operate(
    api: Api, seconds: float, meanwhile: Coroutine[Any, Any, None] | None = None
) -> tuple[str, str, str]:
    """Let the operator work for some time; returns Ready."""

    async def main() -> None:
        state = ClusterState()
        controller = VersionRetirements(api.client, state, OperatorMetrics(), identity="me")
        queue = asyncio.create_task(controller.queue.run())
        api.watch = lambda: state.saw(VersionRetirement, "old", api.retirement)
        api.watch()
        aside = asyncio.create_task(meanwhile) if meanwhile is not None else None
        await asyncio.sleep(seconds)
        if aside is not None:
            await aside
        queue.cancel()
        await asyncio.gather(queue, return_exceptions=True)

    virtualtime.run(main())
    return ready(api.retirement)


def command(
    api: Api, migrated: list[str] | None = None, *, failure: str = "", **spec: Any
) -> tuple[str, str, str]:
    """Run it without the operator, with that end of the migration; returns Ready."""
    retirement = unstored(owner(**spec).spec)

    async def migrate() -> str:
        (migrated if migrated is not None else []).append("once")
        return failure

    async def main() -> None:
        await StandaloneRetirement(api.client, retirement, lambda _: None, migrate).run(wait=False)

    virtualtime.run(main())
    return ready(retirement)


def ready(of: VersionRetirement) -> tuple[str, str, str]:
    found = find_condition(of.status.conditions, READY)
    assert found is not None
    return found.status, found.reason, found.message


def wanted(api: Api) -> str:
    """The name of the migration that the operator asks for."""
    operate(api, 0.5)
    (name,) = [each for each in api.objects if each.startswith(MIGRATIONS)]
    return name


def test_a_migration_of_that_name_for_another_resource_is_told(gathered: Gathered) -> None:
    name = wanted(Api(STORED))
    api = Api(STORED)
    api.objects[name] = {
        "metadata": {"name": name.rpartition("/")[2], "uid": "m1"},
        "spec": {"resource": {"group": "other.example.com", "resource": "things"}},
    }
    status, reason, message = operate(api, 25.0)
    assert (status, reason) == ("False", "NameTaken")
    assert "is for things.other.example.com" in message
    assert api.writes("POST", MIGRATIONS) == 1
    # Whoever deletes it lets the retirement go on.
    del api.objects[name]
    operate(api, 60.0)
    assert api.objects[name]["spec"]["resource"] == {"group": "example.com", "resource": "dbs"}


@pytest.mark.usefixtures("gathered")
def test_who_takes_a_step_back_at_once_is_not_fought() -> None:
    api = Api(SERVED)
    api.rival = SERVED
    assert operate(api, 600.0)[:2] == ("False", "Reverted")
    assert api.patches == 1

    alone = Api(SERVED)
    alone.rival = SERVED
    assert command(alone)[:2] == ("False", "Reverted")
    assert alone.patches == 1


@pytest.mark.usefixtures("gathered")
def test_nothing_is_changed_before_a_migration_is_permitted() -> None:
    """Objects may name a version that none is stored at, and one may be written at any time."""
    api = Api(SERVED)
    assert api.objects[CRD]["status"]["storedVersions"] == ["v1"]
    api.forbidden = {("patch", "dbs")}
    status, reason, message = operate(api, 30.0)
    assert (status, reason, api.patches) == ("False", "NotPermitted", 0)
    assert "patch dbs.example.com" in message

    # Once it is not served, there is nothing left to migrate.
    gone = Api(GONE)
    gone.forbidden = api.forbidden
    assert operate(gone, 300.0)[:2] == ("True", "Removed")


def test_the_command_migrates_nothing_while_something_holds_it(gathered: Gathered) -> None:
    migrated: list[str] = []
    gathered.holds = (Obstacle("NotServed", "Composition", "web", "Composition web names v1alpha1."),)
    assert command(Api(STORED), migrated)[:2] == ("False", "Composition")
    assert migrated == []


@pytest.mark.usefixtures("gathered")
def test_a_migration_that_goes_on_and_fails_is_no_wait() -> None:
    """A wait would have the exit code of a quiet period: run it again."""
    api, failure = Api(STORED), "dbs.example.com: Forbidden: Not permitted: patch dbs.example.com."
    resource = {"group": "example.com", "resource": "dbs"}
    interrupted = {"metadata": {"name": "dbs.example.com-cli"}, "spec": {"resource": resource}}
    api.objects[MIGRATIONS] = {"metadata": {}, "items": [interrupted]}
    assert command(api, failure=failure) == ("False", "MigrationFailed", failure)


@pytest.mark.usefixtures("gathered")
def test_a_forged_time_of_the_last_change_is_no_error() -> None:
    crd = definition(entry("v1alpha1", deprecated=True), NEW)
    crd["metadata"]["managedFields"][0]["time"] = "9999-12-31T23:59:59Z"
    assert command(Api(crd))[:2] == ("False", "QuietPeriod")


REFUSALS = [
    ApiError(422, {"message": "versions are frozen"}),
    ApiError(400, {"message": "versions are frozen"}),
    # A webhook may choose the code, also that of a conflict.
    ApiError(409, {"message": "versions are frozen"}),
    ApiError(500, {"message": 'failed calling webhook "guard": versions are frozen'}),
    # As controller-runtime's admission.Errored answers.
    ApiError(500, {"message": 'admission webhook "guard" denied the request: versions are frozen'}),
    ApiError(429, {"message": 'admission webhook "guard" denied the request: versions are frozen'}),
]
GONE = definition(entry("v1alpha1", deprecated=True, served=False), NEW)


@pytest.mark.usefixtures("gathered")
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: str(each.code))
def test_a_refused_change_is_told_and_tried_every_half_minute(refusal: ApiError) -> None:
    api = Api(SERVED)
    api.refusal = refusal
    status, reason, message = operate(api, 25.0)
    assert (status, reason) == ("False", "Refused")
    assert "versions are frozen" in message
    assert api.patches == 1
    assert api.writes("PATCH", f"{RETIREMENT}/status") <= 3
    api.requests.clear()

    async def repair() -> None:
        await asyncio.sleep(70.0)
        assert (api.patches, api.writes("PATCH", f"{RETIREMENT}/status")) == (1 + 3, 2)
        api.refusal = None

    operate(api, 125.0, repair())
    assert api.objects[CRD]["spec"]["versions"][0]["deprecated"] is True


@pytest.mark.usefixtures("gathered")
def test_whoever_changes_the_retirement_has_a_refused_change_tried_at_once() -> None:
    api = Api(SERVED)
    api.refusal = REFUSALS[0]

    async def change() -> None:
        await asyncio.sleep(5.0)
        api.refusal = None
        api.objects[RETIREMENT]["metadata"]["generation"] += 1
        api.watch()

    assert operate(api, 10.0, change())[:2] == ("False", "QuietPeriod")
    assert api.patches == 2


@pytest.mark.usefixtures("gathered")
@pytest.mark.parametrize("code", [429, 500, 503, 504])
def test_a_busy_api_server_refuses_nothing(code: int) -> None:
    api = Api(SERVED)
    api.refusal = ApiError(code, {"message": "etcd is slow"})

    async def recover() -> None:
        await asyncio.sleep(20.0)
        assert ready(api.retirement)[:2] == ("Unknown", "Deprecating")
        assert api.patches < 10
        api.refusal = None

    assert operate(api, 90.0, recover())[:2] == ("False", "QuietPeriod")


@pytest.mark.usefixtures("gathered")
def test_a_refused_removal_stays_refused_while_objects_are_counted_again() -> None:
    api = Api(GONE)
    api.refusal = REFUSALS[0]
    seen: list[tuple[str, str]] = []
    told = api.watch

    def watch() -> None:
        seen.append(ready(api.retirement)[:2])
        told()

    async def begin() -> None:
        nonlocal told
        told, api.watch = api.watch, watch
        await asyncio.sleep(1790.0)

    assert operate(api, 1800.0, begin())[:2] == ("False", "Refused")
    first = seen.index(("False", "Refused"))
    assert set(seen[first:]) == {("False", "Refused")}
    # It was counted again, which the status tells.
    assert len(seen[first:]) > 3
    assert api.patches > 50


@pytest.mark.usefixtures("gathered")
def test_who_writes_metadata_all_the_time_keeps_no_step_from_being_taken() -> None:
    api = Api(SERVED)
    api.beforehand = api.annotate
    assert operate(api, 5.0)[:2] == ("False", "QuietPeriod")
    assert api.patches == 1


@pytest.mark.parametrize("again", [False, True], ids=["suspended", "created anew"])
def test_a_retirement_that_is_suspended_during_the_last_look_takes_no_step(
    gathered: Gathered, again: bool
) -> None:
    looks: list[int] = []
    undisturbed = Api(SERVED)
    undisturbed.beforehand = lambda: looks.append(gathered.looks)
    operate(undisturbed, 5.0)
    gathered.looks, (last,) = 0, looks
    api = Api(SERVED)

    def suspend() -> None:
        if gathered.looks == last:
            api.ask(suspend=True)
            if again:
                api.objects[RETIREMENT]["metadata"] |= {"uid": "r2", "generation": 1}

    gathered.beside = suspend
    assert operate(api, 30.0)[:2] == ("Unknown", "Suspended")
    assert api.patches == 0


def test_progress_of_a_migration_leads_to_few_looks_and_its_end_to_one_at_once(gathered: Gathered) -> None:
    """A migration stores its progress four times a second, for hours."""
    api = Api(SERVED)

    async def main() -> None:
        state = ClusterState()
        controller = VersionRetirements(api.client, state, OperatorMetrics(), identity="me")
        queue = asyncio.create_task(controller.queue.run())
        state.saw(VersionRetirement, "old", api.retirement)

        def saved(percent: int, **status: Any) -> None:
            migration = {
                "metadata": {"name": "m", "uid": "m1"},
                "spec": {"resource": {"group": "example.com", "resource": "dbs"}},
                "status": {"progress": {"percent": percent}, **status},
            }
            state.saw_migration("m", StorageMigration.model_validate(migration))

        saved(0)
        await asyncio.sleep(20.0)
        gathered.looks = 0
        for each in range(4 * 60):
            saved(each % 100)
            await asyncio.sleep(0.25)
        assert 5 <= gathered.looks <= 8
        ends: list[dict[str, Any]] = [
            {"conditions": succeeded("Unknown", "Queued", "It waits.")},
            {"completionTime": "2026-01-02T03:04:05Z"},
        ]
        for end in ends:
            gathered.looks = 0
            saved(100, **end)
            await asyncio.sleep(0.1)
            assert gathered.looks >= 1
        gathered.looks = 0
        state.saw_migration("m", None)
        await asyncio.sleep(0.1)
        assert gathered.looks >= 1
        queue.cancel()
        await asyncio.gather(queue, return_exceptions=True)

    virtualtime.run(main())


def test_who_changes_the_spec_all_the_time_is_left_alone_for_longer_and_longer(gathered: Gathered) -> None:
    api = Api(SERVED)
    api.beforehand = api.change
    assert operate(api, 60.0)[:2] == ("Unknown", "Changing")
    # After 1, 2, 4, 8, 16 and 30 seconds.
    assert api.patches == 6
    assert gathered.looks < 30
    assert api.writes("PATCH", f"{RETIREMENT}/status") < 10
    api.beforehand = lambda: None
    assert operate(api, 1.0)[:2] == ("False", "QuietPeriod")


def test_a_webhook_that_fails_in_other_words_each_time_is_looked_at_once_a_minute(
    gathered: Gathered,
) -> None:
    api = Api(SERVED)

    def fail() -> None:
        assert gathered.looks < 2000, "looks without a pause"
        said = f"It does not convert: expected response.uid={gathered.looks}."
        gathered.holds = (Obstacle("NotServed", "ConversionWebhook", "webhook https://a", said),)

    gathered.beside = fail
    operate(api, 60.0)
    gathered.looks = 1000
    api.requests.clear()

    async def repair() -> None:
        await asyncio.sleep(590.0)
        assert gathered.looks < 1000 + 3 * 11
        assert api.writes("PATCH", f"{RETIREMENT}/status") < 2 * 11
        gathered.beside = lambda: None
        gathered.holds = (replace(gathered.holds[0], message="Connection refused."),)

    operate(api, 720.0, repair())
    assert api.retirement.status.holds[0].message == "Connection refused."


def test_a_command_counts_again_at_once_if_the_spec_changes_meanwhile(gathered: Gathered) -> None:
    api, counts = Api(SERVED), 0

    def change() -> None:
        nonlocal counts
        counts += 1
        if counts < 3:
            api.change()

    gathered.took, gathered.counted = 1.0, change
    assert command(api)[:2] == ("False", "QuietPeriod")
    assert api.patches == 1


def test_the_operator_counts_at_a_pace_while_the_spec_changes_all_the_time(gathered: Gathered) -> None:
    api, counts = Api(SERVED), 0
    api.ask(mode="Plan")

    def change() -> None:
        nonlocal counts
        counts += 1
        api.change()

    gathered.took, gathered.counted = 1.0, change
    operate(api, 630.0)
    assert 20 <= counts <= 31
