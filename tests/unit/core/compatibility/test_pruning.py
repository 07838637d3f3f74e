"""What a new schema drops from objects, as the engine prunes them, is reported as breaking."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from tests.unit.core.compatibility.crds import STRING, Json, obj, of_field, short

OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ANY_MAP: Json = {"type": "object", "additionalProperties": True}
INNER: Json = {"a": {"b": "x"}}


def map_of(values: Json) -> Json:
    return {"type": "object", "additionalProperties": values}


def list_of(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


def kept(schema: Json, value: Any) -> Any:
    whole = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "x"},
        "spec": {"x": value},
    }
    admitted = ObjectSchema.of(obj(spec=obj(x=schema))).admit(whole)
    assert admitted.object is not None, admitted.violations
    return admitted.object["spec"]["x"]


KEEPING = {"x-kubernetes-preserve-unknown-fields": True}
LOSSES: list[tuple[Json, Json, Any]] = [
    # A map of anything keeps its entries, and prunes what is in them.
    (OPEN, ANY_MAP, INNER),
    (OPEN, {**ANY_MAP, **KEEPING}, INNER),
    (map_of(obj(b=STRING)), ANY_MAP, INNER),
    (map_of(list_of(obj(b=STRING))), ANY_MAP, {"a": [{"b": "x"}]}),
    (map_of(KEEPING), ANY_MAP, INNER),
    (obj(a=obj(b=STRING)), ANY_MAP, INNER),
    (ANY_MAP, obj(), {"a": "x"}),
    # A list hands on to its items that unknown fields are kept.
    (list_of(obj(a=STRING), **KEEPING), list_of(obj(a=STRING)), [{"b": "x"}]),
    (list_of(list_of(obj(a=STRING)), **KEEPING), list_of(list_of(obj(a=STRING))), [[{"b": "x"}]]),
]
SAME: list[tuple[Json, Json, Any]] = [
    (map_of(STRING), ANY_MAP, {"a": "x"}),
    (map_of(list_of(STRING)), ANY_MAP, {"a": ["x"]}),
    (obj(a=STRING), ANY_MAP, {"a": "x"}),
    (ANY_MAP, OPEN, {"a": {}}),
    (obj(), ANY_MAP, {}),
    (list_of(obj(a=STRING)), list_of(obj(a=STRING), **KEEPING), [{"a": "x"}]),
    (list_of(obj(a=STRING), **KEEPING), list_of({**obj(a=STRING), **KEEPING}), [{"b": "x"}]),
]


@pytest.mark.parametrize(("old", "new", "value"), LOSSES)
def test_what_is_dropped_is_told(old: Json, new: Json, value: Any) -> None:
    assert (kept(old, value), kept(new, value) == value) == (value, False)
    effects = [short(each.effects) for each in of_field(old, new) if each.kind.id == "unknown-fields-pruned"]
    assert effects == ["W!R!S!"]


@pytest.mark.parametrize(("old", "new", "value"), SAME)
def test_nothing_is_told_where_nothing_is_dropped(old: Json, new: Json, value: Any) -> None:
    assert kept(old, value) == kept(new, value) == value
    assert all(each.severity != "breaking" for each in of_field(old, new))
