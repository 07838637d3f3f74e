"""Defaults: pruned, valid, and with valid metadata, with the API server's messages."""

from typing import Any

import pytest

from crdkeeper.apiserver.definitions.rules.defaults import check_defaults, has_rules, has_unpruned_defaults
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.violation import Report

TEXT = {"type": "string"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def checked(schema: dict[str, Any]) -> Report:
    report = Report()
    decoded = SCHEMA.decode({"type": "object", "properties": {"a": schema}}, root("s"), Report())
    check_defaults(decoded, root("s"), report)
    return report


def has_unknown(schema: dict[str, Any], default: Any) -> bool:
    report = checked({**schema, "default": default})
    return any(each.detail == "must not have unknown fields" for each in report.violations)


@pytest.mark.parametrize(
    ("schema", "default", "unknown"),
    [
        ({"type": "object"}, {}, False),
        ({"type": "object"}, {"b": 1}, True),
        ({"type": "object", "properties": {"b": TEXT}}, {"b": "x"}, False),
        ({"type": "object", "properties": {"b": {"type": "object"}}}, {"b": {"c": 1}}, True),
        ({"type": "object", "additionalProperties": TEXT}, {"b": "x"}, False),
        # additionalProperties: true preserves the fields, but not those inside them.
        ({"type": "object", "additionalProperties": True}, {"b": 1}, False),
        ({"type": "object", "additionalProperties": True}, {"b": {"c": 1}}, True),
        ({"type": "array", "items": {"type": "object"}}, [{"b": 1}], True),
        ({"type": "array", "items": TEXT}, ["b"], False),
        ({"type": "object", PRESERVE: True}, {"b": {"c": 1}}, False),
        # Pruning starts again in the known fields.
        ({"type": "object", PRESERVE: True, "properties": {"b": {"type": "object"}}}, {"b": {"c": 1}}, True),
        ({PRESERVE: True, "items": {"type": "object"}}, [{"b": 1}], False),
        (TEXT, {"b": 1}, True),
        # These become floats, and are no unknown fields.
        ({"type": "object", "properties": {"b": {"type": "number"}}}, {"b": 2**63}, False),
        ({"type": "array", "items": {"type": "number"}}, [1, 2**64, -(2**64)], False),
    ],
)
def test_unknown_fields(schema: dict[str, Any], default: Any, unknown: bool) -> None:
    assert has_unknown(schema, default) is unknown


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "default": "x"},
        {"type": "string", "maxLength": 1, "enum": ["x"], "default": "x"},
        {"type": "integer", "minimum": 0, "maximum": 5, "default": 5},
        {"type": "integer", "default": 2.0},
        {"type": "number", "default": 1.5},
        {"type": "boolean", "default": False},
        {"x-kubernetes-int-or-string": True, "default": "10%"},
        {"x-kubernetes-int-or-string": True, "default": 1.5},
        {PRESERVE: True, "default": 1},
        {"type": "array", "items": TEXT, "default": ["x"]},
        # List types are not checked in defaults.
        {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set", "default": ["x", "x"]},
        {"type": "object", "properties": {"b": TEXT}, "required": ["b"], "default": {"b": "x"}},
    ],
)
def test_valid(schema: dict[str, Any]) -> None:
    assert checked(schema) == Report()


INVALID: list[tuple[dict[str, Any], str]] = [
    (
        {"type": "string", "default": 1},
        ': Invalid value: "integer":  in body must be of type string: "integer"',
    ),
    (
        {"type": "array", "items": TEXT, "default": True},
        ': Invalid value: "boolean":  in body must be of type array: "boolean"',
    ),
    (
        {"type": "string", "enum": ["a", "b"], "default": "c"},
        ': Unsupported value: "c": supported values: "a", "b"',
    ),
    ({"type": "integer", "enum": [1, 2], "default": 3}, ': Unsupported value: 3: supported values: "1", "2"'),
    ({"type": "string", "maxLength": 1, "default": "ab"}, ": Too long: may not be more than 1 byte"),
    (
        {"type": "string", "minLength": 3, "default": "ab"},
        ': Invalid value: "ab":  in body should be at least 3 chars long',
    ),
    (
        {"type": "integer", "maximum": 1, "default": 2},
        ": Invalid value: 2:  in body should be less than or equal to 1",
    ),
    (
        {"type": "integer", "maximum": 2, "exclusiveMaximum": True, "default": 2},
        ": Invalid value: 2:  in body should be less than 2",
    ),
    (
        {"type": "number", "minimum": 1.5, "exclusiveMinimum": True, "default": 1.5},
        ": Invalid value: 1.5:  in body should be greater than 1.5",
    ),
    (
        {"type": "array", "items": {"type": "integer"}, "default": ["a"]},
        '.[0]: Invalid value: "string": [0] in body must be of type integer: "string"',
    ),
    (
        {"type": "array", "items": TEXT, "maxItems": 1, "default": ["a", "b"]},
        ": Too many: 2: must have at most 1 item",
    ),
    (
        {"type": "array", "items": TEXT, "minItems": 1, "default": []},
        ": Invalid value: 0:  in body should have at least 1 items",
    ),
    (
        {"type": "object", "minProperties": 1, "default": {}},
        ": Invalid value: 0:  in body should have at least 1 properties",
    ),
    (
        {"type": "object", "properties": {"q": TEXT}, "default": {"q": 1}},
        '.q: Invalid value: "integer": q in body must be of type string: "integer"',
    ),
    (
        {"type": "object", "additionalProperties": TEXT, "default": {"k": 5}},
        '.k: Invalid value: "integer": .k in body must be of type string: "integer"',
    ),
    ({"type": "object", "properties": {"b": TEXT}, "required": ["b"], "default": {}}, ".b: Required value"),
]


