"""An API server that is frozen during a change of the storage version stores the old one when it wakes.

Two API servers on one etcd. One is stopped (SIGSTOP) while the storage version changes, and receives writes
that it serves as soon as it resumes, before its watch has reported the change.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

import orjson
import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, Answer
from tests.cluster.harness import Admin, CustomKind, Operator
from tests.cluster.harness.admin import condition
from tests.cluster.harness.guarded import guarded
from tests.controlplane.fixtures import LOGS
from tests.controlplane.plane import ControlPlane
from tests.faults.planes import own_plane
from tests.faults.scene import assert_all_stored_at, message_of, rewritten

WRITES = 16
SLEEPER = 1
"""The index of the API server that is stopped."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of two API servers with crdkeeper installed."""
    with own_plane(request, tmp_path_factory, api_servers=2) as plane:
        yield plane


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
    stale = []
    for round_ in range(3):
        flipped = kind.storing("v2" if kind.storage_version == "v1" else "v1")
        async with asleep(at_sleeper, kind, names, note=f"round {round_}"):
            await admin.apply_definition(flipped)
        stale.append(stored_at(admin, kind, kind.storage_version, names))
        kind = flipped
    assert any(stale), "no write was stored at the version before: is it no danger any more?"


async def test_nothing_counts_before_every_api_server_was_seen_awake(
    admins: tuple[Admin, Admin], start_operator: Callable[..., Operator]
) -> None:
    admin, at_sleeper = admins
    kind = CustomKind("frozen.example.com")
    await admin.apply_definition(kind)
    names = await admin.create_objects(kind, WRITES // 2)
    names += [f"new-{number}" for number in range(WRITES // 2)]
    await admin.opt_in(kind.group)
    operator = start_operator(admin.cluster)
    flipped = kind.storing("v2")

    async with asleep(at_sleeper, kind, names, note="written on waking"):
        await admin.apply_definition(flipped)
        await admin.create_migration("frozen", kind, apiServerLeases="Require")
        lease = await lease_of_sleeper(admin)
        only = (
            f"Waiting for 1 API server to renew an identity Lease in kube-system after the storage "
            f"version changed: {lease}."
        )
        migration = await admin.wait_for_migration(
            "frozen",
            lambda each: only in message_of(each, "Settled"),
            "waiting for the sleeper alone",
        )
        assert condition(migration, "Settled").reason == "APIServerNotSeen"
        assert migration.status.settled_resource_version is None
        assert operator.requests(kind.name) == 0
        assert rewritten(admin, flipped) == 0

    assert stored_at(admin, kind, "v1", names), "no write was stale: this run has shown nothing"
    await admin.wait_for_condition("frozen", "Succeeded", "True", seconds=60)
    await assert_all_stored_at(admin, flipped, WRITES)
    assert {await note_of(admin, flipped, each) for each in names} == {"written on waking"}


@asynccontextmanager
async def asleep(
    at_sleeper: Admin, kind: CustomKind, names: Sequence[str], *, note: str
) -> AsyncIterator[None]:
    """Stops this admin's API server. At the end, it receives a note for each name and wakes."""
    server = at_sleeper.cluster.api_servers[SLEEPER]

    async def write(name: str) -> Answer:
        body = kind.instance(name, version="v1", note=note)
        return await at_sleeper.client.send(
            "PATCH",
            f"{kind.path(name, version='v1')}?fieldManager=late&force=true",
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
    assert {each.code for each in await asyncio.gather(*writes)} <= {200, 201}


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
