"""Deleted VersionConversions: only unused ones, and in any case every object remains readable."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene, until
from tests.cluster.harness import NAMESPACE, Operator
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.kubectl import KubectlError

FINALIZER = "crdkeeper.dev/conversion"
"""What an earlier release added to VersionConversions."""


@pytest.fixture
def scene(scene: Scene, operator: Operator) -> Iterator[Scene]:
    """A conversion that serves, and one object that needs it."""
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    until(lambda: in_use(scene) == "True")
    yield scene
    if not operator.running:
        operator.start()


def in_use(scene: Scene) -> str | None:
    """The status of the condition InUse."""
    found = json.loads(scene.plane.kubectl("get", "vconv", scene.name, "-o", "json"))
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == "InUse"), None)


def exists(scene: Scene, *what: str) -> bool:
    return bool(scene.plane.kubectl("get", *what, "--ignore-not-found", "-o", "name").strip())


def bundle_exists(scene: Scene) -> bool:
    return exists(scene, "configmap", scene.name, "-n", NAMESPACE)


def delete(scene: Scene) -> None:
    scene.plane.kubectl("delete", "vconv", scene.name, "--wait=false")


def delete_behind_its_back(scene: Scene, operator: Operator) -> None:
    """As if there were no policy: while the operator is down, and without the condition."""
    operator.stop()
    scene.plane.kubectl(
        *("patch", "vconv", scene.name, "--subresource=status", "--type=merge"),
        '--patch={"status":{"conditions":[]}}',
    )
    delete(scene)
    assert not exists(scene, "vconv", scene.name)


def events(scene: Scene, reason: str) -> list[Any]:
    """Those with that reason, about the CRD."""
    only = f"--field-selector=regarding.name={scene.name},reason={reason}"
    found: list[Any] = json.loads(
        scene.plane.kubectl("get", "events.events.k8s.io", "-A", only, "-o", "json")
    )["items"]
    return found


def test_in_use_it_is_refused_at_once_and_told_why(scene: Scene) -> None:
    with pytest.raises(KubectlError) as refused:
        delete(scene)
    assert "it is in use" in str(refused.value)
    assert "v1beta1, v1alpha1" in str(refused.value)
    with pytest.raises(KubectlError, match="it is in use"):
        scene.plane.kubectl("delete", "vconv", "--all")
    found = json.loads(scene.plane.kubectl("get", "vconv", scene.name, "-o", "json"))
    assert "deletionTimestamp" not in found["metadata"]
    assert "finalizers" not in found["metadata"]
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1


def test_it_goes_when_it_is_not_in_use(scene: Scene) -> None:
    scene.plane.kubectl("delete", f"crontabs.v1.{scene.group}", "mine")
    scene.plane.kubectl("annotate", "vconv", scene.name, "look=again")
    until(lambda: in_use(scene) == "False")
    delete(scene)
    assert not exists(scene, "vconv", scene.name)
    until(lambda: scene.conversion() == {"strategy": "None"})
    until(lambda: not bundle_exists(scene))


def test_it_goes_right_after_its_crd(scene: Scene) -> None:
    mine = f"crontabs.v1.{scene.group}", "mine", "--type=merge"
    scene.plane.kubectl("patch", *mine, '--patch={"metadata":{"finalizers":["example.com/wait"]}}')
    scene.plane.kubectl("delete", "crd", scene.name, "--wait=false")
    until(lambda: in_use(scene) == "False")
    delete(scene)
    assert not exists(scene, "vconv", scene.name)
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    assert scene.conversion()["strategy"] == "Webhook"
    scene.plane.kubectl("patch", *mine, '--patch={"metadata":{"finalizers":null}}')
    until(lambda: not exists(scene, "crd", scene.name))
    until(lambda: not bundle_exists(scene))
    assert not events(scene, "DeletedInUse")


def test_its_rules_go_on_serving_while_anybody_needs_them(
    scene: Scene, operator: Operator, pod: WebhookPod
) -> None:
    delete_behind_its_back(scene, operator)
    pod.process.restart()
    operator.start()
    until(lambda: operator.metric("crdkeeper_version_conversions", reason="DeletedInUse") == 1)
    said = "its last rules are still served"
    until(lambda: any(said in each["note"] for each in events(scene, "DeletedInUse")))
    assert bundle_exists(scene)
    assert scene.conversion()["strategy"] == "Webhook"
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    # A CRD with a single served version needs no conversion.
    versions = [{**each, "served": each["storage"]} for each in scene.versions()]
    scene.apply_definition("v1", versions=versions)
    until(lambda: scene.conversion() == {"strategy": "None"})
    until(lambda: not bundle_exists(scene))
    until(lambda: operator.metric("crdkeeper_version_conversions", reason="DeletedInUse") == 0)
    assert scene.spec("v1", "mine") == V1


def test_it_can_come_back(scene: Scene, operator: Operator) -> None:
    delete_behind_its_back(scene, operator)
    operator.start()
    until(lambda: events(scene, "DeletedInUse"))
    scene.convert(RULES)
    scene.ready()
    until(lambda: in_use(scene) == "True")
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    until(lambda: operator.metric("crdkeeper_version_conversions", reason="DeletedInUse") == 0)


def test_rules_of_a_crd_that_is_gone_are_deleted(scene: Scene, operator: Operator) -> None:
    delete_behind_its_back(scene, operator)
    scene.plane.kubectl("delete", "crd", scene.name, "--timeout=120s")
    assert bundle_exists(scene)
    operator.start()
    until(lambda: not bundle_exists(scene))


def test_what_others_point_to_our_webhook_is_theirs(scene: Scene, operator: Operator) -> None:
    delete_behind_its_back(scene, operator)
    conversion = scene.conversion()
    scene.plane.kubectl("delete", "crd", scene.name, "--timeout=120s")
    scene.apply_definition("v1", conversion=conversion)
    until(scene.served)
    scene.create("v1", "mine", V1)
    operator.start()
    scene.plane.kubectl("annotate", "crd", scene.name, "look=again")
    # By then it has done so for another CRD, which comes after this one.
    other = Scene(scene.plane, f"other-{scene.group}")
    try:
        other.convert(RULES)
        other.ready()
        delete(other)
        until(lambda: other.conversion() == {"strategy": "None"})
    finally:
        other.remove()
    assert scene.conversion()["webhook"]["clientConfig"]["url"].endswith(f"/{scene.name}")
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    assert not events(scene, "DeletedInUse")


@pytest.mark.parametrize("deleted", [False, True])
def test_the_finalizer_of_a_former_release_comes_off(scene: Scene, operator: Operator, deleted: bool) -> None:
    operator.stop()
    kubectl = scene.plane.kubectl
    metadata = {"name": scene.name, "finalizers": [FINALIZER]}
    former = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "VersionConversion", "metadata": metadata}
    apply = ("apply", "--server-side", "--field-manager=crdkeeper-conversion", "-f", "-")
    kubectl(*apply, input=json.dumps(former))
    uid = kubectl("get", "vconv", scene.name, "-o", "jsonpath={.metadata.uid}")
    owner = {**former, "name": scene.name, "uid": uid}
    owner.pop("metadata")
    patch = json.dumps({"metadata": {"ownerReferences": [owner]}})
    kubectl("patch", "configmap", scene.name, "-n", NAMESPACE, "--type=merge", f"--patch={patch}")
    if deleted:
        kubectl(
            *("patch", "vconv", scene.name, "--subresource=status", "--type=merge"),
            '--patch={"status":{"conditions":[]}}',
        )
        delete(scene)
        assert exists(scene, "vconv", scene.name)

    operator.start()

    if deleted:
        until(lambda: not exists(scene, "vconv", scene.name))
        until(lambda: events(scene, "DeletedInUse"))
    else:
        jsonpath = "jsonpath={.metadata.finalizers}"
        until(lambda: not kubectl("get", "vconv", scene.name, "-o", jsonpath))
    jsonpath = "jsonpath={.metadata.ownerReferences}"
    until(lambda: not kubectl("get", "configmap", scene.name, "-n", NAMESPACE, "-o", jsonpath))
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
