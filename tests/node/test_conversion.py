"""Pods convert objects: through a Service, under load through the API server, whatever happens to the pods.

Each fault lasts for at least 20,000 requests, of which none may fail.
"""

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crdkeeper.cluster.certificates.secrets import TLS_SECRET
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.scripting import VersionConversion, connect
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene
from tests.cluster.harness.installation import NAMESPACE
from tests.faults.conversionload import Background, Load
from tests.node.cluster import NodeCluster
from tests.node.deployment import REPLICAS, WEBHOOK, Deployment, Pod, no_new_pods, until

REQUESTS: Final = 20_000
CLIENTS: Final = 12
READS: Final = 0.9  # of the clients' requests: a write costs the API server several times as much
SECONDS: Final = 600
GROUP: Final = "pods.example.com"
HTTPS: Final = 9443

pytestmark = pytest.mark.timeout(900)


class Subject:
    """A CRD that the webhook's pods convert, and the load on it."""

    def __init__(self, deployment: Deployment, scene: Scene, background: Background) -> None:
        self.deployment, self.scene, self.background = deployment, scene, background
        self.load = Load(Client(Connection(deployment.plane.kubeconfig)), GROUP, clients=CLIENTS, reads=READS)

    def pods(self) -> list[Pod]:
        return self.deployment.pods(WEBHOOK)

    def until_replaced(self, before: list[Pod], replicas: int = REPLICAS) -> None:
        """Return when those pods are gone or being deleted, and that many are ready."""
        old = {each.uid for each in before}

        def replaced() -> bool:
            now = self.pods()
            return len(now) == replicas and all(each.ready and each.uid not in old for each in now)

        until(replaced, SECONDS, lambda: str(self.pods()))

    def certificates(self) -> set[str]:
        """The certificates that the pods present to new connections."""
        found = json.loads(self.deployment.kubectl("get", "pods", "--output=json"))["items"]
        names = {each.name for each in self.pods()}
        addresses = [each["status"]["podIP"] for each in found if each["metadata"]["name"] in names]
        return {ssl.get_server_certificate((each, HTTPS)) for each in addresses}


@pytest.fixture(scope="module")
def subject(session_nodes: NodeCluster) -> Iterator[Subject]:
    with session_nodes.network(), Background() as background:
        deployment = Deployment(session_nodes)
        deployment.apply()
        scene = Scene(deployment.plane, GROUP)
        scene.create("v1", "mine", V1)
        scene.convert(RULES)
        api = connect(deployment.plane.kubeconfig)
        VersionConversion.named(scene.name, api=api).wait("Ready", timeout=120)
        api.session.close()
        subject = Subject(deployment, scene, background)
        background.run(subject.load.client.__aenter__())
        yield subject
        background.run(subject.load.client.__aexit__(None, None, None))
        scene.remove()


@pytest.fixture(scope="module")
def loaded(subject: Subject) -> Iterator[Subject]:
    """The same under load, until all pods that were told to stop have ended."""
    subject.background.run(subject.load.start())
    yield subject
    with subject.deployment.cluster.network():
        until(lambda: not subject.deployment.pods(WEBHOOK, going=True), SECONDS)
    subject.background.run(subject.load.stop())
    assert subject.load.failures == []


def test_versions_convert_through_the_service(subject: Subject, nodes: NodeCluster) -> None:
    assert subject.scene.spec("v1alpha1", "mine") == V1ALPHA1
    config = subject.scene.conversion()["webhook"]["clientConfig"]
    assert (config["service"]["namespace"], config["service"]["name"]) == (NAMESPACE, WEBHOOK)


def restart(subject: Subject) -> None:
    """`kubectl rollout restart`."""
    before = subject.pods()
    subject.deployment.kubectl("rollout", "restart", f"deployment/{WEBHOOK}")
    subject.until_replaced(before)


def deletion(subject: Subject) -> None:
    """Each of the pods is deleted, the second one when the first has been replaced."""
    for pod in subject.pods():
        subject.deployment.kubectl("delete", "pod", pod.name, "--wait=false")
        subject.until_replaced([pod])


def eviction(subject: Subject) -> None:
    """All pods are evicted, as in concurrent drains: the disruption budget admits one after the other."""
    before = subject.pods()
    first, *others = before
    with no_new_pods(subject.deployment.kubectl):
        until(lambda: evicted(subject, first), SECONDS)
        # While it is not replaced, however long that takes here.
        assert [evicted(subject, each) for each in others] == [False] * (REPLICAS - 1)
    for each in others:
        until(lambda each=each: evicted(subject, each), SECONDS)  # type: ignore[misc]
    subject.until_replaced(before)


def evicted(subject: Subject, pod: Pod) -> bool:
    """Evict a pod. Returns whether the disruption budget has admitted that."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod.name}/eviction"
    metadata = {"name": pod.name, "namespace": NAMESPACE}
    body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
    said = subject.deployment.kubectl("create", f"--raw={path}", "-f", "-", input=body, check=False)
    refused = "disruption budget" in said
    assert refused or '"Success"' in said, said
    return not refused


def scaling(subject: Subject) -> None:
    """To one replica and back."""
    for replicas in (1, REPLICAS):
        subject.deployment.kubectl("scale", f"deployment/{WEBHOOK}", f"--replicas={replicas}")
        until(lambda replicas=replicas: len(subject.deployment.ready(WEBHOOK)) == replicas, SECONDS)  # type: ignore[misc]


def renewal(subject: Subject) -> None:
    """A mismatched key replaces the key: the operator creates a new pair, kubelets deliver it."""
    (before,) = subject.certificates()
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    patch = json.dumps({"data": {"tls.key": base64.b64encode(key).decode()}})
    subject.deployment.kubectl("patch", "secret", TLS_SECRET, "--type=merge", f"--patch={patch}")
    until(lambda: before not in subject.certificates(), SECONDS)


@pytest.mark.parametrize("fault", [restart, deletion, eviction, scaling, renewal])
def test_no_request_fails(
    loaded: Subject,
    nodes: NodeCluster,
    capsys: pytest.CaptureFixture[str],
    fault: Callable[[Subject], None],
) -> None:
    load = loaded.load
    answered, failed, repeated = load.answered, len(load.failures), load.repeated
    fault(loaded)
    until(lambda: load.answered - answered >= REQUESTS, SECONDS, lambda: f"{load.answered} answers")
    failures = load.failures[failed:]
    sent, again = load.answered - answered + len(failures), load.repeated - repeated
    with capsys.disabled():
        print(f"\n{fault.__name__}: {sent:,} requests, {len(failures)} failed, {again} repeated")
    assert failures == []
