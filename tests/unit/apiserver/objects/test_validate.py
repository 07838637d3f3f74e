"""The OpenAPI validator with the server's messages; each line comes from the real API server."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.effort import StepAllowance, limited
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.finding import MOST_FINDINGS
from tests.unit.apiserver.objects.samples import INTEGER, PRESERVE, TEXT, admitted, decoded, said

NUMBER = {"type": "number"}
NOWHERE = '<nil>: Invalid value: "": '
INT_OR_STRING = {"x-kubernetes-int-or-string": True}
ANY = [{"type": "integer"}, {"type": "string"}]

VALID: list[tuple[dict[str, Any], Any]] = [
    (INTEGER, 1),
    (INTEGER, 1.0),
    (INTEGER | {"enum": [1]}, 1.0),
    (NUMBER, 1),
    (INT_OR_STRING, "50%"),
    (INT_OR_STRING, 1.0),
    (INT_OR_STRING | {"anyOf": ANY}, "x"),
    (TEXT | {"maxLength": 2}, "é😀"),
    (TEXT | {"pattern": r"^\pL+$"}, "日本"),
    (TEXT | {"format": "nonsense"}, "x"),
    (TEXT | {"enum": ["a", "b"]}, "b"),
    # Go truncates a float to an integer, and converts an integer to a string of one code point.
    (NUMBER | {"enum": [1]}, 1.7),
    (INT_OR_STRING | {"enum": ["A"]}, 65),
    # An integer is compared with the integral part of a bound.
    (NUMBER | {"minimum": 2.5}, 2),
    (NUMBER | {"multipleOf": 0.1}, 0.3),
    (INTEGER | {"multipleOf": 3}, -9),
    ({"type": "object", "additionalProperties": True}, {"b": 1}),
    ({"type": "array", "items": TEXT | {"nullable": True}}, [None]),
    # An array counts as a string with a format.
    (TEXT | {"format": "date"}, ["x"]),
    (TEXT | {"not": {"pattern": "x"}}, "y"),
    (TEXT | {"oneOf": [{"pattern": "x"}, {"pattern": "y"}]}, "y"),
]


@pytest.mark.parametrize(("schema", "value"), VALID)
def test_valid(schema: dict[str, Any], value: Any) -> None:
    assert said(admitted(schema, value)) == []


INVALID: list[tuple[dict[str, Any], Any, list[str]]] = [
    (TEXT, 1, ['spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"']),
    (INTEGER, 1.5, ['spec.a: Invalid value: "number": spec.a in body must be of type integer: "number"',
                    NOWHERE + 'Checked value must be of type integer (default format) in spec.a']),
    (INTEGER | {"format": "int32"}, True,
     ['spec.a: Invalid value: "": spec.a in body must be of type int32: ""']),
    (INTEGER | {"format": "int32"}, 2**31,
     [NOWHERE + 'Checked value must be of type integer with format int32 in spec.a']),
    (TEXT | {"format": "date-time"}, 5,
     ['spec.a: Invalid value: "int64": spec.a in body must be of type date-time: "int64"']),
    (TEXT | {"format": "date"}, "x",
        ['spec.a: Invalid value: "x": spec.a in body must be of type date: "x"']),
    (INT_OR_STRING, True,
     ['spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean"']),
    ({"type": "array", "items": TEXT}, ["x", None],
     ['spec.a[1]: Invalid value: "null": spec.a[1] in body must be of type string: "null"']),
    (TEXT | {"maxLength": 1}, "ab", ["spec.a: Too long: may not be more than 1 byte"]),
    (TEXT | {"minLength": 2}, "é",
        ['spec.a: Invalid value: "é": spec.a in body should be at least 2 chars long']),
    (TEXT | {"pattern": "^a$"}, "b", ["spec.a: Invalid value: \"b\": spec.a in body should match '^a$'"]),
    (TEXT | {"enum": ["a", "b"]}, "c", ['spec.a: Unsupported value: "c": supported values: "a", "b"']),
    # Null is in no enum, even if it is listed.
    (TEXT | {"enum": ["a", None], "nullable": True}, None,
     ['spec.a: Unsupported value: null: supported values: "a", "null"']),
    (INTEGER | {"minimum": 1}, 0,
        ["spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1"]),
    (NUMBER | {"maximum": 2, "exclusiveMaximum": True}, 2.0,
     ["spec.a: Invalid value: 2: spec.a in body should be less than 2"]),
    # A non-integer bound is an error of its own for each value.
    (INTEGER | {"maximum": 2.5}, 1,
     [NOWHERE + 'Maximum boundary value must be of type integer (default format) in spec.a']),
    (INTEGER | {"maximum": 2.5}, 5_000_000,
     [NOWHERE + 'Maximum boundary value must be of type integer (default format) in spec.a',
      "spec.a: Invalid value: 5e+06: spec.a in body should be less than or equal to 2.5"]),
    # A float within a billionth of an integer has the type integer.
    (INTEGER, 1.0000000001, [NOWHERE + 'Checked value must be of type integer (default format) in spec.a']),
    (NUMBER | {"minimum": 1e7}, 1.5,
     ["spec.a: Invalid value: 1.5: spec.a in body should be greater than or equal to 1e+07"]),
    (INTEGER | {"multipleOf": 2}, 3, ["spec.a: Invalid value: 3: spec.a in body should be a multiple of 2"]),
    # The integral part of 0.5 is 0.
    (NUMBER | {"multipleOf": 0.5}, 3,
     ["spec.a: Invalid value: 0: factor MultipleOf declared for spec.a must be positive: 0"]),
    ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"],
        ["spec.a: Too many: 2: must have at most 1 item"]),
    ({"type": "array", "items": TEXT, "minItems": 1}, [],
     ["spec.a: Invalid value: 0: spec.a in body should have at least 1 items"]),
    ({"type": "object", "additionalProperties": TEXT, "minProperties": 2}, {"b": "x"},
     ["spec.a: Invalid value: 1: spec.a in body should have at least 2 properties"]),
    ({"type": "object", "properties": {"b": TEXT}, "required": ["b"]}, {}, ["spec.a.b: Required value"]),
    ({"type": "object", "additionalProperties": False}, {"b": 1},
     ['spec.a: Invalid value: "b": spec.a.b in body is a forbidden property']),
    ({"type": "object", "additionalProperties": INTEGER}, {"x/y": "s"},
     ['spec.a.x/y: Invalid value: "string": spec.a.x/y in body must be of type integer: "string"']),
    (TEXT | {"not": {"pattern": "x"}}, "x",
        [NOWHERE + '"spec.a" must not validate the schema (not)']),
    (TEXT | {"oneOf": [{"pattern": "x"}, {"maxLength": 3}]}, "x",
     [NOWHERE + '"spec.a" must validate one and only one schema (oneOf). Found 2 valid alternatives']),
    (TEXT | {"allOf": [{"pattern": "x"}, {"maxLength": 3}]}, "y",
     ["spec.a: Invalid value: \"y\": spec.a in body should match 'x'",
      NOWHERE + '"spec.a" must validate all the schemas (allOf)']),
    # The errors of the branch that got furthest are shown: here the first of two that got equally far.
    (TEXT | {"anyOf": [{"pattern": "x"}, {"maxLength": 0}]}, "y",
     [NOWHERE + '"spec.a" must validate at least one schema (anyOf)',
      "spec.a: Invalid value: \"y\": spec.a in body should match 'x'"]),
    (INT_OR_STRING | {"anyOf": ANY}, True,
     ['spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean"',
      NOWHERE + '"spec.a" must validate at least one schema (anyOf)',
      'spec.a: Invalid value: "boolean": spec.a in body must be of type integer: "boolean"']),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "words"), INVALID)
def test_invalid(schema: dict[str, Any], value: Any, words: list[str]) -> None:
    assert sorted(said(admitted(schema, value))) == sorted(words)


def test_the_furthest_branch_explains() -> None:
    branches = [
        {"properties": {"b": {"maximum": 1}}},
        {"properties": {"b": {"minimum": 9}, "c": {"maxLength": 5}}},
    ]
    schema = {"type": "object", "properties": {"b": INTEGER, "c": TEXT}, "anyOf": branches}
    words = said(admitted(schema, {"b": 5, "c": "x"}))
    assert words == [
        NOWHERE + '"spec.a" must validate at least one schema (anyOf)',
        "spec.a.b: Invalid value: 5: spec.a.b in body should be greater than or equal to 9",
    ]


def test_a_bound_beyond_64_bits_is_left_to_the_server() -> None:
    outcome = admitted(NUMBER | {"maximum": 1e19}, 5)
    assert outcome.accepted is None
    assert "depends on the processor" in outcome.unchecked[0].reason


@pytest.mark.parametrize(("listed", "accepted"), [(-(2**63), None), (2**63 - 1, None), (5, False)])
def test_a_number_beyond_64_bits_against_an_integer_of_an_enum(listed: int, accepted: bool | None) -> None:
    assert admitted(NUMBER | {"enum": [listed]}, 1e300).accepted is accepted


def test_nested_junctors_take_no_exponential_time() -> None:
    schema: dict[str, Any] = {"maximum": 1}
    for _ in range(60):
        schema = {"anyOf": [schema, {"maximum": 0}]}
    assert len(said(admitted(INTEGER | schema, 5))) == 2


def test_a_deep_object_is_left_to_the_server() -> None:
    value: Any = {}
    for _ in range(5000):
        value = {"b": value}
    outcome = admitted({"type": "object", **PRESERVE}, value)
    assert outcome.accepted is None and outcome.unchecked


@pytest.mark.parametrize(
    ("schema", "value", "least"),
    [
        (TEXT | {"anyOf": [{"format": "date"}]}, "x" * 1_000, 2 * 10_000),
        ({"type": "array", "items": TEXT, "allOf": [{"items": {"maxLength": 5}}] * 2}, ["a"] * 1_000,
            2 * 100_000),
        ({"type": "object", "additionalProperties": TEXT, "not": {"properties": {"b": {"maxLength": 5}}}},
            {f"k{i}": "a" for i in range(1_000)}, 100_000),
        ({"type": "array", "items": {"type": "array", "items": TEXT},
            "not": {"items": {"items": {"maxLength": 5}}}}, [["a"] * 1_000], 100_000),
    ],
    ids=["text", "list", "map", "list in a list"],
)  # fmt: skip
def test_branches_cost_by_what_they_go_through(schema: dict[str, Any], value: Any, least: int) -> None:
    allowance = StepAllowance(10**9)
    with limited(allowance):
        Validator(decoded(schema)).check(value)
    assert least <= 10**9 - allowance.left <= least + 10_000


def test_a_large_value_with_many_branches_is_left_to_the_server() -> None:
    branches = [{"items": {"maxLength": 5}}] * 1_000
    outcome = admitted({"type": "array", "items": TEXT, "allOf": branches}, ["a"] * 10_000)
    assert outcome.accepted is None
    assert [each.reason for each in outcome.unchecked] == [
        "to check all values by the schema may take too long"
    ]


def test_all_errors_of_many_branches_are_not_collected() -> None:
    branches = [{"items": {"minLength": 5}}] * 10
    schema = {"type": "array", "items": TEXT, "allOf": branches}
    found = Validator(decoded(schema)).check(["a"] * (MOST_FINDINGS // 4))
    assert MOST_FINDINGS <= len(found) < 2 * MOST_FINDINGS
