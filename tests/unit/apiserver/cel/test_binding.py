"""Data seen by expressions through a schema."""

from typing import Any

import pytest

from crdkeeper.apiserver.cel.values.values import Indeterminate
from tests.unit.apiserver.cel.running import outcome

TEXT = {"type": "string"}
SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
ITEM = {"type": "object", "properties": {"k": TEXT, "v": {"type": "integer"}}}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": ITEM,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "a-b": TEXT,
        "namespace": TEXT,
        "x__y": TEXT,
        "nothing": {"type": "string", "nullable": True},
        "broken": {"type": "integer"},
        "number": {"type": "number"},
        "ios": {"x-kubernetes-int-or-string": True},
        "set": SET,
        "keyed": KEYED,
        "map": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
        "day": {"type": "string", "format": "date"},
        "data": {"type": "string", "format": "byte"},
        "days": {"type": "string", "format": "duration"},
        "whole": {"type": "array", "items": {"type": "integer"}},
        "numbers": {"type": "array", "items": {"type": "number"}},
        "resource": {"type": "object", "x-kubernetes-embedded-resource": True},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": TEXT}},
    },
}
DATA: Any = {
    "a-b": "dash",
    "namespace": "ns",
    "x__y": "under",
    "nothing": None,
    "broken": 1.0,
    "number": 2,
    "ios": 5,
    "set": ["a", "b"],
    "keyed": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "map": {"x": 1, "y": None},
    "day": "2024-02-29",
    "data": "aGk=",
    "days": "2 days",
    "whole": [1, 2.0],
    "numbers": [],
    "resource": {"kind": "Pod", "metadata": {"name": "p"}},
    "open": {"a": "x", "other": [1]},
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("self.a__dash__b + self.namespace + self.__namespace__ + self.x__underscores__y", "dashnsnsunder"),
        ("has(self.nothing) || has(self.absent)", False),
        ("self.nothing", "!no such key: nothing"),
        ("self.map.y == null && has(self.map.y)", True),
        ("self.map.z", "!no such key: z"),
        ("self.broken", "!invalid data, expected int, got float64"),
        ("self.whole.all(x, x > 5)", False),
        ("self.whole.all(x, x < 5)", "!invalid data, expected int, got float64"),
        ("type(self.number) == double && type(self.ios) == int", True),
        ("self.ios.size()", "!no such overload: size"),
        ("self.set == ['b', 'a'] && self.set + ['c', 'a'] == ['c', 'b', 'a']", True),
        ("['b', 'a'] == self.set", False),
        ("self.set == 1 || true", True),
        ("dyn(self.set) == dyn(1)", "!no such overload"),
        ("dyn(1) == dyn(self.set)", False),
        ("self.keyed == [self.keyed[1], self.keyed[0]]", True),
        ("(self.keyed + [self.keyed[0]]).size()", 2),
        ("self.day.getDate() == 29 && self.data == b'hi' && self.days.getHours() == 48", True),
        ("type(self.numbers.sum()) == double", True),
        ("self.resource.metadata.name + self.resource.kind", "pPod"),
        ("has(self.open.a) && !has(self.open.other) && self.open == self.open", True),
        ("self.map.transformList(k, v, k).size()", 2),
    ],
)
def test_expressions(expression: str, expected: object) -> None:
    assert outcome(expression, DATA, SCHEMA) == expected


@pytest.mark.parametrize("data", [None, "text", 1, []])
def test_data_of_the_wrong_type_are_an_error_when_they_are_looked_at(data: Any) -> None:
    assert str(outcome("self.namespace == ''", data, SCHEMA)).startswith("!invalid data, ")
    assert outcome("1 == 1", data, SCHEMA) is True


@pytest.mark.parametrize(
    "expression",
    [
        "self.open.all(k, type(k) == string)",
        "self.open.transformList(k, v, k).size() == 1",
        "{'x': 1}.transformMapEntry(k, v, self.open).size() == 1",
    ],
)
def test_a_loop_over_fields_that_cel_does_not_see_is_left_to_the_server(expression: str) -> None:
    with pytest.raises(Indeterminate, match="does not see"):
        outcome(expression, DATA, SCHEMA)


@pytest.mark.parametrize(
    ("zone", "known"),
    [
        ("Z", True),
        ("+13:00", True),
        ("-12:00", True),
        ("+00:00", False),
        ("+15:00", False),
        ("+05:30", False),
    ],
)
def test_times_are_elements_of_a_set_by_their_time_zone(zone: str, known: bool) -> None:
    schema = {**SET, "items": {"type": "string", "format": "date-time"}}
    data = [f"2024-01-01T01:02:03{zone}"]
    if known:
        assert outcome("(self + self).size()", data, schema) == 1
    else:
        with pytest.raises(Indeterminate, match="time zones"):
            outcome("(self + self).size()", data, schema)
