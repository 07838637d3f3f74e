"""Valid objects that cannot be converted: no list fails because of them, and none of their data is lost."""

import json
import random
from copy import deepcopy
from typing import Any

from crdkeeper.core.conversion.notes import PREFIX
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1, Scene, until
from tests.cluster.harness import Operator
from tests.cluster.harness.webhookpod import WebhookPod

SECRET = "hunter2"
MANY_BYTES = "9" * 1_000_000
# More than fits in an annotation, and hard to compress.
LARGE = random.Random(7).randbytes(150_000).hex()
# Each kind of object that cannot be converted, at the storage version v1.
BAD: dict[str, dict[str, Any]] = {
    "no-quantity": {**V1, "containers": [{"name": "web", "memory": SECRET}]},
    "too-large-a-quantity": {**V1, "containers": [{"name": "web", "memory": MANY_BYTES}]},
}


def listed(scene: Scene, version: str) -> dict[str, dict[str, Any]]:
    """All objects at that version, by name."""
    found = scene.plane.kubectl("get", f"crontabs.{version}.{scene.group}", "-A", "-o", "json")
    return {each["metadata"]["name"]: each for each in json.loads(found)["items"]}


def patch(scene: Scene, version: str, name: str, spec: dict[str, Any]) -> None:
    body = json.dumps({"spec": spec})
    scene.plane.kubectl("patch", f"crontabs.{version}.{scene.group}", name, "--type=merge", "-p", body)


def test_no_list_fails_and_nothing_is_lost(scene: Scene, operator: Operator, pod: WebhookPod) -> None:
    scene.create("v1", "good", V1)
    large = {**V1, "containers": [{"name": "web", "image": "nginx", "memory": LARGE}]}
    scene.post("v1", "large", large)
    for name, spec in BAD.items():
        scene.post("v1", name, spec)
    begin = operator.log_size()
    scene.convert(RULES)
    found = scene.ready()
    # They are counted and named, and block neither these rules nor later ones.
    verification = found["status"]["verification"]
    assert (verification["objects"], verification["failed"], verification["unmatched"]) == (4, 0, 3)
    assert {each["name"] for each in verification["unmatchedObjects"]} == BAD.keys() | {"large"}
    quantity = "spec.containers: [0]: memory: a string that is no quantity"
    assert quantity in {each["message"] for each in verification["unmatchedObjects"]}
    for version in ("v1", "v1beta1", "v1alpha1"):
        assert listed(scene, version).keys() == BAD.keys() | {"good", "large"}
    patch(scene, "v1alpha1", "good", {"hostPort": "example.com:80"})
    assert scene.spec("v1", "good") == {**V1, "host": "example.com", "port": 80}
    # Editing another field at the other version leaves the value that it cannot show.
    assert scene.spec("v1beta1", "no-quantity")["containers"] == [{"name": "web"}]
    patch(scene, "v1beta1", "no-quantity", {"cronSpec": "@daily"})
    assert scene.spec("v1", "no-quantity") == {**BAD["no-quantity"], "schedule": "@daily"}
    # There is room for all, and a write at the other version loses nothing.
    labels = listed(scene, "v1beta1")["large"]["metadata"]["labels"]
    assert len(labels) > 1000
    assert all(each.startswith(f"v1.{PREFIX}") for each in labels)
    patch(scene, "v1beta1", "large", {"cronSpec": "@daily"})
    assert scene.spec("v1", "large") == {**large, "schedule": "@daily"}
    # Once the value is fixed, no trace of it remains.
    for name in BAD:
        patch(scene, "v1", name, {"containers": [{"name": "web", "memory": "1024Mi"}]})
    for name in BAD:
        each = listed(scene, "v1beta1")[name]
        assert each["spec"]["containers"][0]["memoryMiB"] == 1024
        assert not each["metadata"].keys() & {"annotations", "labels"}
    # No message shows a value.
    events = scene.plane.kubectl("get", "events.events.k8s.io", "-n", "default", "-o", "json")
    shown = [json.dumps(found), events, operator.log_since(begin), pod.process.log.read_text()]
    assert not [each for each in shown if SECRET in each or "9" * 100 in each]


def test_rules_are_changed_while_there_are_such_objects(scene: Scene) -> None:
    scene.convert(RULES)
    scene.ready()
    scene.post("v1", "no-quantity", BAD["no-quantity"])
    filled = deepcopy(RULES)
    filled["v1beta1"][2]["each"][0]["fill"] = {"spoke": 7}
    scene.convert(filled)
    assert scene.ready()["status"]["verification"]["unmatched"] == 1
    shown = [{"name": "web", "memoryMiB": 7}]
    until(lambda: (scene.answers("v1beta1", "no-quantity") or {}).get("containers") == shown)
    assert scene.spec("v1", "no-quantity") == BAD["no-quantity"]


def test_rules_that_refuse_say_so(scene: Scene) -> None:
    scene.post("v1", "no-quantity", BAD["no-quantity"])
    refusing = deepcopy(RULES)
    refusing["v1beta1"][2]["each"][0]["refuse"] = True
    scene.convert(refusing)
    message = scene.wait("Verified", "False", "ObjectsFail")["message"]
    assert "default/no-quantity, from v1 to v1beta1: spec.containers: [0]: memory: a string that" in message
    assert SECRET not in message
    assert scene.conversion() == {"strategy": "None"}


def test_forged_marks_and_notes_stop_nobody(scene: Scene) -> None:
    scene.convert(RULES)
    scene.ready()
    versions = ("v1", "v1beta1", "v1alpha1")
    notes = {f"{PREFIX}{each}": '{"order": 18446744073709551615, "fields": []}' for each in versions}
    marks = {f"{PREFIX}{each}": "incomplete" for each in versions}
    scene.post("v1", "forged", V1, annotations=notes, labels=marks)
    # There was no object by which to see that the API server converts: without rules, this field is lost.
    until(lambda: "cronSpec" in (scene.answers("v1beta1", "forged") or {}))
    for version in versions:
        assert "forged" in listed(scene, version)
    patch(scene, "v1beta1", "forged", {"cronSpec": "@daily"})
    assert scene.spec("v1", "forged") == {**V1, "schedule": "@daily"}
