"""What cannot be kept inside allOf, anyOf, oneOf and not is left out without refusing what was valid."""

from typing import Any

import pytest

from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import INT_OR_STRING, SCHEMA
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.upgrade.manifest import Upgraded, upgrade
from tests.unit.core.upgrade.test_manifest import EITHER, PRESERVE, STRING, ids, spec_of, with_spec

TYPES = [{"type": "integer"}, {"type": "boolean"}]
VALID: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "types in oneOf": ({"oneOf": TYPES}, [1, True]),
    "types in oneOf beside anyOf": ({"oneOf": TYPES, "anyOf": [{"minimum": 1}, {"maximum": -1}]}, [1, True]),
    "a type in not": ({"not": {"type": "string"}}, [1, True]),
    "oneOf in not": ({"not": {"oneOf": [{"type": "string"}, {"type": "boolean"}]}}, [1]),
    "not in oneOf": (
        {"type": "string", "oneOf": [{"pattern": "a", "not": {"type": "integer"}}, {"pattern": "b"}]},
        ["a", "b"],
    ),
    "types of a field": (
        {
            "type": "object",
            "properties": {"v": {PRESERVE: True}},
            "oneOf": [{"properties": {"v": {"type": "integer"}}}, {"properties": {"v": STRING}}],
        },
        [{"v": 1}, {"v": "a"}],
    ),
    "a field that only not declares": (
        {"type": "object", "not": {"required": ["v"], "properties": {"v": STRING}}},
        [{}, {"v": 1}],
    ),
    "the type of items": (
        {"type": "array", "items": {PRESERVE: True}, "not": {"items": STRING}},
        [[1], ["a", 1]],
    ),
    "a map in oneOf": (
        {
            "type": "object",
            PRESERVE: True,
            "oneOf": [{"additionalProperties": {"type": "integer"}}, {"required": ["a"]}],
        },
        [{"a": "x"}, {"b": 1}],
    ),
    "fields of a map": (
        {
            "type": "object",
            "additionalProperties": STRING,
            "oneOf": [{"required": ["a"], "properties": {"a": {"enum": ["x"]}}}, {"required": ["b"]}],
        },
        [{"a": "x"}, {"a": "y", "b": "z"}],
    ),
}


def admitted(upgraded: Upgraded, values: list[Any]) -> list[Any]:
    """Those that an object may have as its spec."""
    (decoded,) = schemas_of(upgraded.definition).values()
    schema = ObjectSchema.of(decoded)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}}
    return [each for each in values if not schema.admit({**widget, "spec": each}).violations]


@pytest.mark.parametrize(("schema", "valid"), VALID.values(), ids=VALID)
def test_what_was_valid_is_valid(schema: dict[str, Any], valid: list[Any]) -> None:
    before = Validator(SCHEMA.decode(schema, root("spec"), Report()))
    assert not [each for each in valid if before.check(each)]
    done = upgrade(with_spec(schema))
    assert not done.violations
    assert "junctor-loosened" in ids(done)
    assert admitted(done, valid) == valid


def test_nothing_beside_a_one_of_is_lost() -> None:
    limits = [{"minimum": 1}, {"maximum": -1}]
    done = upgrade(with_spec({"oneOf": TYPES, "anyOf": limits, "allOf": [{"multipleOf": 2}]}))
    assert spec_of(done) == {
        PRESERVE: True,
        "anyOf": limits,
        "allOf": [{"multipleOf": 2}, {"anyOf": [{}, {}]}],
    }