@pytest.mark.parametrize(("schema", "said"), INVALID)
def test_invalid(schema: dict[str, Any], said: str) -> None:
    report = checked(schema)
    assert [f"{each.path}: {each.message}" for each in report.violations] == [
        f"s.properties[a].default{said}"
    ]
    assert report.unchecked == []


EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True}


@pytest.mark.parametrize(
    ("default", "said"),
    [
        ({}, [".apiVersion: Required value", ".kind: Required value"]),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}, []),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": []},
            [
                ".metadata: Invalid value: []: "
                "json: cannot unmarshal array into Go value of type v1.ObjectMeta"
            ],
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}},
            [
                '.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field '
                "ObjectMeta.name of type string"
            ],
        ),
    ],
)
def test_embedded_resources(default: Any, said: list[str]) -> None:
    report = checked({**EMBEDDED, "default": default})
    assert [f"{each.path}: {each.message}" for each in report.violations] == [
        f"s.properties[a].default{each}" for each in said
    ]


def test_an_embedded_resource_is_shown_as_the_server_decodes_it() -> None:
    # What ObjectMeta drops is gone when errors are printed, and when values and rules are checked.
    report = checked(
        {
            "type": "object",
            "properties": {"b": EMBEDDED},
            "default": {"b": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "x": 1}}, "c": 1},
        }
    )
    assert [each.message for each in report.violations] == [
        'Invalid value: {"b":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},"c":1}: '
        "must not have unknown fields"
    ]
    schema = {"type": "object", "properties": {"metadata": {"type": "object", "required": ["x"]}}}
    kept = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "x": 1}}
    report = checked({**EMBEDDED, **schema, "default": kept})
    assert [f"{each.path}: {each.message}" for each in report.violations] == [
        "s.properties[a].default.metadata.x: Required value"
    ]


RULES = "x-kubernetes-validations"


@pytest.mark.parametrize(
    ("schema", "default", "said"),
    [
        (
            {"type": "integer", RULES: [{"rule": "self > 1"}]},
            1,
            [": Invalid value: 1: failed rule: self > 1"],
        ),
        (
            {"type": "integer", RULES: [{"rule": "self + 1"}, {"rule": "self > 1"}]},
            1,
            [
                ': Invalid value: "integer": rule compile error: cel expression must evaluate to a bool',
                ": Invalid value: 1: failed rule: self > 1",
            ],
        ),
        (
            {"type": "object", "properties": {"b": {"type": "integer", RULES: [{"rule": "self"}]}}},
            {"b": 1},
            ['.b: Invalid value: "integer": rule compile error: cel expression must evaluate to a bool'],
        ),
        ({"type": "object", "properties": {"b": {"type": "integer", RULES: [{"rule": "self"}]}}}, {}, []),
    ],
)
def test_rules(schema: dict[str, Any], default: Any, said: list[str]) -> None:
    report = checked({**schema, "default": default})
    assert [f"{each.path}: {each.message}" for each in report.violations] == [
        f"s.properties[a].default{each}" for each in said
    ]
    assert report.unchecked == []


def test_metadata_is_judged_with_the_resource_around_it() -> None:
    name = {"type": "string", "default": "a/b"}
    metadata = {"type": "object", "properties": {"name": name}}
    report = checked({**EMBEDDED, "properties": {"metadata": metadata}})
    assert [f"{each.path}: {each.message}" for each in report.violations] == [
        "s.properties[a].properties[metadata].properties[name].default: Invalid value: "
        '"a/b": must result in valid metadata: metadata.name: Invalid value: "a/b": may not contain \'/\''
    ]


