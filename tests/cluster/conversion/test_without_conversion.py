"""An installation without VersionConversions: fewer permissions, and everything else works."""

from collections.abc import Callable

from tests.cluster.conftest import ERROR
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import Scene, until
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Operator, install
from tests.cluster.harness.installation import MANIFESTS
from tests.controlplane.plane import ControlPlane

RIGHTS = [("patch", "crds"), ("get", "configmaps"), ("create", "secrets"), ("get", "secrets")]


def test_it_does_all_but_convert(
    start_plane: Callable[..., ControlPlane], start_operator: Callable[..., Operator]
) -> None:
    plane = start_plane()
    install(plane, MANIFESTS / "without-conversion")
    account = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    for verb, resource in RIGHTS:
        asked = ("auth", "can-i", verb, resource, f"--namespace={NAMESPACE}")
        assert plane.kubectl(*asked, kubeconfig=account, check=False).startswith("no"), (verb, resource)
    operator = start_operator(plane)
    scene = Scene(plane, "without.example.com")
    scene.create("v1", "mine", {"host": "localhost"})

    scene.convert(RULES)
    found = scene.wait("Ready", "False", "NotPermitted")
    assert f'resourceNames: ["{scene.name}"], verbs: ["patch"]' in found["message"]
    assert scene.conversion() == {"strategy": "None"}

    scene.allow_rewriting()
    scene.apply_definition("v1beta1")
    whole = {"group": scene.group, "resource": "crontabs"}
    spec = {"resource": whole, "settleSeconds": 2, "apiServerLeases": "Ignore"}
    kind = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "StorageMigration"}
    scene.apply(kind | {"metadata": {"name": "all"}, "spec": spec})
    plane.kubectl("wait", "--for=condition=Succeeded", "smig/all", "--timeout=120s")
    assert plane.etcd.stored_versions(scene.group, "crontabs") == {f"{scene.group}/v1beta1": 1}

    # Nothing blocks the deletion of a VersionConversion that never served.
    plane.kubectl("delete", "vconv", scene.name, "--timeout=120s")
    until(lambda: operator.metric("crdkeeper_version_conversions") == 0)
    assert not [each for each in operator.log_since().splitlines() if ERROR.search(each)]
