"""Structural schemas: each rule with the API server's message (Kubernetes 1.37)."""

from typing import Any

import pytest

from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.structural import conversion_error, violations
from crdkeeper.apiserver.schema.violation import Report

TEXT = {"type": "string"}
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
IOS = "x-kubernetes-int-or-string"


def said(schema: dict[str, Any]) -> list[str]:
    decoding, report = Report(), Report()
    violations(SCHEMA.decode(schema, root("s"), decoding), root("s"), report)
    assert not decoding.violations
    return sorted(f"{each.path}: {each.message}" for each in report.violations)


def with_a(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        with_a(TEXT),
        with_a({PRESERVE: True}),
        with_a({IOS: True}),
        with_a({IOS: True, "anyOf": INT_OR_STRING}),
        with_a({IOS: True, "allOf": [{"anyOf": INT_OR_STRING}, {"pattern": "^a"}]}),
        with_a({"type": "array", "items": TEXT}),
        with_a({"type": "object", "additionalProperties": TEXT}),
        with_a({"type": "object", EMBEDDED: True, PRESERVE: True}),
        {
            "type": "object",
            "properties": {
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
            },
        },
        {
            "type": "object",
            "properties": {"a": TEXT},
            "anyOf": [{"required": ["a"]}, {"properties": {"a": {"minLength": 1}}}],
        },
        {"type": "object", "not": {"required": ["a"], "additionalProperties": False}},
    ],
)
def test_structural(schema: dict[str, Any]) -> None:
    assert said(schema) == []


JUNCTOR = "s.anyOf[0]"


