"""An API server that is frozen during a change of the storage version stores the old one when it wakes.

Two API servers on one etcd. One is stopped (SIGSTOP) while the storage version changes, and receives writes
that it serves as soon as it resumes, before its watch has reported the change.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import orjson
import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, Answer
from tests.cluster.harness import Admin, CustomKind, Operator
from tests.cluster.harness.admin import condition
from tests.cluster.harness.guarded import guarded
from tests.cluster.retirement.scene import (
    OLD,
    assert_retired,
    moved,
    permit,
    retire,
    until,
    until_ready,
    versions,
)
from tests.controlplane.fixtures import LOGS
from tests.controlplane.plane import ControlPlane
from tests.faults.scene import assert_all_stored_at, message_of, rewritten

WRITES = 16
ROUNDS = 8
"""At most: a woken API server may see the change before it serves the first of the writes."""
SLEEPER = 1
"""The index of the API server that is stopped."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@pytest.fixture
async def admins(request: pytest.FixtureRequest, pair: ControlPlane) -> AsyncIterator[tuple[Admin, Admin]]:
    """The admin at each of the two. Checks every trim of a CRD that the first one applies."""
    request.node.stash.setdefault(LOGS, []).append(pair.logs)
    async with guarded(pair) as awake, Admin(pair, server=SLEEPER) as sleeper:
        yield awake, sleeper


async def test_a_woken_api_server_stores_the_old_version(admins: tuple[Admin, Admin]) -> None:
    admin, at_sleeper = admins
    kind = CustomKind("danger.example.com")
    await admin.apply_definition(kind)
    names = await admin.create_objects(kind, WRITES)
    stale = 0
    for round_ in range(ROUNDS):
        flipped = kind.storing("v2" if kind.storage_version == "v1" else "v1")
        async with asleep(at_sleeper, kind, names, note=f"round {round_}"):
            await admin.apply_definition(flipped)
        stale = stored_at(admin, kind, kind.storage_version, names)
        if stale:
            break
        kind = flipped
    assert stale, "no write was stored at the version before: is it no danger any more?"


async def test_nothing_counts_before_every_api_server_was_seen_awake(
    admins: tuple[Admin, Admin], start_operator: Callable[..., Operator]
) -> None:
    admin, at_sleeper = admins
    kind = CustomKind("frozen.example.com")
    await admin.apply_definition(kind)
    names = await admin.create_objects(kind, WRITES // 2)
    await admin.opt_in(kind.group)
    operator = start_operator(admin.cluster)
    stale = 0
    for round_ in range(ROUNDS):
        names += [f"new-{round_}-{number}" for number in range(WRITES // 2)]
        before, requests = kind.storage_version, operator.requests(kind.name)
        kind = kind.storing("v2" if before == "v1" else "v1")
        migration, note = f"frozen-{round_}", f"written on waking {round_}"
        async with asleep(at_sleeper, kind, names, note=note):
            await admin.apply_definition(kind)
            await admin.create_migration(migration, kind, apiServerLeases="Require")
            await waits_for_the_sleeper_alone(admin, migration)
            assert operator.requests(kind.name) == requests
            assert rewritten(admin, kind) == 0
        stale = stored_at(admin, kind, before, names)
        await admin.wait_for_condition(migration, "Succeeded", "True")
        await assert_all_stored_at(admin, kind, len(names))
        assert {await note_of(admin, kind, each) for each in names} == {note}
        if stale:
            break
    assert stale, "no write was stale: this run has shown nothing"


@pytest.mark.skipif(
    not os.environ.get("CRDKEEPER_RETIREMENT_FAULTS"), reason="API servers renew their Leases every 10 s"
)
async def test_a_version_is_not_removed_before_every_api_server_was_seen_awake(
    admins: tuple[Admin, Admin], start_operator: Callable[..., Operator]
) -> None:
    admin, at_sleeper = admins
    kind = await moved(admin, "retired.example.com", WRITES)
    await permit(admin, kind)
    names = [f"db-{number:05d}" for number in range(WRITES)]
    start_operator(admin.cluster)
    pace = {"settleSeconds": 1, "apiServerLeases": "Require", "retry": {"backoffSeconds": 1}}
    async with asleep(at_sleeper, kind, names, note="late", retired=OLD):
        name = await retire(admin, kind, mode="Execute", migration=pace)
        found = await until(admin, name, lambda each: bool(each.status.migration), "migrating")
        await waits_for_the_sleeper_alone(admin, found.status.migration)
        assert (await versions(admin, kind))[OLD]["served"] is False
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, WRITES)


async def waits_for_the_sleeper_alone(admin: Admin, name: str) -> None:
    """Returns once a migration waits for the API server that is stopped, and for no other."""
    lease = await lease_of_sleeper(admin)
    only = (
        f"Waiting for 1 API server to renew an identity Lease in kube-system after the storage "
        f"version changed: {lease}."
    )
    migration = await admin.wait_for_migration(
        name, lambda each: only in message_of(each, "Settled"), "waiting for the sleeper alone"
    )
    assert condition(migration, "Settled").reason == "APIServerNotSeen"
    assert migration.status.settled_resource_version is None


@asynccontextmanager
async def asleep(
    at_sleeper: Admin, kind: CustomKind, names: Sequence[str], *, note: str, retired: str = ""
) -> AsyncIterator[None]:
    """Stops this admin's API server. At the end, it receives a note for each name and wakes.

    It receives them at the version `retired`, if it is not empty; by then it may know that it is not served.
    """
    server = at_sleeper.cluster.api_servers[SLEEPER]

    async def write(name: str) -> Answer:
        version = retired or "v1"
        body = kind.instance(name, version=version, note=note)
        return await at_sleeper.client.send(
            "PATCH",
            f"{kind.path(name, version=version)}?fieldManager=late&force=true",
            content=orjson.dumps(body),
            content_type=APPLY_PATCH,
        )

    # Connections, so that the requests are there before it wakes.
    await asyncio.gather(*(at_sleeper.find(kind.path(each)) for each in names))
    server.pause()
    try:
        yield
        writes = [asyncio.create_task(write(each)) for each in names]
        done, _ = await asyncio.wait(writes, timeout=0.3)
        assert not done, "it is not asleep"
    finally:
        server.resume()
    accepted = {200, 201, 404} if retired else {200, 201}
    assert {each.code for each in await asyncio.gather(*writes)} <= accepted


def stored_at(admin: Admin, kind: CustomKind, version: str, names: Sequence[str]) -> int:
    """How many of these objects etcd stores at that version."""
    found = [admin.etcd.get(kind.etcd_key(each)) for each in names]
    return sum(each is not None and each["apiVersion"] == kind.api_version(version) for each in found)


async def note_of(admin: Admin, kind: CustomKind, name: str) -> str:
    """The note in an object's spec."""
    found: str = (await admin.get(kind.path(name)))["spec"]["note"]
    return found


async def lease_of_sleeper(admin: Admin) -> str:
    """The name of the identity Lease of the API server that is stopped."""
    hostname = admin.cluster.api_servers[SLEEPER].name
    found = await admin.get(f"{LEASES}?labelSelector=kubernetes.io%2Fhostname%3D{hostname}")
    (lease,) = found["items"]
    name: str = lease["metadata"]["name"]
    return name
