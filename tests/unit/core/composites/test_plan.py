"""What is applied and removed, in which order, for one composite."""

from typing import Any

import pytest

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import MOST_KINDS, listed_entries
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.core.composites.scenes import Scene
from tests.unit.core.templates.compositions import config_map, server

CHAIN = (
    server("a", text="x"),
    server("b", text="${a.metadata.name}"),
    server("c", text="${b.metadata.name}"),
)


def test_waves_are_created_in_order_and_deleted_in_reverse() -> None:
    scene = Scene(*reversed(CHAIN), server("d", text="alone"))
    scene.run()
    assert [each for each in scene.done if each != "create d"] == ["create a", "create b", "create c"]
    assert scene.done.index("create d") < scene.done.index("create b")
    scene.done.clear()
    scene.run()
    assert scene.done == []
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    planned = scene.run()
    assert [each for each in scene.done if each != "delete d"] == ["delete c", "delete b", "delete a"]
    assert planned.inventory == ()


def test_a_change_is_applied_wave_by_wave_and_nothing_else_is() -> None:
    scene = Scene(
        server("a", text="${composite.spec.engine}"), server("b", text="${a.spec.text}"), server("c")
    )
    scene.run()
    scene.done.clear()
    scene.value["spec"]["engine"] = "other"
    scene.run()
    assert scene.done == ["change a", "change b"]
    assert scene.condition("Ready")[0] == "Available"


def test_what_is_given_up_goes_after_all_was_applied_in_reverse_order() -> None:
    scene = Scene(*CHAIN)
    scene.run()
    scene.done.clear()
    scene.compose(server("a", text="new"), server("e", text="${a.metadata.name}"))
    scene.run()
    assert scene.done == ["change a", "create e", "delete c", "delete b"]


def test_nothing_goes_while_something_fails() -> None:
    scene = Scene(*CHAIN)
    scene.run()
    scene.compose(server("a", text="new"))
    scene.refused["a"] = Verdict(reasons.REFUSED, "it may not change")
    scene.run()
    assert scene.names() == ["a", "b", "c"]
    assert scene.condition("Synced") == ("Refused", "a: it may not change")
    assert [each["type"] for each in scene.value["status"]["conditions"]] == ["Synced", "Ready", "Stalled"]
    del scene.refused["a"]
    scene.run()
    assert scene.names() == ["a"]


def test_waiting_for_a_value_is_no_failure() -> None:
    scene = Scene(server("a"), config_map("old"))
    scene.run()
    scene.compose(server("a"), server("b", replicas="${a.status.ready}"))
    scene.run()
    assert scene.names() == ["a"]
    assert scene.condition("Synced")[0] == "ReconcileSuccess"
    assert scene.condition("Ready")[1].startswith("b: waits for")


@pytest.mark.parametrize(
    "anew",
    [
        {"replicas": "${a.status.ready}"},
        {"IncludeWhen": ["${a.status.ready > 0}"]},
        {"called": "${n}", "ForEach": [{"n": "${a.status.phase == 'up' ? ['orders-db'] : []}"}]},
    ],
    ids=["it waits", "includeWhen waits", "forEach waits"],
)
def test_a_renamed_resource_keeps_its_object_while_it_waits(anew: Any) -> None:
    scene = Scene(server("a"), server("db"), server("old"))
    scene.run()
    scene.done.clear()
    scene.compose(server("a"), server("database", **{"called": "orders-db", **anew}))
    scene.run()
    assert (scene.done, scene.names()) == ([], ["a", "db", "old"])
    listed = {each["name"]: each for each in scene.value["status"]["crdkeeper"]["resources"]}
    assert listed["old"]["message"] == (
        "it is deleted once database is rendered, which may be the same object"
    )
    first = next(each for each in scene.objects.values() if each["metadata"]["name"] == "orders-a")
    first["status"] = {"ready": 1, "phase": "up"}
    scene.run()
    assert (scene.done, scene.names()) == (["change db", "delete old"], ["a", "db"])