@pytest.mark.parametrize(
    ("schema", "messages"),
    [
        ({}, ["s.type: Required value: must not be empty at the root"]),
        ({"type": "string"}, ['s.type: Invalid value: "string": must be object at the root']),
        (with_a({}), ["s.properties[a].type: Required value: must not be empty for specified object fields"]),
        (with_a({"type": "array"}), ["s.properties[a].items: Required value: must be specified"]),
        (
            with_a({"type": "array", "items": {}}),
            ["s.properties[a].items.type: Required value: must not be empty for specified array items"],
        ),
        (
            {"type": "object", "additionalProperties": True},
            ["s.additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            with_a({EMBEDDED: True, PRESERVE: True}),
            [f"s.properties[a].type: Required value: must be object if {EMBEDDED} is true"],
        ),
        (
            with_a({"type": "object", EMBEDDED: True, "additionalProperties": TEXT}),
            [
                f"s.properties[a].additionalProperties: Forbidden: must not be used if {EMBEDDED} is set",
                f"s.properties[a].properties: Required value: must not be empty if {EMBEDDED} is true "
                f"without {PRESERVE}",
            ],
        ),
        (
            with_a(
                {
                    "type": "object",
                    EMBEDDED: True,
                    "properties": {"metadata": {"type": "string"}, "kind": TEXT},
                }
            ),
            ['s.properties[a].properties[metadata].type: Invalid value: "string": must be object'],
        ),
        (
            with_a({IOS: True, PRESERVE: True}),
            [f"s.properties[a].{PRESERVE}: Invalid value: true: must be false if {IOS} is true"],
        ),
        (
            {"type": "object", "properties": {"kind": {"type": "integer"}, "metadata": {"type": "string"}}},
            [
                's.properties[kind].type: Invalid value: "integer": must be string',
                's.properties[metadata].type: Invalid value: "string": must be object',
            ],
        ),
        (
            {"type": "object", "properties": {"metadata": {"type": "object", "description": "d"}}},
            [
                "s.properties[metadata]: Forbidden: must not specify anything other than name and "
                "generateName, "
                "but metadata is implicitly specified"
            ],
        ),
        (
            with_a({"type": "string", "pattern": "(?=a)"}),
            [
                's.properties[a].pattern: Invalid value: "(?=a)": must be a valid regular expression, '
                "but isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"
            ],
        ),
        # The order of the two types matters, and nothing else is allowed next to them.
        (
            with_a({IOS: True, "anyOf": INT_OR_STRING[::-1]}),
            [f"s.properties[a].anyOf[{i}].type: Forbidden: must be empty to be structural" for i in (0, 1)],
        ),
        (
            with_a({IOS: True, "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
            [f"s.properties[a].anyOf[{i}].type: Forbidden: must be empty to be structural" for i in (0, 1)],
        ),
        # A junctor may refer to defined fields; at the root only this is checked.
        (
            {"type": "object", "oneOf": [{"properties": {"b": {"minLength": 1}}}]},
            ["s.properties[b]: Required value: because it is defined in s.oneOf[0].properties[b]"],
        ),
        (
            {"type": "object", "not": {"items": {"minLength": 1}}},
            ["s.items: Required value: because it is defined in s.not.items"],
        ),
        (with_a({"type": "object", "oneOf": [{"properties": {"b": {"minLength": 1}}}]}), []),
        (
            {
                "type": "object",
                "properties": {"metadata": {"type": "object"}},
                "allOf": [{"properties": {"metadata": {}}}],
            },
            ["s.allOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"],
        ),
    ],
)
def test_not_structural(schema: dict[str, Any], messages: list[str]) -> None:
    assert said(schema) == messages


@pytest.mark.parametrize(
    ("keyword", "value", "seen"),
    [
        # Found by comparison: the server's form of a schema lacks these, but not the others.
        ("$ref", "", False),
        ("definitions", {}, False),
        ("dependencies", {}, False),
        ("enum", [], False),
        ("items", [], False),
        ("required", [], True),
        ("items", {}, True),
        ("externalDocs", {}, True),
        ("x-kubernetes-list-map-keys", [], True),
    ],
)
def test_empty_keywords_in_metadata_and_in_int_or_string(keyword: str, value: Any, seen: bool) -> None:
    metadata = {"type": "object", keyword: value}
    forbidden = (
        "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName"
    )
    messages = said({"type": "object", "properties": {"metadata": metadata}})
    assert any(each.startswith(forbidden) for each in messages) is seen
    junctor = [{"type": "integer", keyword: value}, {"type": "string"}]
    assert bool(said(with_a({IOS: True, "anyOf": junctor, "items": TEXT}))) is seen


@pytest.mark.parametrize(
    ("keyword", "value", "state"),
    [
        ("type", "string", "empty"),
        ("title", "t", "empty"),
        ("description", "d", "empty"),
        ("x-kubernetes-list-map-keys", ["a"], "empty"),
        ("x-kubernetes-validations", [{"rule": "true"}], "empty"),
        ("default", False, "undefined"),
        ("additionalProperties", True, "undefined"),
        ("x-kubernetes-list-type", "set", "undefined"),
        ("x-kubernetes-map-type", "atomic", "undefined"),
        ("nullable", True, "false"),
        (PRESERVE, True, "false"),
        (EMBEDDED, True, "false"),
        (IOS, True, "false"),
    ],
)
@pytest.mark.parametrize("place", ["anyOf", "allOf", "oneOf", "not"])
def test_forbidden_in_junctors(place: str, keyword: str, value: Any, state: str) -> None:
    junctor = {keyword: value} if place == "not" else [{keyword: value}]
    at = "s.not" if place == "not" else f"s.{place}[0]"
    assert said({"type": "object", place: junctor}) == [
        f"{at}.{keyword}: Forbidden: must be {state} to be structural"
    ]


@pytest.mark.parametrize(
    ("keyword", "value", "error"),
    [
        ("id", "x", "OpenAPIV3Schema 'id' is not supported"),
        ("$schema", "x", "OpenAPIV3Schema 'schema' is not supported"),
        ("$ref", "x", "OpenAPIV3Schema '$ref' is not supported"),
        ("patternProperties", {"a": {}}, "OpenAPIV3Schema 'patternProperties' is not supported"),
        ("dependencies", {"a": ["b"]}, "OpenAPIV3Schema 'dependencies' is not supported"),
        ("additionalItems", False, "OpenAPIV3Schema 'additionalItems' is not supported"),
        ("definitions", {"a": {}}, "OpenAPIV3Schema 'definitions' is not supported"),
        ("items", [{}], "OpenAPIV3Schema 'items' must be a schema, but is an array"),
        (PRESERVE, False, f"internal error: '{PRESERVE}' must be true or undefined"),
        ("items", [], None),
        ("definitions", {}, None),
    ],
)
def test_conversion(keyword: str, value: Any, error: str | None) -> None:
    for schema in ({keyword: value}, with_a({keyword: value}), {"allOf": [{"not": {keyword: value}}]}):
        assert conversion_error(SCHEMA.decode(schema, root("s"), Report())) == error
