"""The sample Indexed Job: pods that share a migration, and one that is killed on the way."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from crdkeeper.api.meta import CLI
from crdkeeper.api.storagemigration import MigrationShards, StorageMigration
from tests.cluster.cli import jobsample
from tests.cluster.harness import NAMESPACE, Admin, CustomKind, condition, outdated
from tests.cluster.harness.guarded import guarded
from tests.cluster.harness.installation import install
from tests.cluster.harness.manyobjects import put_objects
from tests.cluster.harness.requestcounts import requests_by_server
from tests.faults.scene import assert_all_stored_at, assert_each_written_once, rewritten, write_counts
from tests.node.cluster import NodeCluster
from tests.node.deployment import Deployment, Pod, until

SHARDS = 3
SLOW, FAST = 3, 1000
"""Objects per second: the run is slow until the test has seen what it needs."""
FEW = 300
MANY = 3000
"""So many that each pod opens many connections, which the Service leads to all API servers."""
SECONDS = 240
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


class Run:
    """The Job for one kind, suspended at first, and its StorageMigration, which a test can slow down."""

    def __init__(self, deployment: Deployment, admin: Admin, kind: CustomKind) -> None:
        (self._job,) = (
            each for each in jobsample.documents(kind, jobsample.SHARDED) if each["kind"] == "Job"
        )
        self.name: str = self._job["metadata"]["name"]
        self._deployment = deployment
        self._admin = admin
        self._kind = kind
        self.migration = ""

    async def start(self) -> None:
        """Creates both, and lets the pods begin."""
        await jobsample.account(self._admin, self._kind, sample=jobsample.SHARDED)
        self._job["spec"]["suspend"] = True
        (container,) = self._job["spec"]["template"]["spec"]["containers"]
        container["args"].append("--settle-seconds=1")
        made = await self._admin.create(JOBS, self._job)
        self.migration = f"{self._kind.plural}-{made['metadata']['uid']}"
        await self._admin.create_migration(
            self.migration,
            self._kind,
            managedBy=CLI,
            limits={"maxObjectsPerSecond": SLOW},
            apiServerLeases="Require",
        )
        self._deployment.kubectl("patch", "job", self.name, '--patch={"spec":{"suspend":false}}')

    async def under_way(self) -> MigrationShards:
        """The parts, once each pod has written something of its own."""

        def begun(made: StorageMigration) -> bool:
            shards = made.status.shards
            return (
                shards is not None
                and bool(shards.coordinator.holder)
                and all(each.holder and each.rewritten for each in shards.parts)
            )

        made = await self._admin.wait_for_migration(self.migration, begun, "under way in all parts")
        assert made.status.shards is not None
        return made.status.shards

    def pod(self, index: str) -> Pod:
        """The pod of an index."""
        selector = f"--selector=batch.kubernetes.io/job-name={self.name}"
        selector += f",batch.kubernetes.io/job-completion-index={index}"
        (found,) = json.loads(self._deployment.kubectl("get", "pods", selector, "--output=json"))["items"]
        return Pod.of(found)

    async def kill_coordinator(self) -> None:
        """Kills the process that coordinates, and works on a part; returns when its pod runs it again."""
        holder = (await self.under_way()).coordinator.holder
        # A Job names the host of a pod after itself and the pod's index.
        index = holder.removeprefix(f"{self.name}-").partition("-")[0]
        victim = self.pod(index)
        self._deployment.kill(victim)
        await asyncio.to_thread(until, lambda: self.pod(index).restarts > victim.restarts, SECONDS)

    async def end(self) -> dict[str, str]:
        """Lets it run fast to its end; returns what each pod has said."""
        await self._admin.patch_migration(self.migration, limits={"maxObjectsPerSecond": FAST})
        kubectl = self._deployment.kubectl
        await asyncio.to_thread(
            kubectl, "wait", f"job/{self.name}", "--for=condition=Complete", f"--timeout={SECONDS}s"
        )
        pods = kubectl("get", "pods", f"--selector=batch.kubernetes.io/job-name={self.name}", "--output=name")
        return {each: kubectl("logs", each) for each in pods.split()}

    def remove(self) -> None:
        """Deletes the Job with its pods."""
        self._deployment.kubectl("delete", "job", self.name, "--ignore-not-found")


async def assert_migrated(admin: Admin, kind: CustomKind, run: Run, count: int, logs: dict[str, str]) -> None:
    await assert_all_stored_at(admin, kind, count)
    made = await admin.migration(run.migration)
    assert condition(made, "Succeeded").reason == "Migrated"
    assert made.status.progress.total == count
    assert made.status.shards is not None
    assert all(each.done for each in made.status.shards.parts)
    assert len(logs) == SHARDS
    for said in logs.values():
        assert f"{count} objects proved to be stored at the storage version" in said.replace(",", "")
    assert any("shows no sign of life" in said for said in logs.values())


async def test_pods_share_a_migration_and_one_is_killed(
    deployment: Deployment, admin: Admin, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), FEW, opt_in=False)
    before = write_counts(admin, kind)
    run = Run(deployment, admin, kind)
    try:
        await run.start()
        await run.kill_coordinator()
        assert rewritten(admin, kind) < FEW
        logs = await run.end()
    finally:
        run.remove()
    await assert_migrated(admin, kind, run, FEW, logs)
    assert_each_written_once(admin, kind, since=before)


@pytest.fixture
def three(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """crdkeeper on a cluster of its own, whose Service `kubernetes` leads to three API servers."""
    directory = tmp_path_factory.mktemp("three")
    with NodeCluster(directory, nodes=2, api_servers=3, archives=(image,)) as cluster, cluster.network():
        install(cluster.plane)
        yield Deployment(cluster)


@pytest.fixture
async def admin_of_three(three: Deployment) -> AsyncIterator[Admin]:
    async with guarded(three.plane) as admin:
        yield admin


@pytest.mark.timeout(1200)
async def test_pods_reach_three_api_servers_of_which_one_is_lost(
    three: Deployment, admin_of_three: Admin, group: str
) -> None:
    admin, lost = admin_of_three, three.plane.api_servers[-1]

    def endpoints() -> list[str]:
        path = "jsonpath={.endpoints[*].addresses[0]}"
        slices = ("get", "endpointslice", "kubernetes", "--namespace=default", f"--output={path}")
        return three.plane.kubectl(*slices).split()

    until(lambda: len(endpoints()) == len(three.plane.api_servers), SECONDS)
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await put_objects(admin, kind, MANY)
    kind = kind.storing("v2")
    await admin.apply_definition(kind)
    before = write_counts(admin, kind)
    run = Run(three, admin, kind)
    await run.start()
    await run.kill_coordinator()
    lost.kill()
    enough = rewritten(admin, kind) + 10 * SLOW
    await asyncio.to_thread(until, lambda: rewritten(admin, kind) >= enough, SECONDS)
    lost.start()
    await asyncio.to_thread(lost.wait_ready)
    until(lambda: len(endpoints()) == len(three.plane.api_servers), SECONDS)
    logs = await run.end()

    await assert_migrated(admin, kind, run, MANY, logs)
    assert_each_written_once(admin, kind, since=before)
    written = await requests_by_server(three.plane, kind, "PATCH")
    print(f"rewrites by API server, since each started: {written}")
    assert all(written)
    run.remove()
