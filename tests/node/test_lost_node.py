"""One of two nodes loses power: operator and webhook continue with the pods on the other one."""

import time
from collections.abc import Iterator

import pytest

from crdkeeper.scripting import VersionConversion, connect, report_of
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene
from tests.cluster.harness import CustomKind
from tests.node.cluster import NodeCluster
from tests.node.deployment import DEPLOYMENTS, OPERATOR, READY_SECONDS, Deployment, until

LOST = 1


@pytest.fixture
def scene(deployment: Deployment, group: str) -> Iterator[Scene]:
    """A CRD that the webhook converts. The operator's leader is on the node that will be lost."""
    scene = Scene(deployment.plane, group)
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    with_leader(deployment, deployment.cluster.nodes[LOST].name)
    api = connect(deployment.plane.kubeconfig)
    VersionConversion.named(scene.name, api=api).wait("Ready", timeout=120)
    api.session.close()
    yield scene
    scene.remove()


def with_leader(deployment: Deployment, node: str) -> None:
    """Delete the leader until the new one is on that node."""

    def moved() -> bool:
        leader = deployment.leader()
        nodes = [each.node for each in deployment.ready(OPERATOR) if each.name == leader]
        if nodes and nodes != [node]:
            deployment.kubectl("delete", "pod", leader)
        return nodes == [node]

    until(moved, READY_SECONDS)


@pytest.fixture
def lost(nodes: NodeCluster, scene: Scene) -> Iterator[float]:
    """The time when the node was lost; it is restored afterwards."""
    nodes.lose(LOST)
    yield time.monotonic()
    nodes.recover(LOST)
    deployment = Deployment(nodes)
    name = nodes.nodes[LOST].name
    found = [each for deployed in DEPLOYMENTS for each in deployment.pods(deployed)]
    deployment.replace(*(each.name for each in found if each.node == name))


def test_all_goes_on(deployment: Deployment, scene: Scene, lost: float, group: str) -> None:
    ready = '--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}'

    def answered() -> bool:
        status = deployment.kubectl("get", "node", deployment.cluster.nodes[LOST].name, ready)
        assert status == "True", "nothing could be read before the node was known to be lost"
        return bool(scene.answers("v1alpha1", "mine") == V1ALPHA1)

    # The Service has the lost pod's address until the node is known to be lost, 40 to 50 seconds later. So a
    # read may have to wait for a failing connection, up to the API server's 30 seconds; it is the API server
    # that does not retry. Seconds would not tell whether a second read was tried.
    until(answered, READY_SECONDS)

    kind = CustomKind(f"after-{group}")
    scene.apply(kind.to_object())
    api = connect(deployment.plane.kubeconfig)
    report_of(kind.name, api=api, timeout=120)
    api.session.close()
    survivor = deployment.cluster.nodes[1 - LOST].name
    leader = deployment.leader()
    assert {each.node for each in deployment.pods(OPERATOR) if each.name == leader} == {survivor}

    # Once the Service has only the other pods, no read fails any more.
    def noticed() -> bool:
        ready = deployment.kubectl(
            "get",
            "endpointslices",
            "--selector=kubernetes.io/service-name=crdkeeper-webhook",
            "--output=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].nodeName}",
        )
        return set(ready.split()) == {survivor}

    until(noticed, READY_SECONDS)
    for _ in range(50):
        assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    deployment.plane.kubectl("delete", "crd", kind.name)
