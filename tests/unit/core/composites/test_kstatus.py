"""Which objects are ready, by the status that their controllers write."""

from typing import Any

import pytest

from crdkeeper.core.composites.kstatus import health


def of(kind: str, status: Any = None, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    api_version, _, name = kind.rpartition("/")
    value = {"apiVersion": api_version or "v1", "kind": name, "metadata": {"generation": 2, **metadata}}
    return value | ({"status": status} if status is not None else {}) | ({"spec": spec} if spec else {})


ROLLED = {
    "observedGeneration": 2,
    "replicas": 2,
    "updatedReplicas": 2,
    "availableReplicas": 2,
    "readyReplicas": 2,
}
TWO = {"replicas": 2}
DEADLINE = {"replicas": 2, "progressDeadlineSeconds": 600}


def condition(type_: str, status: str, message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status, "reason": "R", "message": message}]}


def rolled(reason: str) -> dict[str, Any]:
    progressing = {"type": "Progressing", "status": "True", "reason": reason, "message": "progress"}
    return {"conditions": [progressing, *condition("Available", "True")["conditions"]]}


CRASHES = {
    "phase": "Running",
    "containerStatuses": [
        {"name": "beside", "state": {"running": {}}},
        {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ],
    **condition("Ready", "False", "containers with unready status: [main]"),
}


@pytest.mark.parametrize(
    ("live", "why"),
    [
        (of("ConfigMap"), ""),
        (of("ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z"), "it is being deleted"),
        (of("example.com/v1/Thing", condition("Ready", "True")), ""),
        (of("example.com/v1/Thing", condition("Ready", "False", "no disk")), "no disk"),
        (
            of("example.com/v1/Thing", {"observedGeneration": 1}),
            "its controller has not seen the last change",
        ),
        (of("example.com/v1/Thing", condition("Stalled", "True", "bad")), "bad"),
        (of("example.com/v1/Thing", {"conditions": "x"}), ""),
        (of("apps/v1/Deployment", ROLLED | condition("Available", "True"), TWO), ""),
        (of("apps/v1/Deployment", ROLLED, TWO), "Available is not True"),
        (of("apps/v1/Deployment", ROLLED | rolled("NewReplicaSetAvailable"), DEADLINE), ""),
        (of("apps/v1/Deployment", ROLLED | rolled("ReplicaSetUpdated"), DEADLINE), "progress"),
        (of("apps/v1/Deployment", ROLLED | condition("Available", "True"), DEADLINE), "its new replicas"),
        (of("apps/v1/Deployment", None, TWO), "0 of 2 replicas are updated"),
        (of("apps/v1/Deployment", ROLLED | {"replicas": 3}, TWO), "1 old replicas are left"),
        (of("apps/v1/Deployment", ROLLED | {"availableReplicas": 1}, TWO), "1 of 2 replicas are available"),
        (of("apps/v1/Deployment", ROLLED | condition("Available", "False", "few"), TWO), "few"),
        (of("apps/v1/StatefulSet", ROLLED, TWO), ""),
        (of("apps/v1/StatefulSet", ROLLED | {"readyReplicas": 0}, TWO), "0 of 2 replicas are ready"),
        (of("apps/v1/StatefulSet", ROLLED | {"updateRevision": "b"}, TWO), "2 of 2 replicas are updated"),
        (of("apps/v1/DaemonSet", {"observedGeneration": 2}), ""),
        (of("apps/v1/DaemonSet", {"observedGeneration": 2, "desiredNumberScheduled": 3}), "0 of 3 pods"),
        (of("Pod", {"phase": "Succeeded"}), ""),
        (of("Pod", {"phase": "Running", **condition("Ready", "False", "starts")}), "starts"),
        (of("Pod", {"phase": "Failed"}), "the pod has failed"),
        (of("Pod", CRASHES), "the container main crashes again and again"),
        (of("Pod", {"phase": "Pending", **condition("PodScheduled", "False", "no node")}), "no node"),
        (of("batch/v1/Job", {"startTime": "x"}), ""),
        (of("batch/v1/Job", {"startTime": "x", **condition("Failed", "True", "limit")}), "limit"),
        (of("batch/v1/Job", {}), "the job has not started"),
        (of("PersistentVolumeClaim", {"phase": "Bound"}), ""),
        (of("PersistentVolumeClaim", {"phase": "Pending"}), "the volume claim is Pending"),
        (of("Service", None, {"type": "LoadBalancer"}), "the service has no IP address"),
        (of("Service", None, {"type": "ClusterIP"}), ""),
    ],
)
def test_health(live: dict[str, Any], why: str) -> None:
    found = health(live)
    assert found.ready is (not why)
    assert found.why.startswith(why) and bool(found.why) is bool(why)
