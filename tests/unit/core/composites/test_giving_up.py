"""What a composite gives up goes in order, also if some of it has to stay for now."""

import pytest

from crdkeeper.core.composites import reasons
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from tests.unit.core.composites.scenes import Scene
from tests.unit.core.templates.compositions import config_map, server


def test_what_has_to_stay_for_now_keeps_the_waves_before_it() -> None:
    scene = Scene(config_map("credentials"), server("db", text="${credentials.metadata.name}"), server("a"))
    scene.run()
    scene.done.clear()
    # Until b is rendered, it may be the same object as db.
    scene.compose(server("a"), server("b", replicas="${a.status.ready}"))
    scene.run()
    assert (scene.done, scene.names()) == ([], ["a", "credentials", "db"])
    (first,) = (each for each in scene.objects.values() if each["metadata"]["name"] == "orders-a")
    first["status"] = {"ready": 1}
    scene.run()
    assert scene.done == ["create b", "delete db", "delete credentials"]


def test_what_is_listed_does_not_wait_for_what_others_may_have_made() -> None:
    a, b = server("a"), server("b", text="${a.metadata.name}")
    scene = Scene(a, b, server("old"))
    scene.run()
    scene.done.clear()
    of = {"crdkeeper.dev/composite-uid": "u1", "crdkeeper.dev/resource": "b"}
    scene.put("forged", labels=of, ownerReferences=[{"uid": "u1", "controller": True}])
    scene.held.add("forged")
    scene.compose(a, b)
    scene.run()
    assert sorted(scene.done) == ["delete forged", "delete old"]
    assert scene.names() == ["a", "b", "forged"]


def test_after_a_lost_status_the_last_wave_still_goes_first() -> None:
    a, b = server("a", IncludeWhen=["${composite.spec.enabled}"]), server("b", text="${a.metadata.name}")
    scene = Scene(a, b)
    scene.run()
    scene.done.clear()
    scene.value["status"] = {}
    scene.value["spec"]["enabled"] = False
    scene.run()
    assert scene.done == ["delete b", "delete a"]


SERVERS = "example.com", "Server"


@pytest.mark.parametrize("reason", [reasons.FAILED, reasons.RIGHT_MISSING])
def test_what_cannot_be_read_is_told_and_keeps_the_waves_before_it(reason: Reason) -> None:
    scene = Scene(config_map("credentials"), server("db", text="${credentials.metadata.name}"))
    scene.run()
    scene.done.clear()
    scene.compose(config_map("other"))
    scene.unreadable[SERVERS] = Verdict(reason, "no Servers can be read")
    scene.run()
    assert scene.done == ["create other"]
    said = "db: no Servers can be read"
    assert (scene.condition("Synced"), scene.condition("Ready")) == ((reason.name, said), ("NotSynced", said))
    listed = {each["name"]: each for each in scene.value["status"]["crdkeeper"]["resources"]}
    assert listed["db"]["message"] == "no Servers can be read"
    scene.unreadable.clear()
    scene.run()
    assert scene.done == ["create other", "delete db", "delete credentials"]


def test_what_has_gone_with_its_kind_is_listed_but_not_waited_for() -> None:
    scene = Scene(config_map("credentials"), server("db", text="${credentials.metadata.name}"))
    scene.run()
    scene.done.clear()
    scene.compose(config_map("other"))
    scene.unreadable[SERVERS] = Verdict(reasons.KIND_MISSING, "Server is not served")
    scene.run()
    assert scene.done == ["create other", "delete credentials"]
    assert (scene.condition("Synced")[0], scene.condition("Ready")[0]) == ("ReconcileSuccess", "Available")
    listed = {each["name"]: each for each in scene.value["status"]["crdkeeper"]["resources"]}
    assert listed["db"]["message"] == "its kind is not served: if it is again, what is left of it is deleted"
    # It was only away for a while, as in an upgrade of the API server.
    scene.unreadable.clear()
    scene.run()
    assert scene.done[2:] == ["delete db"]


@pytest.mark.parametrize("reason", [reasons.FAILED, reasons.KIND_MISSING])
def test_the_kind_of_an_external_object_that_cannot_be_read_is_told(reason: Reason) -> None:
    zones = {"apiVersion": "example.com/v1", "kind": "Server", "name": "zones", "namespace": "platform"}
    scene = Scene({"name": "zones", "externalRef": zones}, config_map("a", of="${zones.metadata.name}"))
    scene.unreadable[SERVERS] = Verdict(reason, "no Servers can be read")
    scene.run()
    assert scene.condition("Synced") == (reason.name, "zones: no Servers can be read")


@pytest.mark.parametrize("gone", [True, False], ids=["its kind is gone", "it is being deleted"])
def test_one_of_the_same_kind_in_another_group_is_still_waited_for(gone: bool) -> None:
    """As after a move to the group of a fork, while the objects keep their names."""
    old = server("db")
    old["template"]["apiVersion"] = "old.example.com/v1"
    scene = Scene(old)
    scene.run()
    if gone:
        scene.objects.clear()
        scene.unreadable["old.example.com", "Server"] = Verdict(reasons.KIND_MISSING, "not served")
    scene.held.add("db")
    scene.compose(server("db", ReadyWhen=["${db.status.ready == 1}"]))
    scene.run()
    assert scene.condition("Synced")[0] == "ReconcileSuccess"
    reason, said = scene.condition("Ready")
    assert reason == "Creating" and said.startswith("db: Server shop/orders-db waits for ")
    (new,) = (live for key, live in scene.objects.items() if key.group == "example.com")
    new["status"] = {"ready": 1}
    scene.run()
    assert scene.condition("Ready")[0] == "Available"
