"""Rules that no existing object can violate, and rules that some can; and equivalent rules."""

from collections.abc import Container
from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.core.compatibility.findings import MAX_STEPS, Allowance, Changes
from crdkeeper.core.compatibility.rulemeaning import ValidValues
from crdkeeper.core.compatibility.ruleparsing import ParsedRules
from tests.unit.core.compatibility.crds import STRING, Json, obj

INTEGER: Json = {"type": "integer"}
MODE: Json = {"type": "string", "enum": ["A", "B"]}
ITEMS: Json = {"type": "array", "items": obj(a=STRING)}
OLD: Json = {
    **obj(
        a=STRING,
        mode=MODE,
        size={**INTEGER, "minimum": 1, "maximum": 9},
        name={**STRING, "minLength": 2, "maxLength": 5},
        maybe={**STRING, "nullable": True},
        free={**MODE},
        tls=obj(a=STRING),
        nulls={"type": "array", "items": {**STRING, "nullable": True, "maxLength": 9}},
        inner={**obj(a=STRING), "required": ["a"]},
        list={"type": "array", "items": {**obj(a=MODE), "required": ["a"]}},
    ),
    "required": ["mode", "size", "name", "inner", "list", "nulls"],
}
"""What is required here is there in every object of today."""
NEW: Json = {
    **OLD,
    "properties": {
        **OLD["properties"],
        "new": STRING,
        "given": {**INTEGER, "default": 3},
        "inner": {**obj(a=STRING, new=STRING), "required": ["a"]},
        "tls": obj(a=STRING, new=STRING),
        "free": {**MODE, "enum": ["A", "B", "C"], "default": "C"},
        "list": {"type": "array", "items": {**obj(a=MODE, new=STRING), "required": ["a"]}},
    },
}
OBJECTS: list[Json] = [
    {"mode": "A", "size": 1, "name": "ab", "inner": {"a": ""}, "list": [], "nulls": [None]},
    {
        "a": "",
        "mode": "B",
        "size": 9,
        "name": "abcde",
        "maybe": None,
        "free": "A",
        "inner": {"a": "x"},
        "list": [{"a": "A"}, {"a": "B"}],
        "nulls": ["x"],
        "tls": {"a": "x"},
    },
]
HOLD = [
    # fields that are new
    "!has(self.new) || self.new != ''",
    "has(self.new) ? self.new != '' : true",
    "!(has(self.new) && has(self.a))",
    "!has(self.new) || has(self.a)",
    "!has(self.inner.new) || self.inner.new == self.a",
    "!has(self.tls) || !has(self.tls.new) || self.tls.new != ''",
    "self.?new.orValue('x') == 'x'",
    "!self.?new.hasValue()",
    "self.list.all(each, !has(each.new) || each.new != '')",
    "has(self.given)",
    # said already
    "has(self.mode) && has(self.inner.a)",
    "self.mode in ['A', 'B', 'C']",
    "!has(self.size) || self.size >= 1 && self.size < 10",
    "size(self.name) > 1 && self.name.size() <= 5",
    "self.list.all(each, each.a in ['A', 'B'])",
    "true",
    "1 < 2 || self.a == ''",
]
MAY_FAIL = [
    "self.new != ''",
    "has(self.new)",
    "has(self.a)",
    "!has(self.a)",
    "has(self.a) || has(self.new)",
    "has(self.maybe)",
    "!has(self.maybe) || self.maybe in ['A']",
    "self.free in ['A', 'B']",
    "!has(self.free) || self.free in ['A', 'B']",
    "self.mode in ['A']",
    "self.size > 1",
    "self.a.size() >= 0",
    "size(self.name) < 5",
    "has(self.inner.new)",
    "self.list.exists(each, each.a == 'A')",
    "self.list.all(each, has(each.new))",
    "has(self.unknown.new) || true && has(self.new)",
    "(self.a == 'x' ? has(self.mode) : has(self.size)) || false",
    "self.given > 5",
    "not CEL",
]


