"""ScalingReady beside the real controllers of autoscalers and budgets, with the same objects."""

import json
import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any, Final

import pytest

from tests.cluster.harness.installation import MANIFESTS
from tests.controlplane.kubectl import Kubectl
from tests.node import pods
from tests.node.deployment import Deployment, until
from tests.node.metricsapi import MetricsApi

NAME: Final = "caches.node-scaling.example.com"
GROUP: Final = "node-scaling.example.com"
ROLE: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "test-read-caches", "labels": {"rbac.crdkeeper.dev/aggregate-to-reader": "true"}},
    "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list"]}],
}
SAMPLE: Final = f"--filename={MANIFESTS / 'samples' / 'scaling-reader-role.yaml'}"
OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA: Final = {
    "type": "object",
    "properties": {"spec": {**OPEN, "properties": {"replicas": {"type": "integer"}}}, "status": OPEN},
}
SCALE: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
COLUMN: Final = {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}
AUTOSCALER: Final = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "sessions"},
    "spec": {
        "scaleTargetRef": {"apiVersion": f"{GROUP}/v1", "kind": "Cache", "name": "sessions"},
        "minReplicas": 2,
        "maxReplicas": 9,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
    },
}
BUDGET: Final = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "sessions"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "sessions"}}},
}


def definition(*scaled: str) -> dict[str, Any]:
    """A CRD of which these versions have /scale; the API server prefers v2."""
    versions = [
        {
            "name": each,
            "served": True,
            "storage": each == "v1",
            "schema": {"openAPIV3Schema": SCHEMA},
            "subresources": {"status": {}, **({"scale": SCALE} if each in scaled else {})},
        }
        for each in ("v1", "v2")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "caches", "singular": "cache", "kind": "Cache", "listKind": "CacheList"},
            "versions": versions,
        },
    }


def pod(name: str, owner: dict[str, Any]) -> dict[str, Any]:
    """A pod as a controller of the object would make it."""
    body = pods.manifest(name, "import time; time.sleep(3600)")
    reference = {key: owner["metadata"][key] for key in ("name", "uid")}
    body["metadata"] = {
        "name": name,
        "labels": {"app": "sessions"},
        "ownerReferences": [{"apiVersion": f"{GROUP}/v1", "kind": "Cache", "controller": True, **reference}],
    }
    (container,) = body["spec"]["containers"]
    container |= {"name": "server", "resources": {"requests": {"cpu": "10m"}}}
    return body


@pytest.fixture
def kubectl(deployment: Deployment) -> Iterator[Kubectl]:
    """The admin's; what the test makes is removed, also after a failure."""
    kubectl = deployment.plane.kubectl
    yield kubectl
    kubectl("delete", "hpa,pdb,pods", "sessions", "sessions-0", "sessions-1", "--ignore-not-found", "--now")
    kubectl("delete", "crd", NAME, "--ignore-not-found", "--timeout=180s")
    kubectl("delete", "clusterrole", ROLE["metadata"]["name"], "--ignore-not-found")  # type: ignore[index]
    kubectl("delete", SAMPLE, "--ignore-not-found")


def test_an_autoscaler_and_a_budget(deployment: Deployment, kubectl: Kubectl) -> None:
    columns = cycle(([COLUMN], []))

    def reported() -> str:
        # Until there is a report, this prints nothing.
        found = kubectl("get", "defrep", NAME, "--ignore-not-found", "--output=json")
        conditions = json.loads(found or "{}").get("status", {}).get("conditions", [])
        return next((each["reason"] for each in conditions if each["type"] == "ScalingReady"), "")

    def shown(*words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(kubectl("get", *words, "--output=json"))
        return found

    def said(kind: str, type_: str) -> str:
        conditions = shown(kind, "sessions").get("status", {}).get("conditions", [])
        return next((each["reason"] for each in conditions if each["type"] == type_), "")

    def reports(reason: str) -> bool:
        """Asks again by a change of the CRD: by itself, the operator looks every few minutes."""
        versions, columns_ = shown("crd", NAME)["spec"]["versions"], next(columns)
        for each in versions:
            each["additionalPrinterColumns"] = columns_
        patch = json.dumps({"spec": {"versions": versions}})
        kubectl("patch", "crd", NAME, "--type=merge", f"--patch={patch}")
        time.sleep(1)
        return reported() == reason

    kubectl("apply", SAMPLE)
    pods.apply(kubectl, ROLE, definition("v1"))
    kubectl.wait_established(f"crd/{NAME}")
    cache = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Cache",
        "metadata": {"name": "sessions"},
        "spec": {"replicas": 1},
    }
    pods.apply(kubectl, cache, BUDGET)
    owner = shown("cache", "sessions")
    pods.apply(kubectl, pod("sessions-0", owner), pod("sessions-1", owner))

    # v1 has /scale, and both name v1. But their controllers ask at v2.
    until(lambda: said("pdb", "DisruptionAllowed") == "SyncFailed", 120)
    until(lambda: reports("BudgetFails"), 120, reported)
    pods.apply(kubectl, AUTOSCALER)
    until(lambda: said("hpa", "AbleToScale") == "FailedGetScale", 120)
    until(lambda: reports("ScaleMissing"), 120, reported)

    pods.apply(kubectl, definition("v1", "v2"))
    until(lambda: said("hpa", "ScalingActive") == "InvalidSelector", 120)
    assert shown("cache", "sessions")["spec"]["replicas"] == 2
    until(lambda: reports("SelectorMissing"), 120, reported)

    def count_by(selector: str) -> None:
        """The controller of the object writes how many pods there are, and how to select them."""
        patch = json.dumps({"status": {"replicas": 2, "selector": selector}})
        kubectl("patch", "cache", "sessions", "--subresource=status", "--type=merge", f"--patch={patch}")

    count_by("app=sessions")
    until(lambda: reports("Working"), 120, reported)
    count_by("app=other")
    until(lambda: reports("NoPodsSelected"), 120, reported)
    count_by("app=sessions")
    until(lambda: reports("Working"), 120, reported)
    with MetricsApi(deployment.cluster, millicores=32):
        until(lambda: shown("cache", "sessions")["spec"]["replicas"] == 4, 180)

    def expects_four() -> bool:
        """The budget's controller looks at /scale when one of its pods changes."""
        kubectl("annotate", "pod", "sessions-0", f"looked={time.monotonic()}", "--overwrite")
        return bool(shown("pdb", "sessions")["status"]["expectedPods"] == 4)

    until(expects_four, 120)
