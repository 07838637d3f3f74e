"""From `kubectl apply` of a VersionConversion to versions that convert, and back to none."""

from copy import deepcopy
from typing import Any

import pytest

from tests.cluster.conversion.rules import RULES, rules_of
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene, until
from tests.cluster.harness import NAMESPACE, Operator
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError
from tests.kstatus import status_of


def test_rules_become_a_conversion_that_serves(scene: Scene) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    found = scene.ready()
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    status = found["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]} == dict.fromkeys(
        ("Compiled", "Permitted", "Verified", "Serving", "Configured", "Converting", "InUse", "Ready"), "True"
    )
    assert status["verification"]["objects"] == 1
    assert status["verification"]["keptAside"] == 1
    assert status["verification"]["generated"] > 100
    assert status["servedGeneration"] == found["metadata"]["generation"]
    config = dict(scene.conversion()["webhook"]["clientConfig"])
    assert config.pop("caBundle")
    assert status["clientConfig"] == config
    aside = [(each["version"], each["path"]) for each in status["losses"]]
    assert aside == [("v1alpha1", "spec.replicas"), ("v1alpha1", "spec.containers[*].memory")]
    listed = scene.plane.kubectl("get", "vconv", scene.name)
    assert "v1 <- v1beta1, v1alpha1" in listed
    # An edit at an old version keeps what only the new one can express.
    scene.create("v1alpha1", "mine", {**V1ALPHA1, "hostPort": "example.com:80"})
    assert scene.spec("v1", "mine") == {**V1, "host": "example.com", "port": 80}


def test_a_field_without_a_rule_is_named_and_nothing_is_changed(scene: Scene) -> None:
    scene.convert({**RULES, "v1alpha1": []})
    found = scene.wait("Ready", "False", "InvalidRules")
    paths = {each["path"] for each in found["status"]["problems"]}
    assert paths == {"spec.spokes[1].version"}
    assert any("spec.hostPort" in each["message"] for each in found["status"]["problems"])
    assert scene.conversion() == {"strategy": "None"}


def test_bad_rules_never_replace_those_that_serve(scene: Scene) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    scene.convert({**RULES, "v1alpha1": RULES["v1alpha1"][:1]})
    message = scene.wait("Ready", "False", "InvalidRules")["message"]
    assert "The rules of generation 1 are still served." in message
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    other = {"spoke": "spec.hostPort", "join": {**RULES["v1alpha1"][1]["join"], "template": "{host}/{port}"}}
    scene.convert({**RULES, "v1alpha1": [RULES["v1alpha1"][0], other, *RULES["v1alpha1"][2:]]})
    scene.ready()
    assert scene.spec("v1alpha1", "mine")["hostPort"] == "localhost/1234"


def test_objects_that_do_not_survive_the_rules_are_named(scene: Scene) -> None:
    scene.apply_definition("v1beta1")
    until(lambda: scene.served("v1beta1"))
    # The API server may still store at the old version for a moment.
    until(lambda: _stored(scene, "v1beta1", "bad", {"port": "http"}))
    refusing = deepcopy(RULES)
    refusing["v1beta1"][1]["refuse"] = True
    scene.convert(refusing)
    found = scene.wait("Verified", "False", "ObjectsFail")
    failures = found["status"]["verification"]["failures"]
    assert {(each["name"], each["fromVersion"], each["toVersion"]) for each in failures} >= {
        ("bad", "v1beta1", "v1")
    }
    assert any("a string that is no integer" in each["message"] for each in failures)
    assert scene.conversion() == {"strategy": "None"}
    scene.create("v1beta1", "bad", {"port": "80"})
    # Changed rules are tried at once, unchanged ones after 30 seconds (in virtual time in tests/unit).
    scene.convert({**refusing, "v1alpha1": refusing["v1alpha1"][::-1]})
    scene.ready()
    assert scene.spec("v1", "bad")["port"] == 80


