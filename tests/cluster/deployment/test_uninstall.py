"""`kubectl delete -k manifests` with conversions and migrations in place: complete and announced."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.changes.scene import CHANGES
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene, until
from tests.cluster.definitions.protecting import BY_WEBHOOK
from tests.cluster.harness import CustomKind, Operator, install
from tests.cluster.harness.installation import MANIFESTS
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster
from tests.controlplane.plane import ControlPlane

UNINSTALL = ("delete", f"--kustomize={MANIFESTS}")
SECONDS = 240
"""Only to end the test: whatever holds up the deletion of a part, holds it up for good."""
DRAIN = 95
"""As in the Deployment's pods: as long as API servers keep idle connections."""


@pytest.fixture
def plane(start_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A control plane that the test may leave unusable."""
    plane = start_plane()
    install(plane)
    return plane


@pytest.fixture
def pod(plane: ControlPlane, tmp_path: Path) -> Iterator[WebhookPod]:
    """The conversion webhook, with an operator."""
    pod = WebhookPod(plane, tmp_path, drain_seconds=DRAIN)
    operator = Operator(plane, flags={"webhook-url": pod.url})
    operator.start()
    pod.start()
    yield pod
    operator.close()
    if pod.process.running:
        pod.process.kill()
    pod.close()


@pytest.fixture
def scene(plane: ControlPlane, pod: WebhookPod) -> Scene:
    """A conversion that serves, and a migration that waits for permissions."""
    scene = Scene(plane, "uninstall.example.com")
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    resource = {"group": scene.group, "resource": "crontabs"}
    metadata = {"name": "waiting"}
    migration = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "StorageMigration", "metadata": metadata}
    scene.apply(migration | {"spec": {"resource": resource, "verify": "Full"}})
    return scene


def warnings(scene: Scene, *command: str) -> list[str]:
    """The command's warnings that a CRD loses its webhook."""
    said = scene.plane.kubectl(*command, check=False).splitlines()
    return [each for each in said if f"the CRD {scene.name} loses its conversion webhook" in each]


def uninstall(plane: Cluster, order: str) -> str:
    """Remove crdkeeper as a whole, or its parts one by one, the last one first; what kubectl says."""
    kubectl = plane.kubectl
    if order == "backwards":
        documents = kubectl("kustomize", str(MANIFESTS)).split("\n---\n")
        for document in reversed(documents):
            kubectl("delete", "--wait=false", "--ignore-not-found", "--filename=-", input=document)
    said = kubectl(*UNINSTALL, "--ignore-not-found", f"--timeout={SECONDS}s", check=False)
    assert "timed out" not in said
    return said


@pytest.mark.timeout(600)
@pytest.mark.parametrize("order", ["kubectl's", "backwards"])
def test_an_uninstall_is_announced_and_complete(scene: Scene, pod: WebhookPod, order: str) -> None:
    kubectl = scene.plane.kubectl
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    # Admission policies take effect some seconds after they are written.
    until(lambda: warnings(scene, *UNINSTALL, "--dry-run=server", "--wait=false"))
    said = uninstall(scene.plane, order)
    if order != "backwards":
        assert f"the CRD {scene.name} loses its conversion webhook. v1beta1, v1alpha1 of" in said
    for kind in ("namespaces", "crds", "clusterroles", "validatingadmissionpolicies"):
        left = json.loads(kubectl("get", kind, "-o", "json"))["items"]
        assert [each["metadata"]["name"] for each in left if "deletionTimestamp" in each["metadata"]] == []
        ours = [each["metadata"]["name"] for each in left if "crdkeeper" in each["metadata"]["name"]]
        assert ours == []
    # The webhook need not wait for API servers to close, one of which has an idle connection to it.
    pod.process.terminate()
    until(lambda: not pod.process.running)
    # Stored objects can be read at the version that they are stored at, and the CRD can be used again.
    assert scene.spec("v1", "mine") == V1


@pytest.mark.timeout(600)
@pytest.mark.parametrize("order", ["kubectl's", "backwards"])
def test_what_was_protected_can_be_deleted_after_that(
    plane: ControlPlane, pod: WebhookPod, order: str
) -> None:
    """The webhook still runs, and manifests/changes are left, by which API servers ask it."""
    kubectl, kind = plane.kubectl, CustomKind("uninstall.example.com")
    kubectl("apply", "--server-side", f"--kustomize={CHANGES}")
    kubectl("apply", "--server-side", "-f", "-", input=json.dumps(kind.to_object()))
    policy = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": "protected"},
        "spec": {"protection": {"deletion": "Deny"}, "storageMigration": {"mode": "Disabled"}},
    }
    kubectl("apply", "-f", "-", input=json.dumps(policy))
    kubectl("delete", "validatingadmissionpolicybinding", "crdkeeper-definition-protection")

    def refused() -> bool:
        return BY_WEBHOOK in kubectl("delete", "crd", kind.name, "--dry-run=server", check=False)

    until(refused)
    uninstall(plane, order)
    assert pod.process.running

    def deleted() -> bool:
        said = kubectl("delete", "crd", kind.name, "--timeout=120s", check=False)
        assert "timed out" not in said
        return f'"{kind.name}" deleted' in said

    # The webhook hears of the policy's end a little later than we do.
    until(deleted)


PARTS = [
    ("namespace/crdkeeper-system",),
    ("deployment/crdkeeper-webhook", "--namespace=crdkeeper-system"),
    ("crd/versionconversions.crdkeeper.dev",),
]


def test_whoever_removes_a_part_is_warned(scene: Scene) -> None:
    def reported() -> list[bool]:
        return [bool(warnings(scene, "delete", *part, "--dry-run=server")) for part in PARTS]

    until(lambda: all(reported()))
    # No warning where nothing needs it.
    scene.plane.kubectl("delete", f"crontabs.v1.{scene.group}", "mine")
    scene.plane.kubectl("annotate", "vconv", scene.name, "look=again")
    until(lambda: not any(reported()))
