"""When the status of a composite has to be written."""

from typing import Any

import pytest

from crdkeeper.core.composites.standing import changes
from tests.unit.core.composites.scenes import MANAGER, Scene
from tests.unit.core.templates.compositions import server

OTHERS = {"type": "Backed-up", "status": "True", "reason": "Done", "message": ""}


def written() -> tuple[Any, Any]:
    """The status of a composite, and the composite with it."""
    scene = Scene(server("a", ReadyWhen=["${a.status.ready == 1}"]))
    scene.run()
    status = scene.value["status"]
    assert len(status["conditions"]) == 3
    return status, {**scene.value, "status": {**status, "conditions": [*status["conditions"]]}}


@pytest.mark.parametrize("at", range(4))
def test_a_condition_of_others_changes_nothing(at: int) -> None:
    status, value = written()
    assert not changes(status, value, MANAGER)
    value["status"]["conditions"].insert(at, OTHERS)
    assert not changes(status, value, MANAGER)
    value["status"]["conditions"].reverse()
    assert not changes(status, value, MANAGER)


@pytest.mark.parametrize("at", range(3))
def test_each_condition_of_ours_has_to_be_as_it_is_meant(at: int) -> None:
    status, value = written()
    conditions = value["status"]["conditions"]
    conditions[at] = {**conditions[at], "message": "forged"}
    assert changes(status, value, MANAGER)
    del conditions[at]
    assert changes(status, value, MANAGER)


@pytest.mark.parametrize("conditions", [None, "forged", [None, {"type": ["Ready"]}, {}]])
def test_what_is_no_list_of_conditions_is_replaced(conditions: Any) -> None:
    status, value = written()
    value["status"]["conditions"] = conditions
    assert changes(status, value, MANAGER)


def test_a_condition_of_others_is_not_taken_over() -> None:
    scene = Scene(server("a"))
    scene.run()
    scene.value["status"]["conditions"].append(OTHERS)
    scene.told.clear()
    scene.compose(server("a"), server("b"))
    scene.run()
    first, *_ = scene.told
    assert [each["name"] for each in first["crdkeeper"]["resources"]] == ["a", "b"]
    assert [[of["type"] for of in each["conditions"]] for each in scene.told] == [["Synced", "Ready"]] * 2
