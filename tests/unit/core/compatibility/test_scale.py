"""A scale subresource refuses objects without regard to what they were before: which, is told."""

import copy
from typing import Any

import pytest

from crdkeeper.apiserver.objects.scalevalidation import MOST_REPLICAS, check_scale
from crdkeeper.core.compatibility.compare import compare
from tests.unit.core.compatibility.crds import STRING, Json, crd, obj, told, version

INTEGER: Json = {"type": "integer"}
BOUNDED: Json = {**INTEGER, "minimum": 0, "maximum": MOST_REPLICAS}
PATHS: Json = {"specReplicasPath": ".spec.x", "statusReplicasPath": ".status.replicas"}
SELECTING: Json = {"specReplicasPath": ".spec.n", "labelSelectorPath": ".spec.x"}
REFUSED: list[tuple[Json, Json, Any]] = [
    # The field, the paths, and a value that the field may have and /scale does not take.
    (INTEGER, PATHS, -1),
    ({**INTEGER, "minimum": 0}, PATHS, MOST_REPLICAS + 1),
    ({**INTEGER, "minimum": -1, "maximum": 9}, PATHS, -1),
    ({**INTEGER, "format": "int32"}, PATHS, -1),
    ({**BOUNDED, "nullable": True}, PATHS, None),
    ({"type": "number", "minimum": 0, "maximum": 9}, PATHS, 0.5),
    ({"x-kubernetes-int-or-string": True}, PATHS, "1"),
    (STRING, PATHS, "1"),
    ({**STRING, "nullable": True}, SELECTING, None),
    (INTEGER, SELECTING, 1),
    ({"x-kubernetes-preserve-unknown-fields": True}, SELECTING, {}),
]
TAKEN: list[tuple[Json, Json]] = [
    (BOUNDED, PATHS),
    ({**INTEGER, "minimum": 0, "format": "int32"}, PATHS),
    ({**INTEGER, "minimum": 1, "maximum": 9}, PATHS),
    (STRING, SELECTING),
]


def said(field: Json | None, paths: Json, before: Json | None = None) -> list[tuple[str, str, str]]:
    """What is reported if a version with this field gets a scale subresource."""
    fields = {"n": BOUNDED} if field is None else {"n": BOUNDED, "x": field}
    old = crd(version(schema=obj(spec=obj(**fields), status=obj(replicas=BOUNDED))))
    new = copy.deepcopy(old)
    for document, scale in ((old, before), (new, paths)):
        if scale is not None:
            document["spec"]["versions"][0]["subresources"] = {"scale": scale}
    return [each for each in told(compare(old, new)) if each[0] == "scale-values"]


@pytest.mark.parametrize(("field", "paths", "value"), REFUSED)
def test_values_that_are_refused(field: Json, paths: Json, value: Any) -> None:
    assert check_scale({"spec": {"x": value}}, paths)
    key = next(name for name, path in paths.items() if path == ".spec.x")
    assert said(field, paths) == [("scale-values", f"subresources.scale.{key}", "W?S?")]


@pytest.mark.parametrize(("field", "paths"), TAKEN)
def test_a_field_of_which_each_value_is_taken(field: Json, paths: Json) -> None:
    assert said(field, paths) == []


def test_only_paths_that_are_new_matter() -> None:
    assert said(INTEGER, PATHS, PATHS) == []
    selecting = {**PATHS, "labelSelectorPath": ".spec.x"}
    assert [each[1] for each in said(INTEGER, selecting, PATHS)] == ["subresources.scale.labelSelectorPath"]
    # What no schema declares is pruned, so that no object has it.
    assert said(None, PATHS) == []
