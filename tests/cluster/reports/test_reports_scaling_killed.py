"""kill -9 of the operator while what scales objects and what writes their status is broken and repaired.

Another manager does both, in any order, and writes into the report, too. CRDKEEPER_SCALED_OBJECTS is how many
objects of the kind there are.
"""

import asyncio
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.customkind import Version
from tests.cluster.harness.manyobjects import put_objects
from tests.cluster.reports.live.scene import change_versions, let_read
from tests.cluster.reports.reports import REPORTS, condition_of, report_where, reported
from tests.cluster.reports.test_reports_scaling import (
    PDBS,
    PODS,
    SCALE,
    SCALED,
    SCHEMA,
    autoscaler,
    permit,
    pod,
)
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "3"))
OBJECTS = int(os.environ.get("CRDKEEPER_SCALED_OBJECTS", "50"))
SCALED_OBJECT = "db-00000"
WRITTEN_OBJECT = "copy-00000"
"""Another object, so that the writes to the one say nothing of the other. It is among the first 500."""
SCALING, WRITERS = "ScalingReady", "StatusWritersReady"
FORGED = {SCALING: "NotUsed", WRITERS: "NoStatus"}
"""Reasons that an operator keeps from the report until it knows better, and that are never right here."""


@dataclass(slots=True)
class Scene:
    """A kind with an autoscaler, a budget, and a controller, and what is broken of them."""

    admin: Admin
    kind: CustomKind
    dice: random.Random
    selector: str = ""
    owner_version: str = "v1"
    subresource: bool = True
    through_main: bool = False
    """Whether the status of an object was last written through the main resource."""
    doors: dict[str, str] = field(default_factory=dict)
    """Through which resource each field of the status of the scaled object was last changed."""
    writes: int = 0

    @property
    def name(self) -> str:
        """That of the autoscaler, the budget, the pod, and its label."""
        return self.kind.group.partition(".")[0]

    async def write(self, name: str, door: str, **status: Any) -> dict[str, Any]:
        """A controller writes a status; returns the object as it is then."""
        path = f"{self.kind.path(name)}{door}?fieldManager=controller"
        return await self.admin.client.request("PATCH", path, {"status": status}, content_type=MERGE_PATCH)

    async def select(self, selector: str) -> None:
        """The controller writes the selector of the pods, where it arrives."""
        door = "/status" if self.subresource else ""
        await self.write(SCALED_OBJECT, door, replicas=1, selector=selector)
        # What stays as it is stays its former writer's.
        self.doors.setdefault("replicas", door)
        if selector != self.selector or "selector" not in self.doors:
            self.doors["selector"] = door
        self.selector = selector

    async def own(self, version: str) -> None:
        """The pod's ownerReference names a version. v0 is not served, so that the budget fails."""
        (reference,) = (await self.admin.get(f"{PODS}/{self.name}"))["metadata"]["ownerReferences"]
        reference["apiVersion"] = f"{self.kind.group}/{version}"
        await self.admin.merge(f"{PODS}/{self.name}", {"metadata": {"ownerReferences": [reference]}})
        self.owner_version = version

    async def until_budget_follows(self) -> None:
        """The controller of budgets looks once after each change of a pod, and may not know the kind yet."""
        wanted = "SyncFailed" if self.owner_version == "v0" else "InsufficientPods"

        async def follows() -> bool:
            await self.admin.merge(
                f"{PODS}/{self.name}", {"metadata": {"annotations": {"looked": str(self.dice.random())}}}
            )
            found = (await self.admin.get(f"{PDBS}/{self.name}")).get("status") or {}
            return [each["reason"] for each in found.get("conditions") or ()] == [wanted]

        await eventually(follows, every=1.0, otherwise=lambda: f"the budget is not {wanted}")

    async def serve(self, *, status: bool) -> None:
        """The CRD with or without the status subresource; returns when the API server serves it so."""
        await change_versions(self.admin, self.kind, subresources=SCALED if status else {"scale": SCALE})

        async def served() -> bool:
            return (await self.admin.find(f"{self.kind.path(WRITTEN_OBJECT)}/status") is not None) == status

        await eventually(served)
        self.subresource = status

    async def write_status(self, door: str) -> None:
        """The controller writes a new status through the one resource or the other."""
        self.writes += 1
        found = await self.write(WRITTEN_OBJECT, door, observedGeneration=self.writes)
        arrives = (door == "/status") == self.subresource
        assert ((found.get("status") or {}).get("observedGeneration") == self.writes) == arrives
        if arrives:
            self.through_main = not door

    async def forge(self) -> None:
        """Somebody writes into the report, if there is one."""
        found = await self.admin.find(f"{REPORTS}/{self.kind.name}")
        conditions = ((found or {}).get("status") or {}).get("conditions") or []
        for each in conditions:
            if each["type"] in FORGED:
                each.update(status="True", reason=FORGED[each["type"]])
        if conditions:
            path = f"{REPORTS}/{self.kind.name}/status"
            await self.admin.merge(path, {"status": {"conditions": conditions}})

    async def change(self) -> None:
        """Something breaks or is repaired."""
        match self.dice.randrange(5):
            case 0:
                await self.select(self.dice.choice(("", f"app={self.name}", f"app=not-{self.name}")))
            case 1:
                await self.own(self.dice.choice(("v0", "v1")))
            case 2:
                await self.serve(status=not self.subresource)
            case 3:
                await self.write_status(self.dice.choice(("", "/status")) if self.subresource else "")
            case _:
                await self.forge()

    def holds(self, report: DefinitionReport) -> bool:
        """Whether a report says all that is broken, and nothing else."""
        if (reported(report, SCALING), reported(report, WRITERS)) != self.expected():
            return False
        said = condition_of(report, SCALING).message
        fails = f"PodDisruptionBudget default/{self.name}: ownerReferences of its pods name v0, which is not"
        return (
            (fails in said) == (self.owner_version == "v0")
            and (f"HorizontalPodAutoscaler default/{self.name}: " in said) == bool(self._autoscaler_fault())
            and (not self._objects_written() or self._written() in condition_of(report, WRITERS).message)
            and reported(report, "SubresourcesReady") == "True/ScaleRead"
            and reported(report, "Ready") == "True/Healthy"
        )

    def expected(self) -> tuple[str, str]:
        """ScalingReady and StatusWritersReady."""
        fault = self._autoscaler_fault() or ("BudgetFails" if self.owner_version == "v0" else "")
        scaling = f"False/{fault}" if fault else "True/Working"
        if not self._objects_written():
            return scaling, "True/StatusWritten"
        return scaling, "True/WrittenBeforeSubresource" if self.subresource else "False/NoStatusSubresource"

    def _autoscaler_fault(self) -> str:
        return {"": "SelectorMissing", f"app={self.name}": ""}.get(self.selector, "NoPodsSelected")

    def _objects_written(self) -> int:
        """Whose status was written through the main resource; with the subresource, only there."""
        doors = self.doors.values()
        if not doors or OBJECTS > 500:  # the scaled object would come after the first 500
            return int(self.through_main)
        return self.through_main + (not any(doors) if self.subresource else "" in doors)

    def _written(self) -> str:
        read = "the first 500" if OBJECTS > 500 else str(OBJECTS)
        return (
            f"The status of {self._objects_written()} of {read} objects was "
            f"{'last written there' if self.subresource else 'written'}"
        )


