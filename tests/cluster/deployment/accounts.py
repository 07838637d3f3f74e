"""What an account may do, asked of the API server; for tests of the manifests."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster

Rights = set[tuple[str, str, str]]
"""What an account may do, as (resource.group/subresource, object's name or empty, verb)."""


def eventually(holds: Callable[[], bool], otherwise: Callable[[], str] = str, seconds: float = 120) -> None:
    """Waits for what controllers do asynchronously."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not so after {seconds} seconds {otherwise()}"
        time.sleep(0.1)


def get(plane: Cluster, *args: str) -> Any:
    """What `kubectl get` says, as JSON."""
    return json.loads(plane.kubectl("get", "--output=json", *args))


def review(plane: Cluster, account: Path, kind: str, spec: dict[str, Any]) -> Any:
    """The API server's answer to what an account, given by its kubeconfig, may do."""
    question = json.dumps({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
    # Without validation by kubectl, which would need to read all CRDs.
    args = ("create", "--validate=false", "--filename=-", "--output=json")
    return json.loads(plane.kubectl(*args, input=question, kubeconfig=account))["status"]


def may(
    plane: Cluster, account: Path, verb: str, resource: str, *, namespace: str = "", name: str = ""
) -> bool:
    """Whether an account has a permission. Unlike `kubectl auth can-i`, it does not need a resource's CRD."""
    plural, _, group = resource.partition(".")
    attributes = {"verb": verb, "resource": plural, "group": group, "namespace": namespace, "name": name}
    answer = review(plane, account, "SelfSubjectAccessReview", {"resourceAttributes": attributes})
    return bool(answer["allowed"])


def rights(plane: Cluster, account: Path, namespace: str) -> Rights:
    """All permissions of an account in a namespace and in the whole cluster."""
    return flatten(
        review(plane, account, "SelfSubjectRulesReview", {"namespace": namespace})["resourceRules"]
    )


def flatten(rules: list[dict[str, Any]]) -> Rights:
    """RBAC rules as single permissions."""
    return {
        (qualified(resource, group), name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    }


def qualified(resource: str, group: str) -> str:
    """A resource by its full name, in kubectl's notation: `deployments.apps/scale`."""
    plural, _, subresource = resource.partition("/")
    return f"{plural}.{group}".rstrip(".") + (f"/{subresource}" if subresource else "")


def grants(table: dict[str, str], name: str = "") -> Rights:
    """Permissions from a table of resources and their verbs."""
    return {(resource, name, verb) for resource, verbs in table.items() for verb in verbs.split()}