@pytest.mark.parametrize(
    ("before", "after", "decisions"),
    [
        (
            {"type": "object", "not": {"type": "object", "required": ["a"]}},
            {"type": "object", "not": {"required": ["a"]}},
            set(),
        ),
        (
            {
                "type": "string",
                "oneOf": [{"type": "string", "pattern": "a"}, {"default": "b", "pattern": "b"}],
            },
            {"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]},
            {"junctor-keyword"},
        ),
    ],
    ids=["the same type", "a default"],
)
def test_what_restricts_no_value_loosens_nothing(
    before: dict[str, Any], after: dict[str, Any], decisions: set[str]
) -> None:
    done = upgrade(with_spec(before))
    assert spec_of(done) == after
    assert ids(done) == decisions


def test_a_type_that_other_keywords_say_too_is_certain() -> None:
    branches = [{"properties": {"mode": {"type": "string", "enum": [each]}}} for each in ("a", "b")]
    done = upgrade(with_spec({"type": "object", "oneOf": branches}))
    assert spec_of(done) == {
        "type": "object",
        "properties": {"mode": STRING},
        "oneOf": [{"properties": {"mode": {"enum": [each]}}} for each in ("a", "b")],
    }
    assert not done.decisions


def of_v(**keywords: Any) -> dict[str, Any]:
    """What a branch says of one field."""
    return {"properties": {"v": keywords}}


def test_a_type_that_all_branches_say_is_certain() -> None:
    done = upgrade(with_spec({"type": "object", "anyOf": [of_v(**STRING), of_v(enum=["a"])]}))
    assert spec_of(done) == {
        "type": "object",
        "properties": {"v": STRING},
        "anyOf": [of_v(), of_v(enum=["a"])],
    }
    assert not done.decisions


@pytest.mark.parametrize(
    ("before", "after", "type_", "decision"),
    [
        (
            {"anyOf": [of_v(type="string", minLength=1), {"required": ["w"]}]},
            {"anyOf": [of_v(minLength=1), {"required": ["w"]}]},
            STRING,
            "junctor-field-type",
        ),
        (
            {"oneOf": [{"required": ["w"]}, of_v(enum=["a"])]},
            {"oneOf": [{"required": ["w"]}, of_v(enum=["a"])]},
            STRING,
            "junctor-field-type",
        ),
        (
            {"oneOf": [of_v(enum=[1]), of_v(enum=["a"])]},
            {"oneOf": [of_v(enum=[1]), of_v(enum=["a"])]},
            {"type": "integer"},
            "junctor-field-type",
        ),
        (
            {"not": {"required": ["v"], **of_v(enum=["a"])}},
            {"not": {"required": ["v"], **of_v(enum=["a"])}},
            {PRESERVE: True},
            "type-unknown",
        ),
    ],
    ids=["limits in one", "values in one", "values of two types", "values in not"],
)
def test_a_type_that_only_some_branches_say_is_left_to_a_person(
    before: dict[str, Any], after: dict[str, Any], type_: dict[str, Any], decision: str
) -> None:
    done = upgrade(with_spec({"type": "object", **before}))
    assert spec_of(done) == {"type": "object", "properties": {"v": type_}, **after}
    assert ids(done) == {decision}
    assert not done.violations


@pytest.mark.parametrize("notation", [{"oneOf": EITHER}, {"format": "int-or-string"}])
def test_the_limits_of_an_integer_or_string_stay(notation: dict[str, Any]) -> None:
    limits = [{"minimum": 1}, {"pattern": "%$"}]
    done = upgrade(with_spec({**notation, "anyOf": limits}))
    assert spec_of(done) == {INT_OR_STRING: True, "anyOf": limits}
    assert not done.decisions
    assert not done.violations
    assert admitted(done, [1, "5%", True]) == [1, "5%"]


def test_types_beside_limits_of_an_integer_or_string_are_left_to_a_person() -> None:
    limits = [{"type": "integer", "minimum": 1}, {"type": "string"}]
    done = upgrade(with_spec({"format": "int-or-string", "anyOf": limits}))
    assert spec_of(done) == {INT_OR_STRING: True, "anyOf": [{"minimum": 1}, {}]}
    assert ids(done) == {"junctor-types-differ"}
    assert not done.violations
