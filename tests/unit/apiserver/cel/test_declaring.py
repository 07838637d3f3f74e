"""Schemas declare the types and sizes that the API server derives from them."""

from typing import Any

import pytest

from crdkeeper.apiserver.cel.syntax.names import escape
from crdkeeper.apiserver.cel.types.declared import Declared, declare

MIB3 = 3 * 1024 * 1024


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
        ("__x", "__underscores__x"),
        ("___", "__underscores___"),
        ("_x_", "_x_"),
        ("-x", "__dash__x"),
        ("1x", None),
        ("", None),
        ("a b", None),
        ("é", None),
        ("$ref", None),
    ],
)
def test_escape(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped


def _declared(schema: dict[str, Any], *, root: bool = False) -> Declared:
    declared = declare(schema, root=root)
    assert declared is not None
    return declared


@pytest.mark.parametrize(
    ("schema", "type_", "size", "least"),
    [
        ({"type": "string"}, "string", MIB3 - 2, 2),
        ({"type": "string", "maxLength": 3}, "string", 12, 2),
        ({"type": "string", "enum": ["a", "bcd", "é"]}, "string", 3, 2),
        ({"type": "string", "enum": ["a"], "maxLength": 3}, "string", 12, 2),
        ({"type": "string", "format": "byte", "maxLength": 3}, "bytes", 3, 2),
        ({"type": "string", "format": "date"}, "timestamp", 12, 12),
        ({"type": "string", "format": "date-time"}, "timestamp", 32, 21),
        ({"type": "string", "format": "duration"}, "duration", 32, 3),
        ({"type": "string", "format": "uuid"}, "string", MIB3 - 2, 2),
        ({"type": "integer"}, "int", 0, 1),
        ({"type": "number"}, "double", 0, 1),
        ({"type": "boolean"}, "bool", 0, 4),
        ({"x-kubernetes-int-or-string": True}, "dyn", MIB3 - 2, 1),
        ({"x-kubernetes-int-or-string": True, "maxLength": 5}, "dyn", 20, 1),
        ({"type": "array", "items": {"type": "integer"}}, "list(int)", (MIB3 - 2) // 2, 2),
        ({"type": "array", "maxItems": 4, "items": {"type": "integer"}}, "list(int)", 4, 2),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "map(string, string)",
            (MIB3 - 2) // 8,
            2,
        ),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "selfType", 0, 2),
    ],
)
def test_declared(schema: dict[str, Any], type_: str, size: int, least: int) -> None:
    declared = _declared(schema)
    assert (declared.type().text, declared.max_elements, declared.min_size) == (type_, size, least)


@pytest.mark.parametrize(
    "schema",
    [
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "array"},
        {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}},
    ],
)
def test_what_cel_cannot_see(schema: dict[str, Any]) -> None:
    assert declare(schema, root=False) is None


def test_required_fields_without_default_make_an_object_longer() -> None:
    text = {"type": "string"}
    properties = {"a": text, "bc": text, "d": {**text, "default": "x"}, "e": text}
    schema = {"type": "object", "required": ["a", "bc", "d"], "properties": properties}
    assert _declared(schema).min_size == 2 + (1 + 2 + 4) + (2 + 2 + 4)


def test_fields_that_cel_cannot_name_or_see_are_not_there() -> None:
    schema = {
        "type": "object",
        "properties": {
            "1x": {"type": "string"},
            "u": {"x-kubernetes-preserve-unknown-fields": True},
            "a-b": {"type": "string"},
        },
    }
    assert set(_declared(schema).fields) == {"a__dash__b"}


def test_reserved_names_are_found_with_and_without_escape() -> None:
    fields = _declared({"type": "object", "properties": {"namespace": {"type": "string"}}}).type().fields
    assert fields is not None
    assert fields("namespace") is not None
    assert fields("__namespace__") is not None
    assert fields("other") is None


def test_resources_have_their_common_fields() -> None:
    schema = {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}}}
    declared = _declared(schema, root=True)
    assert set(declared.fields) == {"apiVersion", "kind", "metadata", "spec"}
    metadata = declared.fields["metadata"].fields
    assert {name: each.max_elements for name, each in metadata.items()} == {
        "name": 253 * 4,
        "generateName": 252 * 4,
    }
    assert set(_declared(schema).fields) == {"metadata", "spec"}


def test_a_shorter_limit_of_a_name_stays() -> None:
    name = {"type": "string", "maxLength": 10}
    schema = {
        "type": "object",
        "properties": {"metadata": {"type": "object", "properties": {"name": name}}},
    }
    assert _declared(schema, root=True).fields["metadata"].fields["name"].max_elements == 40


def test_embedded_resources_have_them_as_well() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True}
    declared = _declared({"type": "object", "properties": {"e": inner}})
    assert set(declared.fields["e"].fields) == {"apiVersion", "kind", "metadata"}
