"""What becomes of null once it is no longer allowed: as the engine admits it, so it is told."""

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from tests.unit.core.compatibility.crds import STRING, Json, obj, of_field, short

NULLABLE: Json = {**STRING, "nullable": True}
BOOLEAN: Json = {"type": "boolean"}
MAYBE: Json = {**BOOLEAN, "nullable": True}
SWITCH: Json = {**MAYBE, "enum": [True, False]}


def map_of(values: Json) -> Json:
    return {"type": "object", "additionalProperties": values}


def list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def requiring(field: Json) -> Json:
    return {**obj(a=field), "required": ["a"]}


def admitted(schema: Json, value: Json) -> Json | None:
    """The value as it is accepted; None if it is refused."""
    whole = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "x"},
        "spec": {"x": value},
    }
    answer = ObjectSchema.of(obj(spec=obj(x=schema))).admit(whole)
    return answer.object["spec"]["x"] if answer.accepted else None


def told(old: Json, new: Json) -> list[tuple[str, str]]:
    return [(each.kind.id, short(each.effects)) for each in of_field(old, new)]


DROPPED: list[tuple[Json, Json]] = [(obj(a=NULLABLE), obj(a=STRING)), (map_of(NULLABLE), map_of(STRING))]


@pytest.mark.parametrize(("old", "new"), DROPPED)
def test_null_is_dropped(old: Json, new: Json) -> None:
    assert (admitted(old, {"a": None}), admitted(new, {"a": None})) == ({"a": None}, {})
    assert told(old, new) == [("null-dropped", "W?R?S?")]


def test_an_object_without_a_required_field_is_refused() -> None:
    old, new = requiring(NULLABLE), requiring(STRING)
    assert (admitted(old, {"a": None}), admitted(new, {"a": None})) == ({"a": None}, None)
    assert told(old, new) == [("nullable-removed", "W!S!")]


def test_null_stays_in_a_list_and_is_refused() -> None:
    old, new = obj(a=list_of(NULLABLE)), obj(a=list_of(STRING))
    assert (admitted(old, {"a": [None]}), admitted(new, {"a": [None]})) == ({"a": [None]}, None)
    assert told(old, new) == [("nullable-removed", "W!S!")]


def test_an_enum_without_null_refuses_it() -> None:
    assert (admitted(obj(a=MAYBE), {"a": None}), admitted(obj(a=SWITCH), {"a": None})) == ({"a": None}, None)
    assert told(obj(a=MAYBE), obj(a=SWITCH)) == [("enum-tightened", "W!S!")]


NONE_REFUSED: list[tuple[Json, Json]] = [
    (MAYBE, {**SWITCH, "enum": [True, False, None]}),
    (BOOLEAN, SWITCH),
    (MAYBE, {**BOOLEAN, "enum": [True, False]}),
    (BOOLEAN, {**BOOLEAN, "enum": [True, False]}),
]


@pytest.mark.parametrize(("old", "new"), NONE_REFUSED)
def test_an_enum_of_all_values_refuses_none(old: Json, new: Json) -> None:
    assert not any(id.startswith("enum") for id, _ in told(obj(a=old), obj(a=new)))
