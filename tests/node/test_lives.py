"""Pods do what else an operator does in a CRD's life, and after kill -9 they go on with it.

They retire a version, release a finalizer and migrate built-in resources, with the rights that people grant.
"""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.api.meta import find_condition
from tests.cluster.builtins import encrypting as builtins
from tests.cluster.finalizers import scene as finalizers
from tests.cluster.harness import Admin, CustomKind
from tests.cluster.retirement import scene as retirement
from tests.node.deployment import OPERATOR, Deployment, Pod, until

OBJECTS: Final = 120
SECONDS: Final = 120.0
SLOWLY: Final[dict[str, Any]] = {**retirement.AT_ONCE, "limits": {"maxObjectsPerSecond": 3}}
"""So that the pod is killed while it writes objects again."""
RESTRICTED: Final = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0000000000000000"}


class Run:
    """What the pods are asked for."""

    def __init__(self, admin: Admin, group: str) -> None:
        self.admin = admin
        self.kind = CustomKind(group)
        self.held = CustomKind(group, plural="tables", kind="Table")
        self.policy = f"lives.{group}"

    async def begin(self) -> None:
        """Asks for all three, with the rights for them."""
        await retirement.moved(self.admin, self.kind.group, OBJECTS)
        await retirement.permit(self.admin, self.kind)
        await finalizers.let_release(self.admin, self.kind.group)
        await self.admin.opt_in("", "configmaps")
        await builtins.see_metrics(self.admin)
        await finalizers.policy(self.admin, self.kind.group, finalizers.rule())
        await self.release("first")
        await builtins.create_policy(self.admin, self.policy, "configmaps")
        await builtins.until(self.admin, self.policy, builtins.is_ready("Current"), "current")

    async def release(self, name: str) -> None:
        """Returns when the finalizer of an object in deletion, which had one, is released."""
        await finalizers.create_held(self.admin, self.held, [name])
        await finalizers.until_finalizers(self.admin, self.held, {}, seconds=SECONDS)

    async def until_half_written(self) -> None:
        """Returns in the middle of the migration."""
        await self.admin.wait_until_stored(self.kind, retirement.NEW, OBJECTS // 12)

    async def hurry(self, name: str) -> None:
        """Lets the migration write as fast as it can from now on."""
        migration = (await retirement.retirement(self.admin, name)).status.migration
        await self.admin.patch_migration(migration, limits={"maxObjectsPerSecond": None})

    async def end(self, name: str) -> None:
        """Returns when the version is gone, and the other two are done once more."""
        before = builtins.resource(await builtins.policy(self.admin, self.policy), "configmaps")
        path = f"{builtins.POLICIES}/{self.policy}"
        await self.admin.merge(path, {"spec": {"encryptionKey": "another"}})
        await self.release("second")
        current = builtins.changed_after(
            before, lambda each: builtins.is_ready("Current")(each) and told(each)
        )
        await builtins.until(self.admin, self.policy, current, "current again", seconds=SECONDS)
        await retirement.until_ready(self.admin, name, "True", "Removed", seconds=SECONDS)
        await retirement.assert_retired(self.admin, self.kind, OBJECTS)


def told(found: BuiltinPolicy) -> bool:
    """Whether the policy says what is so on this cluster: no API server encrypts."""
    seen = find_condition(found.status.conditions, "EncryptionObserved")
    return seen is not None and (seen.status, seen.reason) == ("True", "NotEncrypted")


@pytest.fixture
async def run(admin: Admin, group: str) -> AsyncIterator[Run]:
    run = Run(admin, group)
    async with finalizers.held_objects(admin, run.held):
        yield run


def restricted(deployment: Deployment, pod: Pod) -> None:
    """The processes of the pod have no rights on their node, and cannot write to the image's files."""
    processes = deployment.processes(pod)
    assert processes
    for each in processes:
        lines = Path(f"/proc/{each}/status").read_text().splitlines()
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        assert {name: status[name] for name in RESTRICTED} == RESTRICTED
        assert "0" not in status["Uid"].split()
        mounts = [line.split() for line in Path(f"/proc/{each}/mounts").read_text().splitlines()]
        assert ["ro" in options.split(",") for _, at, _, options, *_ in mounts if at == "/"] == [True]


@pytest.mark.timeout(600)
async def test_pods_go_on_after_a_kill(deployment: Deployment, run: Run) -> None:
    await run.begin()
    pods = deployment.ready(OPERATOR)
    leader = next(each for each in pods if each.name == deployment.leader())
    processes = deployment.processes(leader)
    written = run.admin.etcd.write_counts(run.kind.etcd_key(""))
    name = await retirement.retire(run.admin, run.kind, mode="Execute", migration=SLOWLY)
    try:
        await run.until_half_written()
        for each in processes:
            with suppress(ProcessLookupError):  # all others of a container end with its first one
                os.kill(each, signal.SIGKILL)
        assert run.admin.stored(run.kind)[retirement.OLD], "the kill was too late to be in the middle"
        await run.hurry(name)
        await run.end(name)
        counts = run.admin.etcd.write_counts(run.kind.etcd_key(""))
        del written[run.kind.etcd_key("db-00000")]  # written by the last check
        assert {counts[key] - count for key, count in written.items()} == {1}, "not once each"
        wanted = {each.name: each.restarts + (each is leader) for each in pods}
        until(lambda: {each.name: each.restarts for each in deployment.ready(OPERATOR)} == wanted, SECONDS)
        for pod in deployment.ready(OPERATOR):
            restricted(deployment, pod)
    finally:
        deployment.replace(leader.name)
