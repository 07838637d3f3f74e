"""Of more objects than the status can list, it goes on to list those that only it knows of."""

from crdkeeper.api.composite import MOST_RESOURCES
from crdkeeper.core.composites import reasons
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.core.composites.scenes import Scene
from tests.unit.core.templates.compositions import config_map, server

CONFIG_MAPS = "", "ConfigMap"
FORGED = MOST_RESOURCES + 10


def listed(scene: Scene) -> list[tuple[str, int]]:
    """The objects in the status, with their waves."""
    return [
        (each["object"]["name"].removeprefix("orders-"), each["wave"])
        for each in scene.value["status"]["crdkeeper"]["resources"]
    ]


def with_late_map() -> Scene:
    """A Server, and a ConfigMap that was created after it, and then given up while it cannot be read."""
    scene = Scene(server("a"), config_map("late", of="${a.metadata.name}"))
    scene.run()
    assert listed(scene) == [("a", 0), ("late", 1)]
    scene.unreadable[CONFIG_MAPS] = Verdict(reasons.FAILED, "no ConfigMaps can be read")
    return scene


def forge(scene: Scene) -> None:
    """Whoever may create such objects can make them look like this, and stay in deletion."""
    for each in range(FORGED):
        of = {"crdkeeper.dev/composite-uid": "u1", "crdkeeper.dev/resource": "a"}
        owner = {"uid": "u1", "controller": True}
        scene.put(f"orders-A{each:04}", labels=of, ownerReferences=[owner])
        scene.held.add(f"A{each:04}")


def test_forged_objects_take_no_place_from_others() -> None:
    scene = Scene(server("a"))
    scene.run()
    forge(scene)
    for number, text in enumerate(("new", "newer")):
        scene.compose(server("a", text=text), server("b", text=text))
        scene.run()
        assert listed(scene) == [("a", 0), ("b", 0)]
        assert scene.condition("Synced")[0] == "ReconcileSuccess"
        assert scene.condition("Synced")[1].endswith(f"And {FORGED - 3:,} more.")
        changed = [each for each in scene.done if not each.startswith("delete")]
        assert changed == ["create a", "change a", "create b", "change a", "change b"][: 3 + 2 * number]
    assert len(scene.done) == 5 + FORGED


def test_a_status_of_a_deletion_fits() -> None:
    scene = with_late_map()
    forge(scene)
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for _ in range(2):
        scene.run()
        told = listed(scene)
        assert (len(told), told[-1], ("a", 0) in told) == (MOST_RESOURCES, ("late", 1), True)
    assert scene.done == ["create a", "create late"]
    del scene.unreadable[CONFIG_MAPS]
    scene.run()
    assert scene.done[2] == "delete late"
    assert len(scene.done) == 2 + 1 + 1 + FORGED
    assert len(listed(scene)) == MOST_RESOURCES


def test_what_was_given_up_is_not_forgotten_for_what_is_not_created() -> None:
    scene = with_late_map()
    scene.compose(server("i", called="${n}", ForEach=[{"n": "${composite.spec.names}"}]))
    scene.value["spec"]["names"] = [f"i{each}" for each in range(MOST_RESOURCES)]
    scene.run()
    assert scene.condition("Synced")[0] == "TooManyObjects"
    told = listed(scene)
    assert (len(told), told[-1], ("a", 0) in told) == (MOST_RESOURCES, ("late", 1), True)
    scene.value["spec"]["names"] = []
    scene.unreadable.clear()
    scene.run()
    assert scene.done[2:] == ["delete late", "delete a"]