def test_several_errors_at_once() -> None:
    b = {"type": "array", "items": TEXT}
    report = checked({"type": "object", "properties": {"b": b}, "required": ["c"], "default": {"b": [1, 2]}})
    assert [str(each.path).removeprefix("s.properties[a].default") for each in report.violations] == [
        ".c",
        ".b[0]",
        ".b[1]",
    ]


def test_unknown_fields_may_stay_where_the_old_schema_had_some() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "default": {"b": 1}}}}
    decoded = SCHEMA.decode(schema, root("s"), Report())
    report = Report()
    check_defaults(decoded, root("s"), report, must_be_pruned=False)
    assert report == Report()
    assert has_unpruned_defaults(decoded)
    assert not has_unpruned_defaults(SCHEMA.decode(EMBEDDED, root("s"), Report()))


def test_a_long_integer_is_no_unknown_field_of_an_old_default() -> None:
    numbers = {"type": "array", "items": {"type": "number"}}
    field = {"type": "object", "properties": {"b": numbers}, "default": {"b": [2**64]}}
    schema = {"type": "object", "properties": {"a": field}}
    assert not has_unpruned_defaults(SCHEMA.decode(schema, root("s"), Report()))


def test_the_work_for_the_patterns_of_all_defaults_is_bounded() -> None:
    # Each match is small enough by itself; together they take half a minute with malicious patterns.
    slow = "|".join(f"(.*a.{{{i}}}b)" for i in range(1, 40))
    fields = {
        f"b{i}": {"type": "string", "pattern": f"({slow})$|{i}", "default": "a" * 900} for i in range(20)
    }
    report = checked({"type": "object", "properties": fields})
    reasons = {each.reason for each in report.unchecked}
    assert reasons == {"to check all values by the schema may take too long"}
    assert len(report.unchecked) < len(fields)


MANY: list[tuple[dict[str, Any], list[Any]]] = [
    ({"type": "string", "anyOf": [{"maxLength": i} for i in range(1_000)]}, ["x" * 1_001] * 1_000),
    ({"type": "string", "oneOf": [{"minLength": 0}] * 1_000}, ["x"] * 1_000),
    ({"type": "string", "allOf": [{"minLength": 1}] * 1_000}, ["x"] * 1_000),
    ({"type": "integer", "enum": list(range(10_000))}, [-1] * 10_000),
    ({"type": "object", "not": {"required": [f"f{i}" for i in range(10_000)]}}, [{}] * 10_000),
]


@pytest.mark.parametrize(("items", "default"), MANY, ids=["anyOf", "oneOf", "allOf", "enum", "required"])
def test_the_work_for_many_values_with_many_branches_is_bounded(items: Any, default: list[Any]) -> None:
    report = checked(
        {"type": "object", "properties": {"a": {"type": "array", "items": items, "default": default}}}
    )
    assert [each.reason for each in report.unchecked] == [
        "to check all values by the schema may take too long"
    ]


def test_the_work_for_defaults_around_defaults_is_bounded() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {f"f{i}": {"type": "string"} for i in range(5_000)},
    }
    for _ in range(60):
        schema = {"type": "object", "default": {}, "properties": {"a": schema}}
    report = checked(schema)
    assert {each.reason for each in report.unchecked} == {
        "to check all values by the schema may take too long"
    }
    assert len(report.unchecked) < 60


@pytest.mark.parametrize(
    ("keyword", "found"),
    [
        *(("properties", True), ("items", True), ("additionalProperties", True)),
        *(("not", False), ("allOf", False)),
    ],
)
def test_rules_are_found_in_all_that_shapes_values(keyword: str, found: bool) -> None:
    ruled: Any = {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}
    parts = {"properties": {"a": ruled}, "allOf": [ruled]}
    assert has_rules({"type": "object", keyword: parts.get(keyword, ruled)}) is found


def test_what_many_wrong_defaults_quote_is_bounded() -> None:
    # Quoted in full it is 2 GB: each message lists all values of the enum.
    items = {"type": "string", "enum": [f"value-{i:05}" for i in range(10_000)]}
    default = [f"no-{i}" for i in range(15_000)]
    report = checked(
        {"type": "object", "properties": {"a": {"type": "array", "items": items, "default": default}}}
    )
    assert len(report.violations) == 10_000
    assert len(report.violations[0].message) > 100_000
    assert sum(len(each.message) for each in report.violations) < 10 << 20
