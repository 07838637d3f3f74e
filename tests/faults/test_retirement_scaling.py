"""What becomes of an autoscaler, and of a budget for evictions, that name a version that is retired."""

import json
import os
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.api.versionretirement import NOT_SERVED, VersionRetirement
from crdkeeper.cluster.transport.client import JSON_PATCH
from tests.cluster.harness import Admin, CustomKind, Operator, eventually, install
from tests.cluster.harness.admin import MIGRATIONS
from tests.cluster.harness.guarded import guarded
from tests.cluster.reports.live.scene import change_versions
from tests.cluster.retirement.scene import (
    AT_ONCE,
    NEW,
    OLD,
    RETIREMENTS,
    moved,
    permit,
    retire,
    retirement,
    until,
    until_ready,
    versions,
)
from tests.controlplane.plane import CONTROLLERS, ControlPlane

HPA = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
PDB = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS = "/api/v1/namespaces/default/pods"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
TARGET = "db-00000"
LABELS = {"app": "databases"}
NAMES = ("databases-0", "databases-1")
SCALED = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.readyReplicas"},
}


@pytest.fixture
def scaling_plane(start_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A control plane with crdkeeper installed and the controllers of autoscalers and budgets."""
    plane = start_plane(
        controllers=(*CONTROLLERS, "horizontal-pod-autoscaler-controller"),
        extra_controller_manager_flags={"horizontal-pod-autoscaler-sync-period": "1s"},
    )
    install(plane)
    return plane


@pytest.fixture
async def admin(scaling_plane: ControlPlane) -> AsyncIterator[Admin]:
    async with guarded(scaling_plane) as admin:
        yield admin


async def make(admin: Admin, kind: CustomKind) -> None:
    """An autoscaler, two ready pods and a budget of a database; all name it at the old version."""
    owner = await admin.get(kind.path(TARGET, version=OLD))
    target = {"apiVersion": kind.api_version(OLD), "kind": kind.kind, "name": TARGET}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "databases"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9},
    }
    await admin.create(HPA, autoscaler)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "databases"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}},
    }
    await admin.create(PDB, budget)

    async def account() -> bool:
        return await admin.find(ACCOUNT) is not None

    await eventually(account, otherwise=lambda: "the namespace has no ServiceAccount for pods")
    reference = {**target, "uid": owner["metadata"]["uid"], "controller": True}
    container = {"name": "c", "image": "registry.example.com/none:1"}
    for name in NAMES:
        metadata = {"name": name, "labels": LABELS, "ownerReferences": [reference]}
        spec = {"automountServiceAccountToken": False, "containers": [container]}
        await admin.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await admin.merge(f"{PODS}/{name}/status", {"status": ready})


async def until_scaled(admin: Admin, kind: CustomKind, replicas: int) -> None:
    """Asks the autoscaler for more replicas: it reads and writes /scale then, and says that it can."""
    await admin.merge(f"{HPA}/databases", {"spec": {"minReplicas": replicas}})
    seen: list[Any] = []

    async def so() -> bool:
        found = (await admin.get(kind.path(TARGET, version=NEW)))["spec"]["replicas"]
        said = (await admin.get(f"{HPA}/databases")).get("status", {}).get("conditions") or []
        seen[:] = [found, said]
        able = [each["status"] for each in said if each["type"] == "AbleToScale"]
        return found == replicas and able == ["True"]

    await eventually(so, otherwise=lambda: f"not scaled to {replicas}: {seen}")


_LOOKS = count()


async def until_budget(admin: Admin, reason: str, allowed: int, expected: int | None = None) -> str:
    """Has the budget counted again until it says so; returns its message."""
    seen: list[Any] = []

    async def so() -> str | None:
        # Its controller looks when a pod changes.
        await admin.merge(f"{PODS}/{NAMES[0]}", {"metadata": {"annotations": {"look": str(next(_LOOKS))}}})
        status = (await admin.get(f"{PDB}/databases")).get("status") or {}
        seen[:] = [status]
        said = [each for each in status.get("conditions") or [] if each["type"] == "DisruptionAllowed"]
        counted = expected is None or status["expectedPods"] == expected
        so = [each["reason"] for each in said] == [reason] and status["disruptionsAllowed"] == allowed
        return (said[0].get("message") or "-") if so and counted else None

    return await eventually(so, every=0.5, otherwise=lambda: f"not {reason}, {allowed} allowed: {seen}")


async def evicted(admin: Admin) -> int:
    """What the API server answers to an eviction, such as that of `kubectl drain`."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": NAMES[0]}}
    path = f"{PODS}/{NAMES[0]}/eviction?dryRun=All"
    return (await admin.client.send("POST", path, content=json.dumps(body).encode())).code


