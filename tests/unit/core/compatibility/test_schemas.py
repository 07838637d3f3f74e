"""Each kind of change in a schema, in both directions, in spec and in status: whom it affects, and how.

W are writers, R readers, S stored objects; `!` is breaking and `?` risky.
"""

from typing import Any

import pytest

from crdkeeper.core.compatibility import schemakinds
from crdkeeper.core.compatibility.change import ChangeKind
from crdkeeper.core.compatibility.compare import compare
from tests.unit.core.compatibility.crds import STRING, Json, crd, obj, of_field, short, told, version

INTEGER: Json = {"type": "integer"}
EITHER: Json = {"x-kubernetes-int-or-string": True}
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ANYTHING: Json = {"x-kubernetes-preserve-unknown-fields": True}
MAP: Json = {"type": "object", "additionalProperties": STRING}
PAIR: Json = obj(name=STRING, zone=STRING)
LIST: Json = {"type": "array", "items": STRING}
ENTRIES: Json = {"type": "array", "items": {**PAIR, "required": ["name", "zone"]}}
WIDENED = "type-widened", "R?", "R!"
RULE: Json = {"rule": "self != ''", "message": "must not be empty"}


def keyed(*keys: str) -> Json:
    return {**ENTRIES, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def text(**keywords: Any) -> Json:
    return {**STRING, **{name.replace("_", "-"): value for name, value in keywords.items()}}


def rules(*found: Json) -> Json:
    return text(**{"x-kubernetes-validations": list(found)})


# The old schema, the new one, and for each change: its kind, whom it affects in spec, and whom in status.
CASES: list[tuple[Json, Json, list[tuple[str, str, str]]]] = [
    # which fields there are
    (obj(a=STRING), obj(), [("field-removed", "W!R!S!", "W?R!")]),
    (obj(), obj(a=STRING), [("field-added", "", "")]),
    (obj(), obj(a=text(default="x")), [("field-added-with-default", "", "")]),
    (obj(), {**obj(a=STRING), "required": ["a"]}, [("field-added-required", "W!S!", "W?")]),
    (
        obj(),
        {**obj(a=text(default="x")), "required": ["a"]},
        [("field-added-with-default", "", "")],
    ),
    (OPEN, {**OPEN, "properties": {"a": STRING}}, [("field-described", "W?S?", "W?")]),
    ({**OPEN, "properties": {"a": STRING}}, OPEN, [("field-undescribed", "R?S?", "R?S?")]),
    (obj(a=STRING), {**obj(a=STRING), "required": ["a"]}, [("required-added", "W!S!", "W?")]),
    ({**obj(a=STRING), "required": ["a"]}, obj(a=STRING), [("required-removed", "R?", "R?")]),
    (
        obj(a=text(default="x")),
        {**obj(a=text(default="x")), "required": ["a"]},
        [("required-with-default", "", "")],
    ),
    (
        {**obj(a=text(default="x")), "required": ["a"]},
        obj(a=text(default="x")),
        [("required-with-default", "", "")],
    ),
    ({**obj(a=STRING), "required": ["a"]}, obj(), [("field-removed", "W!R!S!", "W?R!")]),
    # what happens to the others
    (OPEN, obj(), [("unknown-fields-pruned", "W!R!S!", "W?R!")]),
    (obj(), OPEN, [("unknown-fields-kept", "", "")]),
    (MAP, obj(a=STRING), [("map-closed", "W!R!S!", "W?R!")]),
    (obj(a=STRING), MAP, [("map-opened", "W!R?S!", "W?R!")]),
    (obj(), MAP, [("unknown-fields-kept", "", "")]),
    (OPEN, MAP, [("map-values-tightened", "W!S!", "W?")]),
    (MAP, OPEN, [("map-values-loosened", "R?", "R!")]),
    (MAP, {**OPEN, "properties": {"a": INTEGER, "b": STRING}},
     [("map-values-loosened", "R?", "R!"), ("field-described", "W?S?", "W?")]),
    ({**OPEN, "properties": {"a": INTEGER, "b": STRING}}, MAP,
     [("map-values-tightened", "W!S!", "W?"), ("field-undescribed", "R?S?", "R?S?")]),
    (MAP, {**MAP, "additionalProperties": text(maxLength=3)}, [("limit-tightened", "W!S!", "W?")]),
    (
        OPEN,
        {**OPEN, "x-kubernetes-embedded-resource": True},
        [("embedded-resource-added", "W!S!", "W?")],
    ),
    (
        {**OPEN, "x-kubernetes-embedded-resource": True},
        OPEN,
        [("embedded-resource-removed", "W?R?S?", "W?R?S?")],
    ),
    # types
    (STRING, INTEGER, [("type-changed", "W!R!S!", "W?R!S?")]),
    (STRING, obj(a=STRING), [("type-changed", "W!R!S!", "W?R!S?")]),
    ({"type": "number"}, INTEGER, [("type-changed", "W!R!S!", "W?R!S?")]),
    (INTEGER, {"type": "number"}, [("type-widened", "R?", "R!")]),
    (INTEGER, EITHER, [("type-widened", "R?", "R!")]),
    (EITHER, STRING, [("type-changed", "W!R!S!", "W?R!S?")]),
    (STRING, ANYTHING, [WIDENED]),
    ({**OPEN, "properties": {"a": obj(b=STRING)}}, {**ANYTHING, "properties": {"a": obj()}},
     [WIDENED, ("field-removed", "W!R!S!", "W?R!")]),
    ({**INTEGER, "default": 3}, ANYTHING, [WIDENED, ("default-removed", "W!R!S?", "R?")]),
    (STRING, {**ANYTHING, "enum": ["a"]}, [WIDENED, ("enum-tightened", "W!S!", "W?")]),
    (keyed("name"), ANYTHING,
     [WIDENED, ("list-replaced", "W!", "W?"), ("field-undescribed", "R?S?", "R?S?")]),
    (ANYTHING, {**ANYTHING, "items": STRING}, [("field-described", "W?S?", "W?")]),
    (STRING, text(nullable=True), [("nullable-added", "R?", "R?")]),
    (text(nullable=True), STRING, [("null-dropped", "W?R?S?", "W?R?S?")]),
    (text(nullable=True, default="x"), text(default="x"), [("null-defaulted", "W?R?S?", "W?R?S?")]),
    (
        {**LIST, "items": text(nullable=True, default="x")},
        {**LIST, "items": text(default="x")},
        [("nullable-removed", "W!S!", "W?")],
    ),
    # values
    (text(enum=["a", "b"]), text(enum=["a"]), [("enum-tightened", "W!S!", "W?")]),
    (text(enum=["a"]), text(enum=["a", "b"]), [("enum-loosened", "R?", "R?")]),
    (
        text(enum=["a"]),
        text(enum=["b"]),
        [("enum-tightened", "W!S!", "W?"), ("enum-loosened", "R?", "R?")],
    ),
    ({"type": "boolean"}, {"type": "boolean", "enum": [True, False]}, []),
    (STRING, text(enum=["a"]), [("enum-tightened", "W!S!", "W?")]),
    (text(enum=["a"]), STRING, [("enum-loosened", "R?", "R?")]),
    (text(maxLength=4), text(maxLength=3), [("limit-tightened", "W!S!", "W?")]),
    (text(maxLength=3), text(maxLength=4), [("limit-loosened", "", "")]),
    (text(maxLength=3), STRING, [("limit-loosened", "", "")]),
    (STRING, text(minLength=1), [("limit-tightened", "W!S!", "W?")]),
    (text(minLength=2), text(minLength=1), [("limit-loosened", "", "")]),
    (STRING, text(minLength=0), []),
    (LIST, {**LIST, "maxItems": 3}, [("limit-tightened", "W!S!", "W?")]),
    (MAP, {**MAP, "minProperties": 1}, [("limit-tightened", "W!S!", "W?")]),
    ({**INTEGER, "maximum": 9}, {**INTEGER, "maximum": 8}, [("limit-tightened", "W!S!", "W?")]),
    (
        {**INTEGER, "maximum": 9},
        {**INTEGER, "maximum": 9, "exclusiveMaximum": True},
        [("limit-tightened", "W!S!", "W?")],
    ),
    (
        {**INTEGER, "minimum": 9, "exclusiveMinimum": True},
        {**INTEGER, "minimum": 9},
        [("limit-loosened", "", "")],
    ),
    ({**INTEGER, "maximum": 10, "exclusiveMaximum": True}, {**INTEGER, "maximum": 9}, []),
    ({**INTEGER, "minimum": 0.5}, {**INTEGER, "minimum": 1}, []),
    ({**INTEGER, "maximum": 9}, {**INTEGER, "maximum": 9.5, "exclusiveMaximum": True}, []),
    (
        {"type": "number", "maximum": 10, "exclusiveMaximum": True},
        {"type": "number", "maximum": 9},
        [("limit-tightened", "W!S!", "W?")],
    ),
    (text(enum=["a", "bc"]), text(enum=["a", "bc"], maxLength=2), [("limit-satisfied", "", "")]),
    (text(enum=["a", "bc"]), text(enum=["a", "bc"], minLength=2), [("limit-tightened", "W!S!", "W?")]),
    ({**INTEGER, "enum": [1, 5]}, {**INTEGER, "enum": [1, 5], "maximum": 5}, [("limit-satisfied", "", "")]),
    (
        {**INTEGER, "enum": [1, 5]},
        {**INTEGER, "enum": [1, 5], "maximum": 4},
        [("limit-tightened", "W!S!", "W?")],
    ),
    (text(allOf=[{"minLength": 1}]), text(minLength=1), []),
    (text(allOf=[{"minLength": 1}]), text(allOf=[{"minLength": 5}]), [("limit-tightened", "W!S!", "W?")]),
    (text(allOf=[{"minLength": 1}, {"minLength": 5}]), text(minLength=5), []),
    (STRING, text(pattern=".*"), [("pattern-loosened", "", "")]),
    (text(pattern=".*"), text(pattern="^a"), [("pattern-tightened", "W!S!", "W?")]),
    ({**INTEGER, "minimum": -1}, {**INTEGER, "minimum": 0}, [("limit-tightened", "W!S!", "W?")]),
    ({**INTEGER, "multipleOf": 6}, {**INTEGER, "multipleOf": 3}, [("limit-loosened", "", "")]),
    ({**INTEGER, "multipleOf": 6}, {**INTEGER, "multipleOf": 4}, [("limit-tightened", "W!S!", "W?")]),
    ({"type": "number", "multipleOf": 0.3}, {"type": "number", "multipleOf": 0.1},
     [("limit-tightened", "W!S!", "W?")]),
    (STRING, text(pattern="^a"), [("pattern-tightened", "W!S!", "W?")]),
    (text(pattern="^a"), text(pattern="^[ab]"), [("pattern-changed", "W?S?", "W?")]),
    (text(pattern="^a"), STRING, [("pattern-loosened", "", "")]),
    (STRING, text(format="date-time"), [("format-tightened", "W!S!", "W?")]),
    (text(format="date-time"), STRING, [("format-loosened", "R?", "R?")]),
    (text(format="date"), text(format="date-time"), [("format-changed", "W!S!", "W?R!")]),
    (STRING, text(format="nonsense"), [("documentation", "", "")]),
    ({**INTEGER, "format": "int64"}, {**INTEGER, "format": "int32"}, [("format-tightened", "W!S!", "W?")]),
    (INTEGER, {**INTEGER, "format": "int64"}, [("documentation", "", "")]),
    # defaults
    (STRING, text(default="x"), [("default-added", "W?S?", "R?")]),
    (text(default="x"), text(default="y"), [("default-changed", "W!S?", "R?")]),
    (text(default="x"), STRING, [("default-removed", "W!R!S?", "R?")]),
    # rules and junctors
    (STRING, rules(RULE), [("rule-added", "W!S!", "W?")]),
    (rules(RULE), STRING, [("rule-removed", "", "")]),
    (rules(RULE), rules({**RULE, "rule": "self != 'x'"}), [("rule-tightened", "W!S!", "W?")]),
    (rules({"rule": "self != 'a'"}), rules({"rule": "self != 'b'"}), [("rule-tightened", "W!S!", "W?")]),
    (
        rules({"rule": "self.size() < 3"}),
        rules({"rule": "self.size() < 5"}),
        [("rule-changed", "W?S?", "W?")],
    ),
    (rules(RULE), rules({**RULE, "message": "fill it in"}), [("rule-reworded", "", "")]),
    (STRING, rules({"rule": "self == oldSelf"}), [("transition-rule-added", "W!", "W?")]),
    (
        STRING,
        rules({"rule": "oldSelf.hasValue()", "optionalOldSelf": True}),
        [("rule-added", "W!S!", "W?")],
    ),
    (
        obj(),
        {**obj(a=STRING), "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a != ''"}]},
        [("rule-satisfied", "", ""), ("field-added", "", "")],
    ),
    (rules(RULE), rules({**RULE, "rule": '(self!="")'}), [("rule-reworded", "", "")]),
    (STRING, text(anyOf=[{"minLength": 1}]), [("junctor-tightened", "W!S!", "W?")]),
    (
        text(anyOf=[{"minLength": 1}]),
        text(anyOf=[{"pattern": "^a"}, {"minLength": 1}]),
        [("junctor-loosened", "", "")],
    ),
    (
        text(anyOf=[{"pattern": "^a"}, {"minLength": 1}]),
        text(anyOf=[{"minLength": 1}]),
        [("junctor-tightened", "W!S!", "W?")],
    ),
    (
        text(oneOf=[{"minLength": 1}]),
        text(oneOf=[{"minLength": 1}, {"pattern": "^a"}]),
        [("junctor-tightened", "W!S!", "W?")],
    ),
    (
        text(allOf=[{"minLength": 1}]),
        text(allOf=[{"minLength": 1}, {"enum": ["a"]}]),
        [("junctor-tightened", "W!S!", "W?")],
    ),
    (
        text(allOf=[{"minLength": 1}, {"enum": ["a"]}]),
        text(allOf=[{"minLength": 1}]),
        [("junctor-loosened", "", "")],
    ),
    (text(pattern="^[a-z]*$"), text(pattern="^[a-y]*$"), [("pattern-tightened", "W!S!", "W?")]),
    (text(allOf=[{"minLength": 1}]), text(allOf=[{"minLength": 2}]), [("limit-tightened", "W!S!", "W?")]),
    (STRING, {**STRING, "not": {"minLength": 9}}, [("junctor-tightened", "W!S!", "W?")]),
    ({**STRING, "not": {"minLength": 9}}, STRING, [("junctor-loosened", "", "")]),
    (
        {**STRING, "not": {"minLength": 9}},
        {**STRING, "not": {"minLength": 8}},
        [("junctor-tightened", "W!S!", "W?")],
    ),
    (
        {**STRING, "not": {"minLength": 8}},
        {**STRING, "not": {"minLength": 9}},
        [("junctor-changed", "W?S?", "W?")],
    ),
    (EITHER, {**EITHER, "anyOf": [INTEGER, STRING]}, []),
    ({**EITHER, "allOf": [{"anyOf": [INTEGER, STRING]}, {"minLength": 1}]},
     {**EITHER, "allOf": [{"minLength": 1}]}, []),
    # how appliers share
    (LIST, {**LIST, "x-kubernetes-list-type": "atomic"}, []),
    (LIST, {**LIST, "x-kubernetes-list-type": "set"}, [("list-merged", "W!S!", "W?")]),
    ({**LIST, "x-kubernetes-list-type": "set"}, LIST, [("list-replaced", "W!", "W?")]),
    (ENTRIES, keyed("name"), [("list-merged", "W!S!", "W?")]),
    (keyed("name"), keyed("zone", "name"), [("list-keys-changed", "W!S!", "W?S?")]),
    (keyed("zone", "name"), keyed("name", "zone"), []),
    (MAP, {**MAP, "x-kubernetes-map-type": "atomic"}, [("map-replaced", "W!", "W?")]),
    ({**MAP, "x-kubernetes-map-type": "atomic"}, MAP, [("map-merged", "W?", "")]),
    (STRING, text(description="new"), [("documentation", "", "")]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_change(old: Json, new: Json, expected: list[tuple[str, str, str]]) -> None:
    in_spec = sorted((each.kind.id, short(each.effects)) for each in of_field(old, new, at="spec"))
    in_status = sorted((each.kind.id, short(each.effects)) for each in of_field(old, new, at="status"))
    assert in_spec == sorted((id, spec) for id, spec, _ in expected)
    assert in_status == sorted((id, status) for id, _, status in expected)


def test_every_kind_has_a_case() -> None:
    kinds = {each.id for each in vars(schemakinds).values() if isinstance(each, ChangeKind)}
    # That one depends on the version, not on a field.
    assert kinds - {"schema-removed"} == {id for _, _, expected in CASES for id, _, _ in expected}


FIELDS = [
    (obj(a=obj(b=STRING)), obj(a=obj()), "spec.x.a.b"),
    ({"type": "array", "items": obj(b=STRING)}, {"type": "array", "items": obj()}, "spec.x[].b"),
    (
        {"type": "object", "additionalProperties": obj(b=STRING)},
        {"type": "object", "additionalProperties": obj()},
        "spec.x.*.b",
    ),
    (obj(**{"a.b/c": STRING}), obj(), 'spec.x["a.b/c"]'),
]


@pytest.mark.parametrize(("old", "new", "field"), FIELDS)
def test_names_of_fields(old: Json, new: Json, field: str) -> None:
    (change,) = of_field(old, new)
    assert change.place.field == field


def test_status_itself_is_below_status() -> None:
    old, new = (crd(version(schema=each)) for each in (obj(status=obj(a=STRING)), obj()))
    assert told(compare(old, new)) == [("field-removed", "status", "W?R!")]
    old, new = (crd(version(schema=obj(spec=each))) for each in (obj(status=obj(a=STRING)), obj()))
    assert told(compare(old, new)) == [("field-removed", "spec.status", "W!R!S!")]


def test_paths_lead_into_both_documents() -> None:
    old = crd(version("v0"), version(schema=obj(spec=obj(x=text(maxLength=3)))))
    new = crd(version(schema=obj(spec=obj(x=text(maxLength=2)))), version("v0"), version("v2"))
    change = next(each for each in compare(old, new).changes if each.kind.id == "limit-tightened")
    below = ("schema", "openAPIV3Schema", "properties", "spec", "properties", "x", "maxLength")
    assert change.place.path.steps == ("spec", "versions", 0, *below)
    assert change.place.old_path is not None
    assert change.place.old_path.steps == ("spec", "versions", 1, *below)
    assert change.message == "maxLength: 3 → 2"


def test_a_field_that_was_probably_renamed() -> None:
    schema = obj(first=INTEGER, second=STRING)
    removed = of_field(obj(colour=schema), obj(color=schema))[0]
    assert removed.message == 'the field is gone; "color", which is new, has the same schema'
    assert of_field(obj(colour=schema), obj(color=STRING))[0].message == "the field is gone"


def test_nothing_is_said_below_a_changed_type() -> None:
    old, new = obj(a=obj(b=STRING, c=STRING)), obj(a={"type": "array", "items": STRING})
    assert [each.kind.id for each in of_field(old, new)] == ["type-changed"]


def test_metadata_is_there_whatever_the_schema_says() -> None:
    meta = obj(apiVersion=text(description="as ever"), kind=STRING, metadata={"type": "object"})
    required = {**obj(), "required": ["metadata", "kind"]}
    for old, new in ((meta, obj()), (obj(), meta), (obj(), required), (required, obj())):
        assert told(compare(crd(version(schema=old)), crd(version(schema=new))), safe=False) == []


def test_what_is_said_of_metadata_counts() -> None:
    long, short_ = (obj(metadata=obj(name=text(maxLength=each))) for each in (63, 40))
    told_of = [
        [
            (each.kind.id, each.place.field)
            for each in compare(crd(version(schema=a)), crd(version(schema=b))).changes
        ]
        for a, b in ((obj(), long), (long, short_), (short_, obj()))
    ]
    tighter, looser = ("limit-tightened", "metadata.name"), ("limit-loosened", "metadata.name")
    assert told_of == [[tighter], [tighter], [looser]]


NAMING: list[Json] = [
    {"x-kubernetes-validations": [{"rule": "!has(self.b) || self.b == 'x'"}]},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"not": {"minProperties": 2}},
    # Found by comparison with the API server.
    {"enum": [{}, {"a": "x"}]},
]
OTHERS: list[Json] = [
    {"x-kubernetes-validations": [{"rule": "self.a != ''"}]},
    {"anyOf": [{"required": ["a"]}]},
]


