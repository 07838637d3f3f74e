"""Whether an object is ready, for resources without readyWhen: as kstatus judges it.

So a composite is ready when `kubectl`-based tools, Flux and Helm would call each of its objects current.
Source: https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.core.templates.kinds import group_of


@dataclass(frozen=True, slots=True)
class ObjectHealth:
    """Whether an object is ready."""

    ready: bool
    why: str = ""
    """In a few words, if it is not."""
    failed: bool = False
    """Whether waiting alone does not help."""


_READY: Final = ObjectHealth(True)
_NO_DEADLINE: Final = 2**31 - 1
"""For Deployments: then their condition Progressing says nothing."""
_Conditions = Mapping[str, Mapping[str, Any]]


def health(live: Mapping[str, Any]) -> ObjectHealth:
    """Judge an object as it is in the cluster."""
    metadata = live["metadata"]
    if "deletionTimestamp" in metadata:
        return ObjectHealth(False, "it is being deleted")
    status = _mapping(live.get("status"))
    observed, generation = status.get("observedGeneration"), metadata.get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed != generation:
        return ObjectHealth(False, "its controller has not seen the last change")
    conditions = _conditions(status)
    for type_ in ("Reconciling", "Stalled"):
        if conditions.get(type_, {}).get("status") == "True":
            return ObjectHealth(False, _said(conditions[type_]), failed=type_ == "Stalled")
    kind = (group_of(str(live.get("apiVersion"))), str(live.get("kind")))
    judge = _KINDS.get(kind)
    if judge is not None:
        return judge(_mapping(live.get("spec")), status, conditions)
    found = conditions.get("Ready")
    return _READY if found is None or found.get("status") == "True" else ObjectHealth(False, _said(found))


def _deployment(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    if conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded":
        return ObjectHealth(False, _said(conditions["Progressing"]), failed=True)
    wanted = _number(spec, "replicas", 1)
    updated, available = _number(status, "updatedReplicas"), _number(status, "availableReplicas")
    if "observedGeneration" not in status or _number(status, "replicas") < wanted or updated < wanted:
        return ObjectHealth(False, f"{updated} of {wanted} replicas are updated")
    if _number(status, "replicas") > wanted:
        return ObjectHealth(False, f"{_number(status, 'replicas') - wanted} old replicas are left")
    if available < wanted:
        return ObjectHealth(False, f"{available} of {wanted} replicas are available")
    if spec.get("progressDeadlineSeconds", _NO_DEADLINE) != _NO_DEADLINE:
        # Available counts pods of the old template, too.
        found = conditions.get("Progressing", {})
        if (found.get("status"), found.get("reason")) != ("True", "NewReplicaSetAvailable"):
            return ObjectHealth(False, str(found.get("message") or "its new replicas are not available"))
    found = conditions.get("Available", {})
    return (
        _READY
        if found.get("status") == "True"
        else ObjectHealth(False, _said({"type": "Available", **found}))
    )


def _stateful_set(
    spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions
) -> ObjectHealth:
    strategy = _mapping(spec.get("updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return _READY
    wanted = _number(spec, "replicas", 1)
    ready, updated = _number(status, "readyReplicas"), _number(status, "updatedReplicas")
    if "observedGeneration" not in status or _number(status, "replicas") != wanted or ready < wanted:
        return ObjectHealth(False, f"{ready} of {wanted} replicas are ready")
    partition = _number(_mapping(strategy.get("rollingUpdate")), "partition")
    if partition:
        return (
            _READY
            if updated >= wanted - partition
            else ObjectHealth(False, f"{updated} replicas are updated")
        )
    if status.get("currentRevision") != status.get("updateRevision"):
        return ObjectHealth(False, f"{updated} of {wanted} replicas are updated")
    return _READY


def _daemon_set(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    wanted, ready = _number(status, "desiredNumberScheduled"), _number(status, "numberReady")
    updated, available = _number(status, "updatedNumberScheduled"), _number(status, "numberAvailable")
    if "observedGeneration" not in status or min(updated, available, ready) < wanted:
        return ObjectHealth(False, f"{min(updated, available, ready)} of {wanted} pods are updated and ready")
    return _READY


def _replica_set(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    wanted, available = _number(spec, "replicas", 1), _number(status, "availableReplicas")
    if "observedGeneration" not in status or available < wanted or _number(status, "replicas") > wanted:
        return ObjectHealth(False, f"{available} of {wanted} replicas are available")
    return _READY


def _pod(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    phase = status.get("phase")
    if phase == "Succeeded":
        return _READY
    if phase == "Failed":
        return ObjectHealth(False, "the pod has failed", failed=True)
    found = conditions.get("Ready")
    if found is not None and found.get("status") == "True":
        return _READY
    for each in status.get("containerStatuses") or ():
        if _mapping(_mapping(each.get("state")).get("waiting")).get("reason") == "CrashLoopBackOff":
            return ObjectHealth(
                False, f"the container {each.get('name')} crashes again and again", failed=True
            )
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return ObjectHealth(False, _said(scheduled))
    return ObjectHealth(False, _said(found) if found is not None else f"the pod is {phase or 'new'}")


def _job(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    if conditions.get("Failed", {}).get("status") == "True":
        return ObjectHealth(False, _said(conditions["Failed"]), failed=True)
    if conditions.get("Complete", {}).get("status") == "True" or "startTime" in status:
        return _READY
    return ObjectHealth(False, "the job has not started")


def _claim(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    phase = status.get("phase")
    return _READY if phase == "Bound" else ObjectHealth(False, f"the volume claim is {phase or 'new'}")


def _service(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    waits = spec.get("type") == "LoadBalancer" and not spec.get("clusterIP")
    return ObjectHealth(False, "the service has no IP address") if waits else _READY


def _definition(spec: Mapping[str, Any], status: Mapping[str, Any], conditions: _Conditions) -> ObjectHealth:
    found = conditions.get("Established", {})
    return _READY if found.get("status") == "True" else ObjectHealth(False, "the CRD is not established")


_KINDS: Final = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}


def _conditions(status: Mapping[str, Any]) -> _Conditions:
    listed = status.get("conditions")
    found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return {str(each.get("type")): each for each in found}


def _said(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or condition.get("reason") or f"{condition.get('type')} is not True")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Mapping[str, Any], name: str, default: int = 0) -> int:
    found = value.get(name, default)
    return found if isinstance(found, int) else default