def test_a_plan_changes_nothing(scene: Scene) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES, mode="Plan")
    found = scene.wait("Ready", "True", "PlanOnly")
    assert status_of(found) == "Current"
    assert found["status"]["verification"]["objects"] == 1
    assert scene.conversion() == {"strategy": "None"}
    scene.convert(RULES, mode="Execute")
    scene.ready()


def test_another_webhook_is_replaced_on_request_only(scene: Scene) -> None:
    other = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "other", "name": "other", "path": "/convert"}},
        },
    }
    scene.apply_definition("v1", conversion=other)
    scene.convert(RULES)
    message = scene.wait("Ready", "False", "OtherWebhook")["message"]
    assert "Service other/other" in message
    scene.convert(RULES, replaceWebhook=True)
    scene.ready()
    scene.create("v1", "mine", V1)
    # There was no object by which to see that the API server has left the other webhook.
    until(lambda: scene.answers("v1alpha1", "mine") == V1ALPHA1)


def test_names_and_words_that_are_not_known_are_refused(scene: Scene) -> None:
    document = rules_of(scene.group, RULES)
    document["metadata"]["name"] = "other"
    with pytest.raises(KubectlError, match=r"metadata\.name must be <spec\.resource\.resource>"):
        scene.apply(document)


def _stored(scene: Scene, version: str, name: str, spec: dict[str, Any]) -> bool:
    """Whether the object is stored at its version; if not, it is created anew the next time."""
    scene.create(version, name, spec)
    if scene.plane.etcd.stored_versions(scene.group, "crontabs") == {f"{scene.group}/{version}": 1}:
        return True
    scene.plane.kubectl("delete", f"crontabs.{version}.{scene.group}", name)
    return False


def test_what_others_take_away_is_put_back(scene: Scene, installed: Cluster) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    patch = '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
    installed.kubectl("patch", "crd", scene.name, "--type=merge", "-p", patch)
    until(lambda: scene.conversion()["strategy"] == "Webhook")
    installed.kubectl("delete", "configmap", scene.name, "-n", NAMESPACE)
    installed.kubectl("annotate", "vconv", scene.name, "look=again")
    find = ("get", "configmap", scene.name, "-n", NAMESPACE, "--ignore-not-found", "-o", "name")
    until(lambda: installed.kubectl(*find).strip())
    # The API server may still convert without the webhook for a moment.
    until(lambda: scene.answers("v1alpha1", "mine") == V1ALPHA1)


def test_a_version_is_added_while_the_others_serve(scene: Scene) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    versions = scene.versions()
    added = {**versions[0], "name": "v2", "storage": False, "served": False}
    scene.apply_definition("v1", versions=[*versions, added])
    message = scene.wait("Compiled", "False", "InvalidRules")["message"]
    assert "lacks v2" in message
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1
    scene.convert({**RULES, "v2": []})
    scene.ready()
    scene.apply_definition("v1", versions=[*versions, {**added, "served": True}])
    until(lambda: scene.answers("v2", "mine") == V1)


def test_a_storage_flip_with_migration_goes_through_it(scene: Scene, installed: Cluster) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    scene.apply_definition("v1beta1")
    scene.allow_rewriting()
    migration = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "StorageMigration",
        "metadata": {"name": scene.name},
        "spec": {
            "resource": {"group": scene.group, "resource": "crontabs"},
            "settleSeconds": 2,
            "apiServerLeases": "Ignore",
        },
    }
    scene.apply(migration)
    installed.kubectl("wait", "--for=condition=Succeeded", f"smig/{scene.name}", "--timeout=120s")
    assert installed.etcd.stored_versions(scene.group, "crontabs") == {f"{scene.group}/v1beta1": 1}
    assert scene.spec("v1", "mine") == V1