def test_an_excluded_resource_keeps_its_object_for_another_that_waits() -> None:
    waiting = server("b", called="orders-db", replicas="${a.status.ready}")
    scene = Scene(server("a"), server("db", IncludeWhen=["${composite.spec.enabled}"]))
    scene.run()
    scene.value["spec"]["enabled"] = False
    scene.compose(server("a"), server("db", IncludeWhen=["${composite.spec.enabled}"]), waiting)
    scene.run()
    assert scene.names() == ["a", "db"]


def test_a_field_of_the_status_that_cannot_be_written_is_a_problem() -> None:
    scene = Scene(server("a"), server("old"))
    scene.run()
    for value, why in {
        "${composite.spec.names[5]}": "status.address: composite.spec.names[5] is not set.",
        "far-too-${a.metadata.name}": "status.address: the API server would refuse it: status.address: ",
    }.items():
        scene.compose(server("a"), status={"address": value})
        scene.run()
        reason, message = scene.condition("Synced")
        assert reason == "StatusFailed" and message.startswith(why)
        assert "far-too" not in message
        assert scene.condition("Ready")[0] == "NotSynced"
    # What has nothing to do with it goes on.
    assert scene.names() == ["a"]
    scene.compose(server("a"), status={"address": "${a.metadata.name}"})
    scene.run()
    assert scene.value["status"]["address"] == "orders-a"
    assert scene.condition("Synced")[0] == "ReconcileSuccess"


def test_a_field_of_the_status_that_waits_is_told() -> None:
    scene = Scene(server("a"))
    scene.compose(server("a"), status={"address": "${a.status.phase}", "replicas": "${a.status.ready}"})
    scene.run()
    assert scene.condition("Synced") == (
        "ReconcileSuccess",
        "All objects that can be rendered now are as the Composition says. Not yet in the status: "
        "status.address: waits for a.status; status.replicas: waits for a.status.",
    )


def test_a_dependent_waits_for_an_object_that_cannot_be_created() -> None:
    scene = Scene(*CHAIN, server("d"))
    scene.refused["b"] = Verdict(reasons.REFUSED, "no")
    scene.run()
    assert scene.names() == ["a", "d"]
    listed = {each["name"]: each for each in scene.value["status"]["crdkeeper"]["resources"]}
    assert (listed["b"]["message"], listed["d"]["ready"]) == ("no", True)


def test_an_object_in_deletion_is_waited_for_and_created_again() -> None:
    scene = Scene(*CHAIN)
    scene.run()
    gone = next(each for each in scene.objects if each.name == "orders-a")
    scene.objects[gone]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.done.clear()
    scene.run()
    assert scene.done == []
    assert "it is being deleted since" in scene.condition("Ready")[1]
    scene.drop("a")
    scene.run()
    assert scene.done == ["create a"]


def test_an_object_of_somebody_else_is_left_alone() -> None:
    scene = Scene(server("a"), server("b", text="${a.metadata.name}"))
    theirs = dict(scene.put("orders-a"))
    scene.run()
    assert scene.names() == ["a"] and next(iter(scene.objects.values())) == theirs
    assert scene.condition("Synced")[0] == "NotOurs"
    assert scene.value["status"]["crdkeeper"]["resources"] == []


@pytest.mark.parametrize(
    ("metadata", "adopted"),
    [
        ({}, True),
        ({"ownerReferences": [{"uid": "u2", "kind": "Other", "name": "x", "controller": True}]}, False),
        ({"labels": {"crdkeeper.dev/composite-uid": "u2"}}, True),
        ({"annotations": {"crdkeeper.dev/outlives": "u2"}}, False),
    ],
    ids=["free", "of a controller", "left by kubectl delete --cascade=orphan", "of another composite"],
)
def test_adoption_is_asked_for_and_takes_nothing_from_another(metadata: Any, adopted: bool) -> None:
    scene = Scene(server("a"), annotations={"crdkeeper.dev/adopt": "b, a"})
    scene.put("orders-a", **metadata)
    scene.run()
    assert scene.done == (["change a"] if adopted else [])