async def build(admin: Admin, group: str, dice: random.Random) -> Scene:
    """Everything works, but that the controller has written no selector yet."""
    scene = Scene(admin, CustomKind(group, versions=(Version("v1", storage=True),)), dice)
    await permit(admin)
    await let_read(admin, group)
    await admin.apply_definition(scene.kind)
    await change_versions(admin, scene.kind, subresources=SCALED, schema=SCHEMA)
    await put_objects(admin, scene.kind, OBJECTS)
    await pod(admin, scene.name, {"app": scene.name}, await admin.get(scene.kind.path(SCALED_OBJECT)))
    await autoscaler(admin, scene.kind, scene.name, SCALED_OBJECT)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": scene.name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": scene.name}}},
    }
    await admin.create(PDBS, budget)
    admin.cleans_up(f"{PDBS}/{scene.name}")
    return scene


@pytest.mark.timeout(300 + 40 * KILLS + OBJECTS / 50)
async def test_kills_at_random_instants(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    """After the last start, the report says what is broken then, whatever was said before."""
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS} CRDKEEPER_SCALED_OBJECTS={OBJECTS}")
    dice = random.Random(seed)
    scene = await build(admin, group, random.Random(dice.random()))
    operator = start_operator(installed)
    await report_where(admin, scene.kind.name, lambda report: bool(reported(report, SCALING)))
    stop = asyncio.Event()

    async def interfere() -> None:
        while not stop.is_set():
            await scene.change()
            await asyncio.sleep(scene.dice.uniform(0.0, 1.0))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(interfere())
        for _ in range(KILLS):
            if not operator.running:
                operator.start(wait=dice.random() > 0.3)
            await asyncio.sleep(dice.uniform(0.0, 4.0))
            operator.kill()
        stop.set()

    # Now nobody tells the operator: what it finds at its start is all.
    for _ in range(5):
        await scene.change()
    await scene.own("v1" if scene.owner_version == "v0" else "v0")
    await scene.until_budget_follows()
    await scene.forge()
    print(f"expected: {scene.expected()}")
    operator.start()
    await report_where(admin, scene.kind.name, scene.holds, str(scene.expected()))
    assert "Traceback" not in operator.log_since()