def test_missing_rights_are_named_and_waited_for(scene: Scene, installed: Cluster) -> None:
    installed.kubectl("delete", "clusterrole", f"read-{scene.group}")
    scene.until_allowed("list", f"crontabs.{scene.group}", allowed=False)
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    message = scene.wait("Verified", "False", "NotPermitted")["message"]
    assert f'apiGroups: ["{scene.group}"]' in message
    scene.let_read()
    scene.until_allowed("list", f"crontabs.{scene.group}")
    installed.kubectl("annotate", "vconv", scene.name, "look=again")
    scene.ready()


def test_without_an_opt_in_nothing_is_converted(scene: Scene, installed: Cluster) -> None:
    installed.kubectl("delete", "clusterrole", f"convert-{scene.group}")
    scene.create("v1", "mine", V1)
    scene.until_allowed("patch", f"customresourcedefinitions/{scene.name}", allowed=False)
    scene.convert(RULES)
    found = scene.wait("Permitted", "False", "NotPermitted")
    assert "aggregate-to-converter" in found["message"]
    assert f'resourceNames: ["{scene.name}"]' in found["message"]
    scene.wait("Ready", "False", "NotPermitted")
    # No objects were read, and nothing was passed to the webhook.
    assert found["status"]["verification"]["digest"] == ""
    find = ("get", "configmap", scene.name, "-n", NAMESPACE, "--ignore-not-found", "-o", "name")
    assert not installed.kubectl(*find)
    assert scene.conversion() == {"strategy": "None"}
    scene.opt_in()
    scene.until_allowed("patch", f"customresourcedefinitions/{scene.name}")
    installed.kubectl("annotate", "vconv", scene.name, "look=again")
    scene.ready()
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1


def test_without_the_opt_in_of_before_rules_go_on_serving(scene: Scene, installed: Cluster) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    installed.kubectl("delete", "clusterrole", f"convert-{scene.group}")
    scene.until_allowed("patch", f"customresourcedefinitions/{scene.name}", allowed=False)
    other = {"spoke": "spec.hostPort", "join": {**RULES["v1alpha1"][1]["join"], "template": "{host}/{port}"}}
    scene.convert({**RULES, "v1alpha1": [RULES["v1alpha1"][0], other, *RULES["v1alpha1"][2:]]})
    message = scene.wait("Ready", "False", "NotPermitted")["message"]
    assert "The rules of generation 1 are still served." in message
    assert scene.spec("v1alpha1", "mine") == V1ALPHA1


def test_a_crd_that_comes_later_and_goes_again(scene: Scene, installed: Cluster) -> None:
    installed.kubectl("delete", "crd", scene.name, "--timeout=120s")
    scene.convert(RULES)
    scene.wait("Ready", "False", "DefinitionNotFound")
    scene.apply_definition("v1")
    scene.ready()
    installed.kubectl("delete", "crd", scene.name, "--timeout=120s")
    scene.wait("Ready", "False", "DefinitionNotFound")
    installed.kubectl("delete", "vconv", scene.name, "--timeout=120s")


def test_it_converts_while_the_operator_is_down(scene: Scene, operator: Operator, pod: WebhookPod) -> None:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    operator.kill()
    try:
        assert scene.spec("v1alpha1", "mine") == V1ALPHA1
        pod.process.restart()
        until(pod.ready)
        until(lambda: scene.answers("v1alpha1", "mine") == V1ALPHA1)
    finally:
        operator.start()


def test_rules_that_cannot_be_understood_are_told_so(scene: Scene) -> None:
    deep = {"hub": "a", "spoke": "b", "each": [{"hub": "c", "spoke": "d", "wrong": 1}]}
    middle = {"hub": "containers", "spoke": "containers", "each": [deep]}
    scene.convert({**RULES, "v1alpha1": [{"hub": "spec.x", "spoke": "spec.x", "each": [middle]}]})
    found = scene.wait("Ready", "False", "InvalidRules")
    (problem,) = found["status"]["problems"]
    assert problem["path"] == "spec.spokes.1.rules.0.each.0.each.0.each.0.wrong"