def test_a_forged_entry_deletes_nothing_and_a_lost_one_is_found_again() -> None:
    scene = Scene(*CHAIN)
    scene.run()
    victim = scene.put("victim")
    forged: Any = {
        "name": "x",
        "object": {"apiVersion": "example.com/v1", "kind": "Server", "namespace": "shop", "name": "victim"},
    }
    paths = [
        {"name": "x", "object": {**forged["object"], **each}}
        for each in ({"name": ".."}, {"name": ""}, {"namespace": "other"}, {"apiVersion": "a/b/../../api/v1"})
    ]
    scene.value["status"] = {"crdkeeper": {"resources": [forged, {"name": 3}, None, *paths]}}
    scene.compose(server("a", text="x"))
    scene.run()
    assert scene.names() == ["a", "victim"]
    scene.value["status"] = {}
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.run()
    assert list(scene.objects.values()) == [victim]


def test_an_object_without_the_note_is_applied_once_for_each_configuration() -> None:
    scene = Scene(server("a", text="${composite.spec.engine}"))
    scene.stripped = {"a"}
    scene.run()
    scene.run()
    assert scene.done == ["create a"]
    scene.value["spec"]["engine"] = "other"
    scene.run()
    scene.run()
    assert scene.done == ["create a", "change a"]
    (live,) = scene.objects.values()
    live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"] = {}
    scene.run()
    assert scene.done == ["create a", "change a", "change a"]


def test_a_deletion_says_what_it_waits_for_and_the_next_wave_waits() -> None:
    scene = Scene(*CHAIN)
    scene.run()
    scene.held.add("c")
    scene.done.clear()
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.run()
    assert scene.done == ["delete c"]
    assert scene.condition("Ready") == (
        "Deleting",
        "3 objects to remove. Server shop/orders-c: it is being deleted since 2026-01-01T00:00:00Z, and "
        "waits for its finalizers: example.com/x.",
    )
    scene.drop("c")
    scene.run()
    assert scene.names() == []


def test_collections_grow_and_shrink_and_an_includewhen_that_waits_removes_nothing() -> None:
    items = server("i", called="orders-${n}", ForEach=[{"n": "${composite.spec.names}"}])
    scene = Scene(items, server("s", IncludeWhen=["${composite.spec.enabled}"]))
    scene.run()
    assert scene.names() == ["a", "b", "s"]
    scene.value["spec"] |= {"names": ["b", "c"], "enabled": False}
    scene.run()
    assert scene.names() == ["b", "c"]
    scene.value["spec"]["enabled"] = True
    scene.run()
    scene.compose(
        items,
        server("s", IncludeWhen=["${composite.spec.enabled}"]),
        server("t", IncludeWhen=["${s.status.ready > 0}"]),
    )
    scene.run()
    assert scene.names() == ["b", "c", "s"]


def test_a_kind_that_cannot_be_read_loses_nothing() -> None:
    scene = Scene(*CHAIN)
    scene.run()
    scene.done.clear()
    key = ("example.com", "Server")
    scene.unreadable[key] = Verdict(reasons.RIGHT_MISSING, "not allowed")
    scene.compose(server("a", text="new"))
    scene.run()
    assert (scene.done, len(scene.value["status"]["crdkeeper"]["resources"])) == ([], 3)
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert scene.run().inventory != ()
    # With a kind that is gone, its objects have gone.
    scene.unreadable[key] = Verdict(reasons.KIND_MISSING, "not served")
    assert scene.run().inventory == ()


def test_more_objects_than_the_status_can_list_are_refused() -> None:
    items = server("i", called="${n}", ForEach=[{"n": "${composite.spec.names}"}])
    scene = Scene(items)
    scene.value["spec"]["names"] = [f"a{each}" for each in range(600)]
    scene.run()
    scene.value["spec"]["names"] = [f"b{each}" for each in range(600)]
    scene.run()
    assert scene.condition("Synced")[0] == "TooManyObjects"
    assert {each[0] for each in scene.names()} == {"a"}


