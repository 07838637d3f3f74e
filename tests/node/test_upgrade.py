"""From the previous release's manifests to the current ones, with a conversion and a migration in progress.

The image is always the current one: the previous one did not start as a pod.
"""

import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pykube.http import HTTPClient

from crdkeeper.api.meta import API_VERSION, GROUP
from crdkeeper.cluster.resources.versionconversions import FIELD_MANAGER, FINALIZER
from crdkeeper.scripting import StorageMigration, VersionConversion, connect
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene
from tests.cluster.harness.installation import NAMESPACE
from tests.node.cluster import NodeCluster
from tests.node.deployment import DEPLOYMENTS, READY_SECONDS, Deployment

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = "e712438"


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The manifests of that revision."""
    command = ["git", "archive", BEFORE, "manifests", "crds"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"needs the project's history: {done.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "manifests"


@pytest.fixture
def old(nodes: NodeCluster, before: Path) -> Deployment:
    """crdkeeper installed only from the earlier manifests."""
    deployment = Deployment(nodes)
    deployment.delete("--timeout=120s")
    deployment.plane.kubectl("apply", "--server-side", f"--kustomize={before}")
    _add_new_kinds(deployment, before)
    for each in DEPLOYMENTS:
        deployment.kubectl("rollout", "status", f"deployment/{each}", f"--timeout={READY_SECONDS}s")
    return deployment


def _add_new_kinds(deployment: Deployment, before: Path) -> None:
    """The operator waits for all of its kinds, and the image has some that the manifests have not."""
    kubectl = deployment.plane.kubectl
    new = [
        each for each in (ROOT / "crds").glob("*.yaml") if not (before.parent / "crds" / each.name).exists()
    ]
    for each in new:
        kubectl("apply", "--server-side", "-f", str(each))
    name, group = {"name": "new-kinds"}, "rbac.authorization.k8s.io"
    resources = [each.stem.partition("_")[2] for each in new]
    rule = {"apiGroups": [GROUP], "resources": resources, "verbs": ["get", "list", "watch"]}
    account = {"kind": "ServiceAccount", "name": "crdkeeper-operator", "namespace": NAMESPACE}
    role = {"kind": "ClusterRole", "metadata": name, "rules": [rule]}
    reference = {"apiGroup": group, "kind": "ClusterRole", **name}
    binding = {"kind": "ClusterRoleBinding", "metadata": name, "roleRef": reference, "subjects": [account]}
    for made in (role, binding):
        kubectl("apply", "--server-side", "-f", "-", input=json.dumps({"apiVersion": f"{group}/v1", **made}))


@pytest.fixture
def api(old: Deployment) -> Iterator[HTTPClient]:
    api = connect(old.plane.kubeconfig)
    yield api
    api.session.close()


@pytest.fixture
def scene(old: Deployment, group: str) -> Iterator[Scene]:
    """A CRD, and its VersionConversion with the previous release's finalizer."""
    scene = Scene(old.plane, group)
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    metadata = {"name": scene.name, "finalizers": [FINALIZER]}
    owned = {"apiVersion": API_VERSION, "kind": "VersionConversion", "metadata": metadata}
    scene.apply(owned, flags=("--server-side", f"--field-manager={FIELD_MANAGER}", "--validate=false"))
    yield scene
    scene.remove()


def test_what_was_begun_goes_on(old: Deployment, scene: Scene, api: HTTPClient) -> None:
    migration = StorageMigration.for_(scene.name, api=api, verify="Full", settle_seconds=1)
    migration.create().wait("Resolved", timeout=180)

    old.apply()

    for name in DEPLOYMENTS:
        assert [each.restarts for each in old.pods(name)] == [0, 0]
    conversion = VersionConversion.named(scene.name, api=api).wait("Ready", timeout=120)
    conversion.wait_until(lambda found: not found.obj["metadata"].get("finalizers"), timeout=180)
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    scene.allow_rewriting()
    migration.wait("Succeeded", timeout=120, give_up_on=())  # it was stalled until now
    migration.delete()
