"""The composer in pods: a definition becomes an API that can be used, scaled and deleted."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.cluster.harness.installation import MANIFESTS
from tests.node.deployment import COMPOSER, REPLICAS, Deployment, until

NAME: Final = "databases.platform.example.com"
DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "crdkeeper.dev/v1alpha1",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": "platform.example.com",
        "names": {"kind": "Database", "plural": "databases"},
        "versions": [
            {
                "name": "v1",
                "referenceable": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }
                },
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
                },
            }
        ],
    },
}
DATABASE: Final = {
    "apiVersion": "platform.example.com/v1",
    "kind": "Database",
    "metadata": {"name": "orders", "namespace": "default"},
    "spec": {"replicas": 1},
}


@pytest.fixture
def permitted(composer: Deployment) -> Iterator[Deployment]:
    """The composer, which may look after composites of the group."""
    role = f"--filename={MANIFESTS / 'samples' / 'composer-role.yaml'}"
    composer.plane.kubectl("apply", "--server-side", role)
    yield composer
    composer.delete_composites()
    composer.plane.kubectl("delete", role)


def apply(deployment: Deployment, value: dict[str, Any]) -> None:
    deployment.plane.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(value))


def test_a_definition_becomes_an_api(permitted: Deployment) -> None:
    composer, kubectl = permitted, permitted.plane.kubectl
    pods = composer.pods(COMPOSER)
    assert [(each.ready, each.restarts) for each in pods] == [(True, 0)] * REPLICAS
    assert {each.node for each in pods} == {"node-0", "node-1"}

    apply(composer, DEFINITION)
    kubectl("wait", "--for=condition=Established", f"cxrd/{NAME}", "--timeout=180s")
    kubectl.wait_established(f"crd/{NAME}")
    apply(composer, DATABASE)
    kubectl("scale", "database", "orders", "--replicas=3")
    assert kubectl("get", "database", "orders", "--output=jsonpath={.spec.replicas}") == "3"

    # Protect holds the deletion until there are no composites; another pod continues it.
    kubectl("delete", "cxrd", NAME, "--wait=false")
    held = "default/orders"
    leader = composer.kubectl("get", "lease", COMPOSER, "--output=jsonpath={.spec.holderIdentity}")

    def established() -> str:
        path = '{.status.conditions[?(@.type=="Established")].message}'
        return kubectl("get", "cxrd", NAME, f"--output=jsonpath={path}")

    until(lambda: "1 composite" in established(), 120, established)
    composer.kubectl("delete", "pod", leader, "--wait=false")
    assert kubectl("get", "databases", "-A", "--no-headers").split()[:2] == held.split("/")
    kubectl("delete", "database", "orders")
    kubectl("wait", "--for=delete", f"cxrd/{NAME}", f"crd/{NAME}", "--timeout=180s")
