"""A migration behind a load balancer: requests reach all API servers, also one that died and came back."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from crdkeeper.api.meta import CLI
from crdkeeper.cluster.resources.objects import PAGE, Endpoint, pages_of
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.cluster.transport.connector import REQUESTS_PER_CONNECTION
from tests.cluster.builtins.balancing import balanced
from tests.cluster.cli import jobsample
from tests.cluster.cli.migrations import FAST, SLOW, Shells
from tests.cluster.conftest import shells
from tests.cluster.harness import Admin, CustomKind, condition, eventually, outdated
from tests.cluster.harness.guarded import guarded
from tests.cluster.harness.requestcounts import requests_by_server
from tests.controlplane.fixtures import LOGS
from tests.controlplane.plane import ControlPlane
from tests.faults.planes import own_plane
from tests.faults.scene import assert_all_stored_at, assert_each_written_once, rewritten, write_counts
from tests.faults.shardcrew import SHARDS, Crew

__all__ = ["shells"]

SERVERS = 3
LOST = 1
"""The index of the API server that dies: the controllers and the admin use the first one."""
OBJECTS = 300


async def test_lists_reach_each_server(
    request: pytest.FixtureRequest, pair: ControlPlane, tmp_path: Path, group: str
) -> None:
    """They are sent one after the other, each over the connection of the one before."""
    request.node.stash.setdefault(LOGS, []).append(pair.logs)
    async with guarded(pair) as admin:
        kind = CustomKind(group)
        await admin.apply_definition(kind)
        await admin.create_objects(kind, 1)
        endpoint = Endpoint(kind.group, "v1", kind.plural)
        for index in range(len(pair.api_servers)):  # each one begins to serve it by itself
            async with Admin(pair, server=index) as other:

                async def served(other: Admin = other) -> bool:
                    return (await other.client.send("GET", kind.path())).code == 200

                await eventually(served)
        before = await requests_by_server(pair, kind, "LIST")
        with balanced(pair, tmp_path, pair.kubeconfig) as kubeconfig:
            async with Client(Connection(kubeconfig)) as client:
                for _ in range(2 * REQUESTS_PER_CONNECTION):
                    assert len((await endpoint.page(client, None, pages_of(PAGE))).items) == 1
        after = await requests_by_server(pair, kind, "LIST")
    grown = [new - old for new, old in zip(after, before, strict=True)]
    # Controllers may list it, too.
    assert all(each >= REQUESTS_PER_CONNECTION for each in grown), grown


@pytest.fixture(scope="module")
def three_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    with own_plane(request, tmp_path_factory, api_servers=SERVERS) as plane:
        yield plane


@pytest.fixture
def three(request: pytest.FixtureRequest, three_servers: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane of three API servers, of which a test may kill one."""
    request.node.stash.setdefault(LOGS, []).append(three_servers.logs)
    yield three_servers
    lost = three_servers.api_servers[LOST]
    if not lost.running:
        lost.start()
    lost.wait_ready()


@pytest.fixture
async def admin(three: ControlPlane) -> AsyncIterator[Admin]:
    async with guarded(three) as admin:
        yield admin


@pytest.fixture
async def crew(
    admin: Admin, three: ControlPlane, group: str, shells: Shells, tmp_path: Path
) -> AsyncIterator[tuple[Crew, CustomKind]]:
    """The processes of a run with the rights of the sample, all behind a balancer."""
    kind = await outdated(admin, CustomKind(group), OBJECTS, opt_in=False)
    account = await jobsample.account(admin, kind)
    for server in three.api_servers:
        at = tmp_path / f"{server.name}.kubeconfig"
        at.write_text(account.read_text().replace(three.url, server.url))
        await jobsample.until_granted(at, kind)
    with balanced(three, tmp_path, account) as kubeconfig:
        yield Crew(shells(kubeconfig), kind, "--settle-seconds=1"), kind


@pytest.mark.skipif(not os.environ.get("CRDKEEPER_SHARD_SERVERS"), reason="starts three API servers")
@pytest.mark.parametrize("processes", [1, SHARDS])
@pytest.mark.timeout(900)
async def test_a_server_dies_and_comes_back(
    admin: Admin, three: ControlPlane, crew: tuple[Crew, CustomKind], processes: int
) -> None:
    """Also the writes of a single process reach all of them."""
    run, kind = crew
    lost = three.api_servers[LOST]
    before = write_counts(admin, kind)
    limits = {"maxObjectsPerSecond": SLOW}
    # Not all API servers see the new storage version at the same time.
    await admin.create_migration(run.name, kind, managedBy=CLI, limits=limits, apiServerLeases="Require")
    for index in range(processes):
        run.start(index)
    first = run.alive[0]
    await first.until(lambda: rewritten(admin, kind) > 0)

    lost.kill()
    enough = rewritten(admin, kind) + 10 * SLOW
    # A request that meets the lost one is sent again, and a part that is given up is taken up again.
    await first.until(lambda: rewritten(admin, kind) >= enough)
    lost.start()
    await asyncio.to_thread(lost.wait_ready)
    assert rewritten(admin, kind) < OBJECTS
    await admin.patch_migration(run.name, limits={"maxObjectsPerSecond": FAST})
    await run.end(300)

    await assert_all_stored_at(admin, kind, OBJECTS)
    # Also those whose answers were lost: a rewrite that is sent again changes nothing.
    assert_each_written_once(admin, kind, since=before)
    made = await admin.migration(run.name)
    assert condition(made, "Succeeded").reason == "Migrated"
    assert made.status.progress.total == OBJECTS
    written = await requests_by_server(three, kind, "PATCH")
    print(f"rewrites by API server, since each started: {written}")
    assert all(written)
