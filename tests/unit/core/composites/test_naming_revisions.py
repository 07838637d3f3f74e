"""The status names another revision only together with conditions that are about that one."""

import copy
from typing import Any

import pytest

from tests.unit.core.composites.scenes import Killed, Scene
from tests.unit.core.templates.compositions import server

Json = Any


def said(status: Json) -> tuple[str, dict[str, tuple[str, str]]]:
    """The revision that a status names, and the conditions."""
    return status["crdkeeper"]["revision"], {
        each["type"]: (each["status"], each["reason"]) for each in status["conditions"]
    }


def update(scene: Scene, *resources: Json) -> None:
    """Run by a second revision."""
    scene.compose(*resources)
    scene.revision = "r2"
    scene.told.clear()


NOT_YET = {
    "Synced": ("False", "ReconcilePending"),
    "Ready": ("False", "NotSynced"),
    "Reconciling": ("True", "NotSynced"),
}
DONE = {"Synced": ("True", "ReconcileSuccess"), "Ready": ("True", "Available")}


def test_what_is_ready_is_not_while_a_revision_with_more_objects_is_applied() -> None:
    scene = Scene(server("a"))
    scene.run()
    update(scene, server("a", text="new"), server("b"))
    scene.run()
    assert [said(each) for each in scene.told] == [("r2", NOT_YET), ("r2", DONE)]


def test_a_revision_with_the_same_objects_is_named_once_they_are_as_it_says() -> None:
    scene = Scene(server("a"))
    scene.run()
    update(scene, server("a", text="new"))
    scene.run()
    assert [said(each) for each in scene.told] == [("r2", DONE)]


@pytest.mark.parametrize("more", [[], [server("b")]], ids=["same", "more"])
def test_a_kill_before_the_first_apply_leaves_no_ready_of_the_revision_before(more: list[Json]) -> None:
    scene = Scene(server("a"))
    scene.run()
    update(scene, server("a", text="new"), *more)
    scene.left = 0
    with pytest.raises(Killed):
        scene.run()
    revision, conditions = said(scene.value["status"])
    assert (revision, conditions) == (("r2", NOT_YET) if more else ("r1", DONE))


def test_later_waves_change_neither_revision_nor_conditions() -> None:
    scene = Scene(server("a"))
    scene.run()
    update(scene, server("b"), server("c", text="${b.metadata.name}"))
    scene.run()
    assert [said(each) for each in scene.told][:-1] == [("r2", NOT_YET)] * (len(scene.told) - 1)
    assert said(scene.told[-1]) == ("r2", DONE)


def test_the_same_revision_lists_an_object_with_the_conditions_as_they_were() -> None:
    scene = Scene(server("a"))
    scene.run()
    before = copy.deepcopy(scene.value["status"]["conditions"])
    scene.told.clear()
    scene.compose(server("a"), server("b"))
    scene.run()
    assert scene.told[0]["conditions"] == before
    assert len(scene.told[0]["crdkeeper"]["resources"]) == 2


def test_a_new_composite_is_told_to_be_at_work_from_the_first_object_on() -> None:
    scene = Scene(server("a"))
    scene.run()
    assert [said(each) for each in scene.told] == [("r1", NOT_YET), ("r1", DONE)]
