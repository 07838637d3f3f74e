"""Ratcheting tolerates what an update leaves unchanged; list types only if the old value violated them."""

from typing import Any

import pytest

from tests.unit.apiserver.objects.samples import INTEGER, TEXT, admitted, said

BAD = TEXT | {"maxLength": 1}
MAP_LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "b": BAD}},
}
TOO_LONG = "may not be more than 1 byte"


def item(name: Any, value: str) -> dict[str, Any]:
    return {"name": name, "b": value}


@pytest.mark.parametrize(
    ("schema", "old", "new", "fields"),
    [
        (BAD, "long", "long", []),
        (BAD, "long", "longer", ["spec.a"]),
        (BAD, None, "long", ["spec.a"]),
        ({"type": "object", "properties": {"b": BAD, "c": INTEGER}}, {"b": "long"}, {"b": "long", "c": 1},
            []),
        # Items are correlated by their keys, at any position.
        (MAP_LIST, [item("x", "long")], [item("y", "a"), item("x", "long")], []),
        (MAP_LIST, [item("x", "long")], [item("y", "long")], ["spec.a[0].b"]),
        # Items of other lists are not, but the list as a whole can be unchanged.
        ({"type": "array", "items": BAD}, ["long"], ["long"], []),
        ({"type": "array", "items": BAD}, ["long"], ["long", "x"], ["spec.a[0]"]),
        ({"type": "array", "x-kubernetes-list-type": "set", "items": BAD}, ["long"], ["x", "long"],
            ["spec.a[1]"]),
        # An integer differs from the float.
        (INTEGER | {"maximum": 1}, 5, 5.0, ["spec.a"]),
        # Below a junctor nothing is tolerated unless the whole is unchanged.
        (
            {"type": "object", "properties": {"b": TEXT, "c": INTEGER},
                "allOf": [{"properties": {"b": {"maxLength": 1}}}]},
            {"b": "long"},
            {"b": "long", "c": 1},
            ["spec.a.b", "<nil>"],
        ),
        # A field without a schema has no old value, so its parent always counts as changed.
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "maxProperties": 0},
            {"b": 1},
            {"b": 1},
            ["spec.a"],
        ),
    ],
)  # fmt: skip
def test_ratcheting(schema: dict[str, Any], old: Any, new: Any, fields: list[str]) -> None:
    outcome = admitted(schema, new, old=old)
    assert [str(each.path) for each in outcome.violations] == fields


SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}
ANY_SET = SET | {
    "items": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "number"}}
}
TWO_KEYS = MAP_LIST | {
    "x-kubernetes-list-map-keys": ["name", "b"],
    "items": {
        "type": "object",
        "required": ["name", "b"],
        "properties": {"name": {"type": "number"}, "b": TEXT},
    },
}


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (SET, [1, 2, 1, 1], ["spec.a[2]: Duplicate value: 1"]),
        (SET, [1, 1.0], []),
        # Inside objects and with several keys, values are compared as JSON.
        (ANY_SET, [{"b": 1}, {"b": 1.0}], ['spec.a[1]: Duplicate value: {"b":1}']),
        (TWO_KEYS, [item(1, "x"), item(1.0, "x")], ['spec.a[1]: Duplicate value: {"b":"x","name":1}']),
        (MAP_LIST, [item("x", "a"), item("x", "b")], ['spec.a[1]: Duplicate value: {"name":"x"}']),
    ],
)
def test_list_types(schema: dict[str, Any], value: Any, words: list[str]) -> None:
    assert said(admitted(schema, value)) == words


def test_an_old_duplicate_is_not_held_against_an_update() -> None:
    assert said(admitted(SET, [1, 1, 2], old=[1, 1])) == []
    assert said(admitted(SET, [1, 1], old=[1])) == ["spec.a[1]: Duplicate value: 1"]
