"""A composite waits for its objects as kstatus does: here, controllers drive some of them, without a node."""

from typing import Any

import pytest

from tests.cluster.composition.composing import PODS, Composing, run_pods
from tests.cluster.harness import eventually

Json = Any
APPS = "/apis/apps/v1/namespaces/default"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PROTECTION = "kubernetes.io/pvc-protection"
LABELS = {"app": "${composite.metadata.name}"}
POD = {"containers": [{"name": "main", "image": "registry.example.com/none"}]}


def resource(name: str, api_version: str, kind: str, spec: Json = None, labels: Json = None) -> Json:
    """A resource without readyWhen."""
    metadata = {"name": "${composite.metadata.name}", "labels": labels or {}}
    template = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    return {"name": name, "template": template if spec is None else {**template, "spec": spec}}


def workload(which: str, **more: Any) -> Json:
    """The spec of what makes pods."""
    labels = {**LABELS, "of": which}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{**POD["containers"][0], "args": ["${composite.spec.engine}"]}]},
    }
    return {"selector": {"matchLabels": labels}, "template": template, **more}


RESOURCES = [
    resource("deployment", "apps/v1", "Deployment", workload("deployment", replicas=2)),
    resource("replicaSet", "apps/v1", "ReplicaSet", workload("replicaSet", replicas=1)),
    resource("statefulSet", "apps/v1", "StatefulSet", workload("statefulSet", serviceName="none")),
    resource("daemonSet", "apps/v1", "DaemonSet", workload("daemonSet")),
    resource("pod", "v1", "Pod", POD, LABELS),
    resource(
        "job", "batch/v1", "Job", {"template": {"spec": {**POD, "restartPolicy": "Never"}}, "backoffLimit": 0}
    ),
    resource(
        "claim",
        "v1",
        "PersistentVolumeClaim",
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    resource("service", "v1", "Service", {"ports": [{"port": 80}], "selector": LABELS}),
    resource("budget", "policy/v1", "PodDisruptionBudget", {"selector": {"matchLabels": LABELS}}),
    resource("account", "v1", "ServiceAccount"),
]
PENDING = {
    "deployment": "0 of 2 replicas are available",
    "replicaSet": "0 of 1 replicas are available",
    "statefulSet": "0 of 1 replicas are ready",
    "daemonSet": "0 of 0 pods are updated and ready",
    "pod": "the pod is Pending",
    "claim": "the volume claim is Pending",
}
"""What is said while nobody runs pods."""
STATUS: dict[str, Json] = {
    f"{APPS}/statefulsets": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
    f"{APPS}/daemonsets": {
        "currentNumberScheduled": 1,
        "desiredNumberScheduled": 1,
        "numberMisscheduled": 0,
        "numberReady": 1,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
    },
    CLAIMS: {"phase": "Bound"},
}
"""What controllers write that do not run here."""


def waiting(found: Json) -> dict[str, str]:
    """By resource: why its object is not ready."""
    state = (found.get("status") or {}).get("crdkeeper") or {}
    return {each["name"]: each["message"] for each in state.get("resources") or () if not each["ready"]}


async def run(composing: Composing, name: str) -> None:
    """Report all pods of a composite as ready, and the status of what has no controller here."""
    await run_pods(composing, f"app={name}")
    for kind, status in STATUS.items():
        found = await composing.author.get(f"{kind}/{name}")
        seen = {**status, "observedGeneration": found["metadata"].get("generation")}
        await composing.patch(f"{kind}/{name}/status", {"status": seen}, manager="controller")


@pytest.mark.composes(
    *(f"{each}.apps" for each in ("deployments", "replicasets", "statefulsets", "daemonsets")),
    *("pods", "jobs.batch", "persistentvolumeclaims", "services", "poddisruptionbudgets.policy"),
    "serviceaccounts",
)
async def test_each_kind_is_waited_for(composing: Composing, group: str) -> None:
    author, name = composing.author, group.replace(".", "-")
    await composing.compose(*RESOURCES)
    await composing.create(name)
    await composing.until(name, lambda found: waiting(found) == PENDING)
    said = "deployment: Deployment default/", "0 of 2 replicas are available", "And 3 more."
    await composing.says(name, "Ready", "False", "Creating", *said)

    async def all_run() -> bool:
        # Its controllers may still make some of the pods.
        await run(composing, name)
        return not waiting(await author.get(composing.path(name)))

    await eventually(all_run)
    await composing.ready(name)

    # A rollout is waited for, too: the pods of before do not count.
    await composing.create(name, engine="Postgres")
    await composing.until(
        name, lambda found: waiting(found).get("deployment") == "1 of 2 replicas are updated"
    )
    await eventually(all_run)
    await composing.ready(name)

    # What has failed says so in its controller's words.
    (pod,) = (await author.get(f"{PODS}?labelSelector=job-name%3D{name}"))["items"]
    await composing.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Failed"}})
    await composing.says(name, "Ready", "False", "Creating", f"job: Job default/{name}: Job has reached")

    # No controller here lets go of the claim.
    await composing.delete(name)
    await composing.says(name, "Ready", "False", "Deleting", "PersistentVolumeClaim", PROTECTION)
    await composing.patch(f"{CLAIMS}/{name}", {"metadata": {"finalizers": None}})
    await author.gone(composing.path(name))
