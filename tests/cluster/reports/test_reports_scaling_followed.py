"""ScalingReady of what only time shows, and beside many autoscalers of one namespace.

The operator reads the time from the API server's answers: a proxy between the two is ahead by ten minutes.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta

import pytest

from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, Operator, each_of, eventually
from tests.cluster.harness.customkind import Version
from tests.cluster.harness.faultproxy import FaultProxy
from tests.cluster.reports.live.scene import change_versions, let_read
from tests.cluster.reports.test_reports_scaling import (
    HPAS,
    PDBS,
    PODS,
    SCALED,
    SCHEMA,
    autoscaler,
    permit,
    pod,
    told,
)
from tests.controlplane.cluster import Cluster

pytestmark = pytest.mark.timeout(900)

NAMESPACES = "/api/v1/namespaces"
AUTOSCALERS = int(os.environ.get("CRDKEEPER_AUTOSCALERS", "1100"))
"""More than are kept of one namespace."""


@pytest.fixture
def proxy(installed: Cluster) -> Iterator[FaultProxy]:
    with FaultProxy(installed) as proxy:
        yield proxy


@pytest.fixture
async def scaled(admin: Admin, group: str) -> CustomKind:
    """A kind with an object that has a pod, and an autoscaler that can scale it."""
    kind = CustomKind(group, versions=(Version("v1", storage=True),))
    name = group.partition(".")[0]
    await permit(admin)
    await let_read(admin, group)
    await admin.apply_definition(kind)
    await change_versions(admin, kind, subresources=SCALED, schema=SCHEMA)
    await admin.create_objects(kind, 1)
    await pod(admin, name, {"app": name}, await admin.get(kind.path("db-00000")))
    status = {"replicas": 1, "selector": f"app={name}"}

    async def counted() -> bool:
        # What the former schema does not have is dropped while the API server still serves it.
        found = await admin.merge(f"{kind.path('db-00000')}/status", {"status": status})
        return bool(found.get("status") == status)

    await eventually(counted)
    await autoscaler(admin, kind, name, "db-00000")
    return kind


async def test_replicas_that_do_not_follow(
    admin: Admin,
    scaled: CustomKind,
    proxy: FaultProxy,
    installed: Cluster,
    start_operator: Callable[..., Operator],
    group: str,
) -> None:
    name = group.partition(".")[0]
    path = scaled.path("db-00000")
    said = f"HorizontalPodAutoscaler default/{name}: "
    works = [
        {"type": type_, "status": "True", "reason": "Works", "message": "It works."}
        for type_ in ("AbleToScale", "ScalingActive")
    ]
    wanted = {"currentReplicas": 1, "desiredReplicas": 3, "conditions": works}
    await admin.merge(f"{HPAS}/{name}/status", {"status": wanted})
    kubeconfig = proxy.kubeconfig(installed.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT))
    start_operator(installed, flags={"kubeconfig": str(kubeconfig)})

    async def replicas(spec: int, status: int) -> None:
        """Returns when the operator has seen that, and ten minutes are over."""
        await admin.merge(path, {"spec": {"replicas": spec}})
        await admin.merge(f"{path}/status", {"status": {"replicas": status}})
        since = len(proxy.requests)

        def reads() -> int:
            return [each.path for each in proxy.requests[since:]].count(f"{path}/scale")

        async def seen() -> bool:
            # Each change of the CRD has the operator ask again; `told` makes another one.
            await change_versions(admin, scaled, additionalPrinterColumns=[])
            await told(admin, scaled, "True/Working")
            return reads() >= 3  # SubresourcesReady reads it, too.

        await eventually(seen, otherwise=lambda: f"read {reads()} times")
        proxy.ahead += timedelta(minutes=11)

    # Its controller creates no pods.
    await replicas(3, 1)
    expected = f"{said}spec has 3 replicas, but status stays at 1."
    await told(admin, scaled, "False/ReplicasNotFollowed", expected)
    # Somebody else puts back what the autoscaler wrote.
    await replicas(2, 2)
    expected = f"{said}it wants 3 replicas, but spec stays at 2."
    await told(admin, scaled, "False/ReplicasOverwritten", expected)
    await replicas(3, 3)
    await told(admin, scaled, "True/Working")


async def test_pods_that_a_budget_misses(
    admin: Admin,
    scaled: CustomKind,
    proxy: FaultProxy,
    installed: Cluster,
    start_operator: Callable[..., Operator],
    group: str,
) -> None:
    """The autoscaler finds nothing wrong: the object's controller claims the pods, and creates only one."""
    name = group.partition(".")[0]
    path, budget = scaled.path("db-00000"), f"{PDBS}/{name}"
    await admin.merge(path, {"spec": {"replicas": 3}})
    await admin.merge(f"{path}/status", {"status": {"replicas": 3}})
    selector = {"matchLabels": {"app": name}}
    await admin.create(
        PDBS,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"maxUnavailable": 1, "selector": selector},
        },
    )
    admin.cleans_up(budget)

    async def expects_three() -> bool:
        """The budget's controller looks when one of its pods changes, and may not know the kind yet."""
        looked = {"metadata": {"annotations": {"looked": str(loop.time())}}}
        await admin.merge(f"{PODS}/{name}", looked)
        status = (await admin.get(budget)).get("status") or {}
        return bool(status.get("expectedPods") == 3)

    loop = asyncio.get_running_loop()
    await eventually(expects_three, every=1.0)
    kubeconfig = proxy.kubeconfig(installed.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT))
    start_operator(installed, flags={"kubeconfig": str(kubeconfig)})
    await told(admin, scaled, "True/Working")
    proxy.ahead += timedelta(minutes=11)
    expected = f"PodDisruptionBudget default/{name}: it selects 1 pod of db-00000, but spec.replicas is 3."
    await told(admin, scaled, "False/PodsMissing", expected)

    owner = await admin.get(path)
    for more in range(2):
        await pod(admin, f"{name}-{more}", {"app": name}, owner)
    # No node runs them: they are not healthy, so that the budget allows no evictions as before.
    await told(admin, scaled, "True/Working")


