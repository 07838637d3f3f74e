"""Objects that others make look like a composite's supply no values for its status, and take none away."""

from typing import Any

from tests.unit.core.composites.scenes import Scene
from tests.unit.core.templates.compositions import server


def with_values() -> Scene:
    """The status has a value of b, which cannot be rendered while a is not ready."""
    a, b = server("a", ReadyWhen=["${a.status.ready == 1}"]), server("b", text="${a.metadata.name}")
    scene = Scene(a, b)
    scene.compose(a, b, status={"address": "${b.status.phase}"})
    scene.run()
    show(scene, "a", ready=1)
    scene.run()
    show(scene, "b", phase="first")
    scene.run()
    assert told(scene) == ("first", ["a", "b"])
    return scene


def show(scene: Scene, name: str, **status: Any) -> None:
    """The status of an object from now on."""
    (live,) = (each for at, each in scene.objects.items() if at.name == f"orders-{name}")
    live["status"] = status


def told(scene: Scene) -> tuple[str | None, list[str]]:
    """The value in the status, and the resources of the objects that it lists."""
    status = scene.value["status"]
    return status.get("address"), [each["name"] for each in status["crdkeeper"]["resources"]]


def test_a_forged_object_takes_no_value_away_and_supplies_none() -> None:
    scene = with_values()
    of = {"crdkeeper.dev/composite-uid": "u1", "crdkeeper.dev/resource": "b"}
    forged = scene.put("forged", labels=of, ownerReferences=[{"uid": "u1", "controller": True}])
    forged["status"] = {"phase": "forged"}
    show(scene, "a", ready=0)
    show(scene, "b", phase="second")
    scene.run()
    assert told(scene) == ("second", ["a", "b"])
    scene.drop("b")
    scene.run()
    assert told(scene) == ("second", ["a"])
    assert scene.done == ["create a", "create b"]
    show(scene, "a", ready=1)
    scene.run()
    assert scene.done[2:] == ["create b", "delete forged"]


def test_after_a_lost_status_an_object_counts_again_once_it_was_rendered() -> None:
    scene = with_values()
    scene.value["status"] = {}
    show(scene, "a", ready=0)
    show(scene, "b", phase="second")
    scene.run()
    assert told(scene) == (None, ["a"])
    show(scene, "a", ready=1)
    scene.run()
    assert told(scene) == ("second", ["a", "b"])
    show(scene, "a", ready=0)
    show(scene, "b", phase="third")
    scene.run()
    assert told(scene) == ("third", ["a", "b"])
    assert scene.done == ["create a", "create b"]
