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