@pytest.fixture
async def crowd(admin: Admin, group: str) -> AsyncIterator[str]:
    """A namespace with many autoscalers, which comes before all others."""
    namespace = f"aaa-{group.partition('.')[0]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await admin.client.request("POST", NAMESPACES, body)
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"

    async def create(name: str) -> None:
        reference = {"apiVersion": "crowd.example.org/v1", "kind": f"Kind{name}", "name": "x"}
        body = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {"scaleTargetRef": reference, "maxReplicas": 2},
        }
        await admin.client.request("POST", path, body)

    try:
        await each_of([f"a{at:05}" for at in range(AUTOSCALERS)], create)
        yield namespace
    finally:
        await admin.client.request("DELETE", path)
        await admin.delete(f"{NAMESPACES}/{namespace}")


@pytest.mark.timeout(900 + AUTOSCALERS / 10)
async def test_many_autoscalers_of_one_namespace(
    admin: Admin, scaled: CustomKind, crowd: str, operator: Operator, group: str
) -> None:
    """They hide nothing from the reports of others, which only say that something is not counted there."""
    # It takes long to list so many.
    seconds = 150 + AUTOSCALERS / 50
    crowded = f"Not all of those in {crowd} could be counted."
    can = f"1 HorizontalPodAutoscaler can scale objects of the kind. {crowded}"
    await told(admin, scaled, "True/Working", can, seconds=seconds)
    await admin.delete(scaled.path("db-00000"))
    await told(admin, scaled, "False/TargetMissing", "HorizontalPodAutoscaler default/")
    await admin.delete(f"{HPAS}/{group.partition('.')[0]}")
    await told(admin, scaled, "True/NotUsed", crowded, seconds=seconds)
