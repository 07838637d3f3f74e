"""`kubectl delete -k manifests` with conversions and migrations in place: announced and complete."""

import json
from collections.abc import Iterator

import pytest

from crdkeeper.scripting import StorageMigration, VersionConversion, connect
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene
from tests.node.cluster import DNS
from tests.node.deployment import Deployment, until

SECONDS = 240.0
"""Only to end the test: whatever holds up the deletion of a part, holds it up for good."""
KINDS = ("namespaces", "crds", "clusterroles", "clusterrolebindings", "validatingadmissionpolicies")


@pytest.fixture
def scene(deployment: Deployment, group: str) -> Iterator[Scene]:
    """A conversion that serves, and a migration that waits for permissions."""
    scene = Scene(deployment.plane, group)
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    api = connect(deployment.plane.kubeconfig)
    VersionConversion.named(scene.name, api=api).wait("Ready", timeout=120)
    StorageMigration.for_(scene.name, api=api, verify="Full").create().wait("Resolved", timeout=180)
    api.session.close()
    yield scene
    scene.remove()


@pytest.mark.timeout(600)
def test_an_uninstall_is_announced_and_complete(deployment: Deployment, scene: Scene) -> None:
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    announced = f"the CRD {scene.name} loses its conversion webhook"
    until(lambda: announced in deployment.delete("--dry-run=server"), 180)  # policies take effect in seconds

    said = deployment.delete(f"--timeout={SECONDS:.0f}s")

    assert announced in said and "timed out" not in said
    for kind in KINDS:
        found = json.loads(deployment.plane.kubectl("get", kind, "--output=json"))["items"]
        names = {each["metadata"]["name"] for each in found if "deletionTimestamp" in each["metadata"]}
        assert not names
        ours = {each["metadata"]["name"] for each in found if "crdkeeper" in each["metadata"]["name"]}
        assert ours <= {DNS}
    # Stored objects can be read at the version that they are stored at.
    assert scene.spec("v1", "mine") == V1
