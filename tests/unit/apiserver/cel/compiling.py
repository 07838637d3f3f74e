"""Shared by the tests of expressions: a schema, and a function that compiles one rule for it."""

from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.apiserver.cel.compilation import Compilation, RulePlace, RuleVerdict, compile_rules
from crdkeeper.apiserver.schema.props import VALIDATIONS

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "maxLength": 10},
        "long": {"type": "string"},
        "i": {"type": "integer"},
        "b": {"type": "boolean"},
        "du": {"type": "string", "format": "duration"},
        "ios": {"x-kubernetes-int-or-string": True},
        "names": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 4}},
        "nodes": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "tags": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 2}},
                    "other": {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 2}},
                },
            },
        },
        "labels": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}},
        "inner": {"type": "object", "properties": {"x": {"type": "integer"}}},
    },
}


def compiled(rule: Mapping[str, Any], schema: Mapping[str, Any] = SCHEMA) -> Compilation:
    """One rule at the root of a schema."""
    return compile_rules(RulePlace.root({**schema, VALIDATIONS: [rule]}))[0]


def verdict(text: str, schema: Mapping[str, Any] = SCHEMA) -> RuleVerdict:
    """The result of compiling an expression."""
    found = compiled({"rule": text}, schema).rule
    assert found is not None
    return found