def test_what_cannot_be_rendered_now_is_neither_changed_nor_removed() -> None:
    scene = Scene(server("a"), server("b", replicas="${a.status.ready}"))
    scene.run()
    (first,) = scene.objects.values()
    first["status"] = {"ready": 1}
    scene.run()
    assert scene.names() == ["a", "b"]
    scene.done.clear()
    del next(each for each in scene.objects.values() if each["metadata"]["name"] == "orders-a")["status"]
    scene.run()
    assert (scene.done, scene.names()) == ([], ["a", "b"])
    assert len(scene.value["status"]["crdkeeper"]["resources"]) == 2


FORGED: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Server", "namespace": "shop", "name": "x"}


@pytest.mark.parametrize(
    ("change", "number"),
    [
        ({}, 1),
        ({"name": ".."}, 0),
        ({"name": ""}, 0),
        ({"name": "a/b"}, 0),
        ({"namespace": "other"}, 0),
        ({"namespace": None}, 0),
        ({"apiVersion": "a/b/../../api/v1"}, 0),
        ({"kind": 3}, 0),
    ],
    ids=str,
)
def test_an_entry_that_the_composer_cannot_have_written_is_not_asked_for(change: Any, number: int) -> None:
    entry = {"name": "a", "object": {**FORGED, **change}}
    state = {"crdkeeper": {"resources": [entry]}}
    assert len(listed_entries({"metadata": {"namespace": "shop"}, "status": state})) == number


def test_what_the_composition_says_of_deletion_counts_also_while_a_resource_waits() -> None:
    scene = Scene(server("a"))
    scene.run()
    scene.compose(server("a", Deletion="Orphan", IncludeWhen=["${b.status.ready > 0}"]), server("b"))
    scene.run()
    scene.done.clear()
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.run()
    assert sorted(scene.done) == ["delete b", "release a"]


def test_a_status_with_more_kinds_than_any_composition_has_is_not_read_as_a_whole() -> None:
    entries = [{"name": "a", "object": {**FORGED, "kind": f"Kind{each}"}} for each in range(1_000)]
    found = listed_entries(
        {"metadata": {"namespace": "shop"}, "status": {"crdkeeper": {"resources": entries}}}
    )
    assert len(found) == MOST_KINDS


def test_a_pass_that_ends_early_does_not_say_that_all_is_done() -> None:
    scene = Scene(*CHAIN)
    scene.run()
    scene.compose(server("a", text="new"), *CHAIN[1:])
    scene.stop_before_requests()
    assert scene.condition("Synced")[0] == "ReconcilePending"
    assert scene.condition("Ready")[0] == "NotSynced"
    scene.run()
    assert scene.condition("Ready")[0] == "Available"


def test_a_resource_whose_new_kind_is_missing_keeps_what_it_had() -> None:
    scene = Scene(server("a"), server("db"), server("old"))
    scene.run()
    scene.done.clear()
    scene.unreadable["", "ConfigMap"] = Verdict(reasons.KIND_MISSING, "not served")
    scene.compose(server("a"), config_map("db"))
    scene.run()
    # What has nothing to do with it goes.
    assert (scene.done, scene.names()) == (["delete old"], ["a", "db"])
    listed = {each["object"]["kind"]: each for each in scene.value["status"]["crdkeeper"]["resources"]}
    assert listed["Server"]["message"] == "it is deleted once db is applied"
    scene.unreadable.clear()
    scene.run()
    assert scene.done == ["delete old", "create db", "delete db"]


def test_an_object_that_two_resources_would_be_stays_as_it_is() -> None:
    scene = Scene(
        server("a", called="${composite.metadata.name}-${composite.spec.engine}", text="1"),
        server("b", text="2"),
        server("c", text="${a.metadata.name}"),
    )
    scene.value["spec"]["engine"] = "a"
    scene.run()
    scene.done.clear()
    scene.value["spec"]["engine"] = "b"
    planned = scene.run()
    assert (scene.done, scene.names()) == ([], ["a", "b", "c"])
    assert scene.condition("Synced")[0] == "RenderingFailed"
    assert {each.identity.name for each in planned.inventory} == {"orders-a", "orders-b", "orders-c"}
    scene.value["spec"]["engine"] = "d"
    scene.run()
    assert scene.done == ["create d", "change c", "delete a"]