def not_served(found: VersionRetirement) -> bool:
    step = find_condition(found.status.conditions, NOT_SERVED)
    return step is not None and step.status == "True"


@pytest.mark.skipif(not os.environ.get("CRDKEEPER_RETIREMENT_FAULTS"), reason="waits for half a minute")
async def test_an_autoscaler_goes_on_and_a_budget_fails(
    admin: Admin, scaling_plane: ControlPlane, start_operator: Callable[..., Operator], group: str
) -> None:
    manager = scaling_plane.controller_manager
    assert manager is not None
    kind = await moved(admin, group, 1)
    await change_versions(admin, kind, subresources=SCALED)
    await permit(admin, kind)
    await make(admin, kind)
    await until_scaled(admin, kind, 2)
    await until_budget(admin, "SufficientPods", 1, expected=2)
    assert await evicted(admin) == 201

    # Stays there: its migration waits for writes that are on their way.
    start_operator(scaling_plane)
    name = await retire(admin, kind, mode="Execute", migration={**AT_ONCE, "settleSeconds": 600})
    found = await until(admin, name, not_served, "not served any more")
    assert any("PodDisruptionBudget" in each for each in found.status.evidence.unknown)
    # The controllers find kinds by a common table, which they make anew every half minute. The budget shows
    # that it is without the version, so that the autoscaler cannot have scaled by the one of before.
    refused = f'no matches for kind "{kind.kind}" in version "{kind.api_version(OLD)}"'
    assert refused in await until_budget(admin, "SyncFailed", 0)
    assert await evicted(admin) == 429
    await until_scaled(admin, kind, 3)

    manager.restart()
    # What the budget says then was said by the new process.
    await admin.merge(f"{PDB}/databases/status", {"status": {"conditions": []}})
    assert refused in await until_budget(admin, "SyncFailed", 0)
    await until_scaled(admin, kind, 4)
    assert (await versions(admin, kind))[OLD]["served"] is False

    # Without its migration, the retirement makes another one, which does not wait.
    await admin.merge(f"{RETIREMENTS}/{name}", {"spec": {"migration": AT_ONCE}})
    migration = (await retirement(admin, name)).status.migration
    await admin.delete(f"{MIGRATIONS}/{migration}")
    await until_ready(admin, name, "True", "Removed", seconds=200)
    await until_scaled(admin, kind, 5)

    # For an integer minAvailable, it is enough to know how many pods there are.
    await admin.merge(f"{PDB}/databases", {"spec": {"minAvailable": 1, "maxUnavailable": None}})
    await until_budget(admin, "SufficientPods", 1, expected=2)
    assert await evicted(admin) == 201
    # That of the owner is found by references that name the other version.
    await admin.merge(f"{PDB}/databases", {"spec": {"minAvailable": None, "maxUnavailable": 4}})
    assert refused in await until_budget(admin, "SyncFailed", 0)
    path, value = "/metadata/ownerReferences/0/apiVersion", kind.api_version(NEW)
    for each in NAMES:
        replace = [{"op": "replace", "path": path, "value": value}]
        await admin.client.request("PATCH", f"{PODS}/{each}", replace, content_type=JSON_PATCH)
    await until_budget(admin, "SufficientPods", 1, expected=5)
    assert await evicted(admin) == 201
