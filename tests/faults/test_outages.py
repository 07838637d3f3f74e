"""What the run needs is unavailable for a while, or throttles it: it continues, and blames no object."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from tests.cluster.harness import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Admin,
    CustomKind,
    Operator,
    eventually,
    outdated,
)
from tests.cluster.harness.waiting import POLL_SECONDS
from tests.controlplane.plane import ControlPlane
from tests.faults.replicas import HASTY, PATIENT, until_ended
from tests.faults.scene import (
    assert_all_stored_at,
    assert_each_written_once,
    write_counts,
)

OBJECTS = 60
MANY = 400
"""Enough for some concurrent writes, however slow the machine is."""
LIMITS = {"maxObjectsPerSecond": 1}
"""A minute for a pass, so that a fault falls into it."""
FAST = {"maxObjectsPerSecond": 1000}
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
REQUESTS = "crdkeeper_migration_requests_total"

StartOperator = Callable[..., Operator]


async def test_the_api_server_is_down(
    breakable: ControlPlane, breakable_admin: Admin, start_operator: StartOperator, group: str
) -> None:
    admin, (server,) = breakable_admin, breakable.api_servers
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    before = write_counts(admin, kind)
    operator = start_operator(breakable, flags=PATIENT)
    await admin.create_migration(group, kind, limits=LIMITS)
    await admin.wait_until_stored(kind, "v2", 3)

    server.kill()
    await asyncio.sleep(5)
    server.start()
    server.wait_ready()

    await hurry(admin, group)
    assert_none_blamed(await admin.wait_for_condition(group, "Succeeded", "True"), operator)
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert_each_written_once(admin, kind, since=before)


@pytest.mark.parametrize("how", ["down", "hanging"])
async def test_the_api_server_is_away_for_longer_than_a_leader_may_be_silent(
    breakable: ControlPlane, breakable_admin: Admin, start_operator: StartOperator, group: str, how: str
) -> None:
    admin, (server,) = breakable_admin, breakable.api_servers
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    operator = start_operator(breakable, flags=HASTY)
    await admin.create_migration(group, kind, limits=LIMITS)
    await admin.wait_until_stored(kind, "v2", 3)

    if how == "down":
        server.kill()
    else:
        server.pause()
    assert await until_ended(operator) == 1
    assert "Lost leadership" in operator.log_since()

    operator.start(wait=False)  # as a kubelet does
    if how == "down":
        server.start()
    else:
        server.resume()
    server.wait_ready()

    async with kept_running(operator):
        await hurry(admin, group)
        assert_none_blamed(await admin.wait_for_condition(group, "Succeeded", "True"), operator)
    await assert_all_stored_at(admin, kind, OBJECTS)


async def test_etcd_hangs(
    breakable: ControlPlane, breakable_admin: Admin, start_operator: StartOperator, group: str
) -> None:
    admin = breakable_admin
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    operator = start_operator(breakable, flags=PATIENT)
    await admin.create_migration(group, kind, limits=LIMITS)
    await admin.wait_until_stored(kind, "v2", 3)

    breakable.etcd_process.pause()
    await asyncio.sleep(6)
    breakable.etcd_process.resume()

    await hurry(admin, group)
    assert_none_blamed(await admin.wait_for_condition(group, "Succeeded", "True"), operator)
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert operator.leading()


async def test_the_api_server_has_no_room(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), MANY)
    before = write_counts(admin, kind)
    level = await without_seats(admin, group)
    await admin.create_migration(group, kind)

    async def refused_often() -> bool:
        return operator.metric(REQUESTS, resource=kind.name, code="429") >= 1

    await eventually(refused_often, otherwise=lambda: "no write was throttled")
    await admin.merge(level, {"spec": {"limited": {"nominalConcurrencyShares": 10}}})

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert migration.status.progress.quarantined == migration.status.quarantine.rounds == 0
    assert operator.metric(REQUESTS, resource=kind.name, code="200") == MANY
    await assert_all_stored_at(admin, kind, MANY)
    assert_each_written_once(admin, kind, since=before)


@asynccontextmanager
async def kept_running(operator: Operator) -> AsyncIterator[None]:
    """Starts it whenever it has ended, as a kubelet does.

    An API server that has just come back is busy: a hasty leader may well lose its Lease again.
    """

    async def keep() -> None:
        while True:
            if not operator.running:
                assert operator.exit_status == 1
                operator.start(wait=False)
            await asyncio.sleep(POLL_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(keep())
        yield
        keeping.cancel()


async def hurry(admin: Admin, name: str) -> None:
    """Lets a migration be fast, as soon as the API server accepts that after an outage."""

    async def accepted() -> bool:
        try:
            await admin.patch_migration(name, limits=FAST)
        except (ApiError, Unreachable):
            return False
        return True

    await eventually(accepted, otherwise=lambda: f"{name} cannot be changed")


async def without_seats(admin: Admin, group: str) -> str:
    """Has the API server answer 429 to the operator's concurrent writes; returns the priority level."""
    name = group.partition(".")[0]
    limited = {
        "nominalConcurrencyShares": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    level = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": limited},
    }
    account = {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    writes = {"verbs": ["patch"], "apiGroups": [group], "resources": ["*"], "namespaces": ["*"]}
    schema = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 100,
            "priorityLevelConfiguration": {"name": name},
            "rules": [
                {
                    "subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
                    "resourceRules": [writes],
                }
            ],
        },
    }
    await admin.create(f"{FLOW}/prioritylevelconfigurations", level)
    await admin.create(f"{FLOW}/flowschemas", schema)

    async def in_effect() -> bool:
        found = await admin.get(f"{FLOW}/flowschemas/{name}")
        conditions = (found.get("status") or {}).get("conditions") or []
        return any(each["type"] == "Dangling" and each["status"] == "False" for each in conditions)

    await eventually(in_effect, otherwise=lambda: "the API server does not look at the FlowSchema")
    return f"{FLOW}/prioritylevelconfigurations/{name}"


def assert_none_blamed(migration: StorageMigration, operator: Operator) -> None:
    """Fails if an object was refused on the way."""
    status = migration.status
    assert status.progress.quarantined == status.quarantine.rounds == status.restarts == 0
    assert operator.metric("crdkeeper_migration_objects_total", outcome="refused") == 0
    assert "Traceback" not in operator.log_since()
