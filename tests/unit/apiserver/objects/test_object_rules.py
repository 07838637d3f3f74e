"""Rules of x-kubernetes-validations on objects; the messages come from the real API server."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.objectrules import RuleWalk
from tests.unit.apiserver.objects.samples import (
    EMBEDDED,
    INTEGER,
    PRESERVE,
    TEXT,
    admitted,
    decoded,
    resource,
    said,
    thing,
)


def ruled(schema: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    return schema | {"x-kubernetes-validations": list(rules)}


def rule(text: str, **fields: Any) -> dict[str, Any]:
    return {"rule": text, **fields}


OBJECT = {"type": "object", "properties": {"b": TEXT, "c": INTEGER}}

ON_CREATION: list[tuple[dict[str, Any], Any, list[str]]] = [
    (ruled(INTEGER, rule("self > 1")), 2, []),
    (ruled(INTEGER, rule("self > 1")), 1, ["spec.a: Invalid value: 1: failed rule: self > 1"]),
    (ruled(TEXT, rule("false", message=" no ")), "x", ['spec.a: Invalid value: "x": no']),
    # Objects and arrays are not shown.
    (ruled(OBJECT, rule("has(self.b)", message="no b")), {}, ["spec.a: Invalid value: no b"]),
    (ruled(OBJECT, rule("false", reason="FieldValueForbidden")), {},
        ["spec.a: Forbidden: failed rule: false"]),
    (ruled(OBJECT, rule("false", reason="FieldValueRequired", message="m")), {},
        ["spec.a: Required value: m"]),
    (ruled(OBJECT, rule("false", reason="FieldValueDuplicate")), {}, ["spec.a: Duplicate value"]),
    (ruled(OBJECT, rule("false", fieldPath=".b")), {}, ["spec.a.b: Invalid value: failed rule: false"]),
    (ruled(INTEGER, rule("false", messageExpression="'got ' + string(self)")), 5,
        ["spec.a: Invalid value: 5: got 5"]),
    # A message that is empty, has line breaks or fails is not used.
    (ruled(INTEGER, rule("false", message="m", messageExpression="' '")), 5, ["spec.a: Invalid value: 5: m"]),
    (ruled(INTEGER, rule("false", message="m", messageExpression="'a\\nb'")), 5,
        ["spec.a: Invalid value: 5: m"]),
    (ruled(INTEGER, rule("false", message="m", messageExpression="string(1 / 0)")), 5,
        ["spec.a: Invalid value: 5: m"]),
    (
        ruled(INTEGER, rule("1 / self > 0")),
        0,
        ['spec.a: Invalid value: "integer": division by zero evaluating rule: 1 / self > 0'],
    ),
    (
        ruled({"x-kubernetes-int-or-string": True}, rule("self > 0")),
        "x",
        [
            "spec.a: Invalid value: \"\": 'no such overload': call arguments did not match a supported "
            "operator, function or macro signature for rule: self > 0"
        ],
    ),
    # A null has no rules; a transition rule does not apply without an old value.
    (ruled(TEXT | {"nullable": True}, rule("false")), None, []),
    (ruled(TEXT, rule("self == oldSelf")), "x", []),
    (ruled(TEXT, rule("oldSelf.hasValue()", optionalOldSelf=True)), "x",
     ['spec.a: Invalid value: "x": failed rule: oldSelf.hasValue()']),
    (ruled({"type": "array", "items": ruled(INTEGER, rule("self > 1"))}), [2, 1],
     ["spec.a[1]: Invalid value: 1: failed rule: self > 1"]),
    ({"type": "object", "additionalProperties": ruled(INTEGER, rule("self > 1"))}, {"k": 1},
     ["spec.a[k]: Invalid value: 1: failed rule: self > 1"]),
    (ruled(EMBEDDED, rule("self.kind == 'Pod' && self.metadata.name == 'x'", message="m")),
     {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "y"}}, ["spec.a: Invalid value: m"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "words"), ON_CREATION)
def test_on_creation(schema: dict[str, Any], value: Any, words: list[str]) -> None:
    assert said(admitted(schema, value)) == words


MAP_LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": ruled(
        {"type": "object", "required": ["name"], "properties": {"name": TEXT, "c": INTEGER}},
        rule("self.c >= oldSelf.c", message="shrinks"),
    ),
}
KEPT = ruled(TEXT, rule("self == oldSelf", message="immutable"))
POSITIVE = ruled(INTEGER, rule("self > 0", message="positive"))
CHANGED = rule("self > 1", messageExpression="'was ' + string(oldSelf)")
ON_UPDATE: list[tuple[dict[str, Any], Any, Any, list[str]]] = [
    (KEPT, "x", "x", []),
    (KEPT, "x", "y", ['spec.a: Invalid value: "y": immutable']),
    (KEPT, ..., "y", []),
    # Ratcheting tolerates what the update leaves unchanged, but not in transition rules.
    (POSITIVE, -1, -1, []),
    (POSITIVE, -1, -2, ["spec.a: Invalid value: -2: positive"]),
    (ruled(INTEGER, rule("self > oldSelf", message="grows")), 1, 1, ["spec.a: Invalid value: 1: grows"]),
    # Evaluation errors are never tolerated.
    (ruled(INTEGER, rule("1 / self > 0")), 0, 0,
     ['spec.a: Invalid value: "integer": division by zero evaluating rule: 1 / self > 0']),
    ({"type": "object", "additionalProperties": POSITIVE}, {"k": -1}, {"k": -1, "l": -1},
     ["spec.a[l]: Invalid value: -1: positive"]),
    # Items of map lists are correlated by their keys; those of other lists are not.
    (MAP_LIST, [{"name": "x", "c": 2}], [{"name": "y", "c": 0}, {"name": "x", "c": 1}],
     ["spec.a[1]: Invalid value: shrinks"]),
    ({"type": "array", "items": POSITIVE}, [-1], [-1], []),
    ({"type": "array", "items": POSITIVE}, [-1], [-1, 1], ["spec.a[0]: Invalid value: -1: positive"]),
    (ruled(INTEGER, rule("oldSelf.orValue(0) < self", optionalOldSelf=True, message="grows")), 1, 1,
     ["spec.a: Invalid value: 1: grows"]),
    # The expression of a message sees the old value only beside a rule that does.
    (ruled(INTEGER, CHANGED), 3, 1, ["spec.a: Invalid value: 1: failed rule: self > 1"]),
    (ruled(INTEGER, CHANGED, rule("self <= oldSelf")), 3, 1, ["spec.a: Invalid value: 1: was 3"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "old", "new", "words"), ON_UPDATE)
def test_on_update(schema: dict[str, Any], old: Any, new: Any, words: list[str]) -> None:
    before = thing() if old is ... else thing(a=old)
    assert said(resource(a=schema).admit(thing(a=new), before)) == words


def test_a_message_that_sees_the_old_value_if_a_rule_that_is_left_does_is_left_too() -> None:
    large = "optional.of(oldSelf)" + ".optMap(a, a)" * 100 + ".hasValue()"
    schema = ruled(INTEGER, rule(large), CHANGED)
    changed = admitted(schema, 1, old=3)
    assert changed.violations == []
    assert [each.reason.rpartition(": ")[::2] for each in changed.unchecked] == [
        (large, "the expression expands to too much to be checked here"),
        ("the message of self > 1", "whether another rule, which is left to the API server, reads oldSelf"),
    ]
    created = admitted(schema, 1)
    assert [each.message for each in created.violations] == ["Invalid value: 1: failed rule: self > 1"]


def test_rules_that_expand_to_too_much_in_all_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crdkeeper.apiserver.cel.compilation._MOST_EXPANDED", 2_500)
    # Each link doubles the nodes: there are 885 after six.
    doubled = rule("optional.of(self)" + ".optMap(a, a)" * 6 + ".hasValue()")
    fields = {f"f{i}": ruled(TEXT, doubled) for i in range(10)}
    schema = {"type": "object", "properties": {**fields, "z": ruled(INTEGER, rule("self > 1"))}}
    found = admitted(schema, {**dict.fromkeys(fields, "x"), "z": 1})
    assert 0 < len(found.unchecked) < 10
    why = "the rules of the schema expand to too much to be checked here"
    assert {each.reason for each in found.unchecked} == {f"{doubled['rule']}: {why}"}
    assert [each.message for each in found.violations] == ["Invalid value: 1: failed rule: self > 1"]


def test_rules_wait_until_the_object_has_the_right_types() -> None:
    schema = {"type": "object", "properties": {"b": TEXT, "c": ruled(INTEGER, rule("false"))}}
    assert said(admitted(schema, {"b": 1, "c": 1})) == [
        'spec.a.b: Invalid value: "integer": spec.a.b in body must be of type string: "integer"',
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
    ]


def test_a_bad_value_of_the_right_type_keeps_no_rule_back() -> None:
    schema = ruled(INTEGER | {"minimum": 5}, rule("self > 1"))
    assert len(said(admitted(schema, 1))) == 2


def test_a_bomb_is_stopped_as_the_server_stops_it() -> None:
    text = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d != 'x'))))"
    schema = ruled({"type": "array", "items": TEXT}, rule(text))
    (found,) = said(admitted(schema, [str(i) for i in range(200)]))
    assert found.endswith(
        f"no further validation rules will be run due to call cost exceeds limit for rule: {text}"
    )


MIXED = "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'].size() == 2\n | ....^"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1, 'a'].size() == 2", f"compilation failed: {MIXED}"),
        ("self + 1", "cel expression must evaluate to a bool"),
        ("string(int('x')) == ''", "program instantiation failed: type conversion error from 'string' "
         "to 'int'"),
        # Not even a transition without an old value is let off.
        ("oldSelf.b == 1", "compilation failed: ERROR: <input>:1:8: type 'int' does not support field "
         "selection\n | oldSelf.b == 1\n | .......^"),
    ],
)  # fmt: skip
def test_a_rule_that_does_not_compile_is_refused_with_every_value(text: str, problem: str) -> None:
    schema = ruled(INTEGER, rule(text), rule("self > 0", message="m"))
    assert said(admitted(schema, 0)) == [
        f'spec.a: Invalid value: "integer": rule compile error: {problem}',
        "spec.a: Invalid value: 0: m",
    ]


def test_a_message_that_does_not_compile_is_not_used() -> None:
    schema = ruled(INTEGER, rule("false", message="m", messageExpression="[1, 'a'].size() == 2 ? 'b' : 'c'"))
    assert said(admitted(schema, 0)) == ["spec.a: Invalid value: 0: m"]


def test_a_part_of_an_object_has_no_metadata_of_its_own() -> None:
    # At the root of a resource, kind would be considered a required string.
    schema = ruled({"type": "object", "properties": {"kind": INTEGER}}, rule("self.kind == 1"))
    walk = RuleWalk(ObjectNode(decoded(schema)), root=False)
    assert walk.check({"kind": 1}, None, None) == ([], [])


def test_an_error_in_a_set_equals_nothing() -> None:
    items = {"x-kubernetes-int-or-string": True}
    schema = ruled(
        {"type": "array", "x-kubernetes-list-type": "set", "items": items}, rule("self == oldSelf")
    )
    assert said(admitted(schema, [1.5], old=[1.5])) == ["spec.a: Invalid value: failed rule: self == oldSelf"]
    assert said(admitted(schema, [1], old=[1])) == []


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"x": "y"}}}
LABELS = {"type": "object", "additionalProperties": TEXT}


def embedded(metadata: dict[str, Any]) -> dict[str, Any]:
    return EMBEDDED | {"properties": {"metadata": metadata}}


def test_rules_of_a_field_that_the_type_of_its_owner_lacks_are_passed_over() -> None:
    labels = ruled(LABELS, rule("'app' in self"))
    assert said(admitted(embedded({"type": "object", "properties": {"labels": labels}}), POD)) == []
    positive = ruled(INTEGER, rule("self > 0"))
    below = {"type": "object", "properties": {"n": positive}}
    assert said(admitted(below, {"n": -1})) != []
    assert said(admitted(PRESERVE | {"properties": {"n": positive}}, {"n": -1})) == []
    assert said(admitted({"type": "object", "properties": {"1n": positive}}, {"1n": -1})) != []


def test_rules_of_the_metadata_of_an_embedded_resource_know_only_names() -> None:
    metadata = {"type": "object", "properties": {"labels": LABELS}}
    (found,) = said(admitted(embedded(ruled(metadata, rule("has(self.labels)"))), POD))
    assert found.startswith('spec.a.metadata: Invalid value: "object": rule compile error: ')
    assert "undefined field 'labels'" in found
    assert said(admitted(embedded(ruled(metadata, rule("!has(self.name)"))), POD)) == []


def test_rules_of_a_value_without_a_type_are_an_error() -> None:
    walk = RuleWalk(ObjectNode(decoded(ruled(PRESERVE, rule("true")))), root=False)
    (found,), left = walk.check({"n": 1}, None, None)
    assert left == []
    assert found.message == (
        'Invalid value: "": rule compiler initialization error: failed to convert to declType for CEL '
        "validation rules"
    )
    assert walk.check(None, None, None) == ([], [])
