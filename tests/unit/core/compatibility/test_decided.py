"""Restrictions that refuse nothing: limits that move in and out of allOf, and fields of few values."""

from typing import Any

import pytest

from tests.unit.core.compatibility.crds import STRING, Json, of_field, short

INTEGER: Json = {"type": "integer"}
BOOLEAN: Json = {"type": "boolean"}


def text(**keywords: Any) -> Json:
    return {**STRING, **keywords}


def rules(*rules: Json) -> Json:
    return {"x-kubernetes-validations": list(rules)}


CASES: list[tuple[Json, Json, list[tuple[str, str, str]]]] = [
    # What in allOf is a limit is one of the value itself.
    (text(allOf=[{"pattern": "^a"}]), text(pattern="^a"), []),
    (text(allOf=[{"maxLength": 9}]), text(maxLength=9), []),
    (text(maxLength=9), text(allOf=[{"maxLength": 9}, {"maxLength": 12}]), []),
    (
        {**INTEGER, "allOf": [{"maximum": 10, "exclusiveMaximum": True}]},
        {**INTEGER, "maximum": 9},
        [],
    ),
    (
        {**INTEGER, "maximum": 5, "allOf": [{"maximum": 5, "exclusiveMaximum": True}]},
        {**INTEGER, "maximum": 5},
        [("limit-loosened", "", "")],
    ),
    ({**INTEGER, "minimum": 3}, {**INTEGER, "minimum": 2, "allOf": [{"minimum": 3}]}, []),
    # Few enough values to try them all.
    (
        text(enum=["a", "bb"]),
        text(enum=["a", "bb"], pattern="^[a-z]+$"),
        [("limit-satisfied", "", "")],
    ),
    (
        text(enum=["a", "bb"]),
        text(enum=["a", "bb"], pattern="^a"),
        [("pattern-tightened", "W!S!", "W?")],
    ),
    (
        text(enum=["2026-01-02"]),
        text(enum=["2026-01-02"], format="date"),
        [("limit-satisfied", "", "")],
    ),
    (
        text(enum=["a", "bb"]),
        {**text(enum=["a", "bb"]), **rules({"rule": "self != 'c'"})},
        [("limit-satisfied", "", "")],
    ),
    (
        {"type": "boolean"},
        {"type": "boolean", "x-kubernetes-validations": [{"rule": "self"}]},
        [("rule-added", "W!S!", "W?")],
    ),
    # What is refused depends on the value before, too.
    (
        BOOLEAN,
        {
            **BOOLEAN,
            **rules({"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": True}),
        },
        [("rule-added", "W!S!", "W?")],
    ),
    (
        {**BOOLEAN, **rules({"rule": "!oldSelf || self"})},
        {**BOOLEAN, **rules({"rule": "self == oldSelf"})},
        [("rule-changed", "W?S?", "W?")],
    ),
    (
        {**text(enum=["a", "bb"]), **rules({"rule": "self != 'c'"})},
        {**text(enum=["a", "bb"]), **rules({"rule": "oldSelf != 'a'"})},
        [("rule-changed", "W?S?", "W?")],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_change(old: Json, new: Json, expected: list[tuple[str, str, str]]) -> None:
    for at, column in (("spec", 1), ("status", 2)):
        found = [(each.kind.id, short(each.effects)) for each in of_field(old, new, at=at)]
        assert found == [(each[0], each[column]) for each in expected]