def with_new_default(name: str, around: Json, within: Json) -> str:
    """Whom a new field with a default affects, in nested objects with these keywords."""
    old = {**obj(a={**obj(), **within}), **around}
    new = {**obj(a={**obj(**{name: text(default="x")}), **within}), **around}
    # If a rule names an undeclared field, the old CRD is invalid, which is reported as well.
    (change,) = (each for each in of_field(old, new) if each.kind.id != "not-accepted")
    assert change.kind.id == "field-added-with-default"
    return short(change.effects)


@pytest.mark.parametrize("guard", NAMING)
def test_a_default_that_something_may_refuse(guard: Json) -> None:
    assert with_new_default("b", {}, guard) == "W?"
    assert with_new_default("b", guard, {}) == "W?"


@pytest.mark.parametrize("guard", OTHERS)
def test_a_default_that_nothing_notices(guard: Json) -> None:
    assert with_new_default("b", guard, guard) == ""
    # This name is written otherwise in CEL.
    assert with_new_default("b-c", guard, guard) == "W?"


def test_a_default_that_is_one_field_too_many() -> None:
    assert with_new_default("b", {}, {"maxProperties": 1}) == "W?"
    assert with_new_default("b", {"maxProperties": 1}, {}) == ""


def test_another_type_that_a_rule_may_refuse() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "self > 3"}]}
    (here,) = of_field({**INTEGER, **rule}, {"type": "number", **rule})
    assert short(here.effects) == "W?R?"
    items = (
        {"type": "array", "items": {**INTEGER, **rule}},
        {"type": "array", "items": {"type": "number", **rule}},
    )
    assert [short(each.effects) for each in of_field(*items)] == ["W?R?"]


def test_a_long_value_is_cut() -> None:
    (change,) = of_field(text(default="x" * 5000), text(default="y" * 5000))
    assert len(change.message) < 300