FAIL = [
    # The first object lacks the field around, or has null there.
    "!has(self.tls.new) || self.tls.new != ''",
    "self.tls.?new.orValue('x') == 'x'",
    "self.nulls.all(each, size(each) < 10)",
]


def parsed() -> ParsedRules:
    return ParsedRules(Changes(Allowance(MAX_STEPS)))


def always_holds(rule: str, old: Json, new: Json, elsewhere: Container[str]) -> bool:
    return ValidValues(old, new, elsewhere, parsed()).all_satisfy(rule)


def schema(rule: str) -> ObjectSchema:
    return ObjectSchema.of(obj(spec={**NEW, "x-kubernetes-validations": [{"rule": rule}]}))


def widget(spec: Json) -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize("rule", HOLD)
def test_a_rule_that_no_object_of_today_can_break(rule: str) -> None:
    assert always_holds(rule, OLD, NEW, ())
    for each in OBJECTS:
        assert schema(rule).admit(widget(each)).violations == [], each


@pytest.mark.parametrize("rule", MAY_FAIL)
def test_a_rule_that_may_fail(rule: str) -> None:
    assert not always_holds(rule, OLD, NEW, ())


@pytest.mark.parametrize("rule", FAIL)
def test_a_rule_that_fails_for_an_object_of_today(rule: str) -> None:
    assert not always_holds(rule, OLD, NEW, ())
    assert schema(rule).admit(widget(OBJECTS[0])).violations


def test_a_field_that_objects_may_have_all_the_same() -> None:
    rule = "!has(self.new) || self.new != ''"
    kept = {"x-kubernetes-preserve-unknown-fields": True}
    assert not always_holds(rule, {**OLD, **kept}, {**NEW, **kept}, ())
    before, after = (
        {**each, "properties": {"list": {**each["properties"]["list"], **kept}}} for each in (OLD, NEW)
    )
    of_items = "self.list.all(each, !has(each.new) || each.new != '')"
    assert not always_holds(of_items, before, after, ())
    assert not always_holds(rule, OLD, NEW, {"new"})
    dashed = {**NEW, "properties": {**NEW["properties"], "new-one": STRING}}
    rule = "!has(self.new__dash__one) || self.new__dash__one != ''"
    assert always_holds(rule, OLD, dashed, ())
    assert not always_holds(rule, OLD, dashed, {"new-one"})


def test_a_default_that_holds_new_fields() -> None:
    new: Any = {
        **NEW,
        "properties": {**NEW["properties"], "inner": {**obj(new=STRING), "default": {"new": ""}}},
    }
    old: Any = {**OLD, "properties": {**OLD["properties"], "inner": obj()}, "required": []}
    assert not always_holds("!has(self.inner.new) || self.inner.new != ''", old, new, ())


@pytest.mark.parametrize(
    "rule", ["((((((((((((((((((((((self.a" * 50, "a" * 20_000, "has(self.a) || " * 600 + "true"]
)
def test_work_is_bounded(rule: str) -> None:
    assert always_holds(rule, OLD, NEW, ()) in (True, False)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("self.a == 'x'", 'self.a=="x"', True),
        ("(self.a == 'x')", "self.a == r'x'", True),
        ("self.a == 'x' // why", "self.a == 'x'", True),
        ("self.l.all(x, x > 1)", "self.l.all( x , (x > 1) )", True),
        ("self.a == 1", "self.a == 1u", False),
        ("self.a == 1", "self.a == 1.0", False),
        ("self.a == 1", "1 == self.a", False),
        ("self.l.all(x, x > 1)", "self.l.exists(x, x > 1)", False),
        ("has(self.a)", "self.a", False),
    ],
)
def test_what_says_the_same(one: str, other: str, same: bool) -> None:
    rules = parsed()
    assert (rules.meaning(one) == rules.meaning(other)) is same
