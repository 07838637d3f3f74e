"""Objects that outlive their composite."""

import copy
from typing import Any

import pytest

from tests.unit.core.composites.scenes import Scene
from tests.unit.core.templates.compositions import server


def test_an_orphan_is_released() -> None:
    scene = Scene(server("a", Deletion="Orphan"), server("b"))
    scene.run()
    scene.done.clear()
    scene.compose(server("b"))
    scene.run()
    assert scene.done == ["release a"] and scene.names() == ["a", "b"]


@pytest.mark.parametrize("after", ["given up", "deleted"])
@pytest.mark.parametrize("status", [{}, {"crdkeeper": {"resources": []}}], ids=["none", "nothing listed"])
def test_an_orphan_is_released_although_the_status_was_lost(after: str, status: Any) -> None:
    scene = Scene(server("a", Deletion="Orphan"), server("b"))
    scene.run()
    scene.done.clear()
    scene.value["status"] = status
    if after == "deleted":
        scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    else:
        scene.compose(server("c"))
    scene.run()
    assert {"delete b", "release a"} <= {*scene.done} <= {"create c", "delete b", "release a"}


def test_the_garbage_collector_knows_no_owner_of_an_orphan() -> None:
    scene = Scene(server("a", Deletion="Orphan"))
    scene.run()
    (live,) = scene.objects.values()
    assert "ownerReferences" not in live["metadata"]
    scene.done.clear()
    scene.compose(server("a"))
    scene.run()
    (live,) = scene.objects.values()
    assert [each["uid"] for each in live["metadata"]["ownerReferences"]] == ["u1"]
    scene.compose(server("a", Deletion="Orphan"))
    scene.run()
    (live,) = scene.objects.values()
    assert scene.done == ["change a", "change a"] and "ownerReferences" not in live["metadata"]


def test_an_orphan_of_another_composite_is_neither_adopted_nor_changed() -> None:
    scene = Scene(server("a"), annotations={"crdkeeper.dev/adopt": "a"})
    labels, marks = {"crdkeeper.dev/composite-uid": "u2"}, {"crdkeeper.dev/outlives": "u2"}
    victim = scene.put("orders-a", labels=labels, annotations=marks)
    before = copy.deepcopy(victim)
    scene.run()
    assert scene.done == [] and list(scene.objects.values()) == [before]
    reason, message = scene.condition("Synced")
    assert reason == "NotOurs" and "crdkeeper.dev/outlives" in message


def delete(scene: Scene) -> None:
    scene.done.clear()
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.run()


def test_what_the_revision_keeps_is_released_although_nothing_else_says_so() -> None:
    scene = Scene(server("a"), server("b"))
    scene.run()
    # No pass has followed it before the deletion.
    scene.compose(server("a", Deletion="Orphan"), server("b"))
    delete(scene)
    assert sorted(scene.done) == ["delete b", "release a"]


def test_what_was_marked_is_released_although_the_revision_deletes_it_now() -> None:
    scene = Scene(server("a", Deletion="Orphan"))
    scene.run()
    scene.compose(server("a"))
    delete(scene)
    assert scene.done == ["release a"]


def forge(scene: Scene, name: str) -> None:
    for each in scene.value["status"]["crdkeeper"]["resources"]:
        if each["name"] == name:
            each["deletion"] = "Orphan"


def test_the_status_alone_keeps_nothing_that_the_revision_deletes() -> None:
    scene = Scene(server("a"), server("b", IncludeWhen=["${composite.spec.enabled}"]))
    scene.run()
    forge(scene, "b")
    scene.value["spec"]["enabled"] = False
    scene.done.clear()
    scene.run()
    assert scene.done == ["delete b"]
    forge(scene, "a")
    delete(scene)
    assert scene.done == ["delete a"]


def test_what_only_the_status_keeps_waits_for_a_person() -> None:
    scene = Scene(server("a"), server("b", text="${a.metadata.name}"), server("c"))
    scene.run()
    forge(scene, "a")
    scene.compose(server("c"))
    scene.done.clear()
    scene.run()
    assert scene.done == ["delete b"]
    listed = {each["name"]: each for each in scene.value["status"]["crdkeeper"]["resources"]}
    assert "orders-a is listed with deletion: Orphan, but" in listed["a"]["message"]
    scene.chosen = False
    delete(scene)
    assert scene.done == ["delete c"]
    reason, message = scene.condition("Synced")
    assert reason == "NoRevision" and "orders-a is listed with deletion: Orphan, but" in message
    (live,) = scene.objects.values()
    live["metadata"]["annotations"]["crdkeeper.dev/outlives"] = "u1"
    scene.run()
    assert scene.done == ["delete c", "release a"]


def test_what_says_itself_that_it_stays_is_not_recreated() -> None:
    scene = Scene(server("a", text="x", Deletion="Orphan"))
    scene.run()
    scene.done.clear()
    scene.compose(server("a", text="y", Recreate=True))
    scene.immutable = True
    scene.run()
    assert (scene.done, scene.condition("Synced")[0]) == ([], "Refused")


def test_what_does_not_say_so_is_recreated() -> None:
    scene = Scene(server("a", text="x"))
    scene.run()
    scene.done.clear()
    scene.compose(server("a", text="y", Recreate=True))
    scene.immutable = True
    scene.run()
    assert scene.done == ["delete a", "create a"]
