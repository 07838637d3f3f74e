"""The fields of an OpenAPI v3 schema in a CRD (JSONSchemaProps), decoded as the API server does.

A decoded schema is a plain dict of the fields that are set: with tens of thousands of nodes in one CRD,
classes would cost more than all checks together.
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.schema.decoding import (
    ABSENT,
    Anything,
    FieldType,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Number,
    Struct,
    Text,
    mismatch,
)
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.violation import Report

Schema = Mapping[str, Any]
"""A decoded schema. `items` is a schema, or a list of schemas that is never structural."""

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
VALIDATIONS = "x-kubernetes-validations"

TYPES = ("array", "boolean", "integer", "number", "object", "string")
"""The types of OpenAPI v3, in the server's order."""


class _SchemaOrArray:
    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if isinstance(raw, dict):
            return SCHEMA.decode(raw, path, report)
        if isinstance(raw, list):
            return _SCHEMAS.decode(raw, path, report)
        # The server's decoder silently ignores a scalar here.
        return []


class _SchemaOrFlag:
    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if isinstance(raw, dict):
            return SCHEMA.decode(raw, path, report)
        if isinstance(raw, bool):
            return raw
        return mismatch(raw, "a schema or a boolean", path, report)


class _SchemaOrNames:
    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if isinstance(raw, dict):
            return SCHEMA.decode(raw, path, report)
        if isinstance(raw, list):
            return _TEXTS.decode(raw, path, report)
        return ABSENT


_FIELDS: dict[str, FieldType] = {}
SCHEMA = Struct(_FIELDS)
_SCHEMAS = ListOf(SCHEMA, {})
_TEXTS = ListOf(Text(), "")
_TEXT, _FLAG, _INTEGER, _NUMBER = Text(), Flag(), Integer(), Number()
_OPTIONAL_TEXT, _OPTIONAL_FLAG = Text(pointer=True), Flag(pointer=True)

_RULE = Struct(
    {
        "rule": _TEXT,
        "message": _TEXT,
        "messageExpression": _TEXT,
        "reason": _OPTIONAL_TEXT,
        "fieldPath": _TEXT,
        "optionalOldSelf": _OPTIONAL_FLAG,
    }
)

# In the order of the server's own type: one check stops at the first invalid field.
_FIELDS |= {
    "id": _TEXT,
    "$schema": _TEXT,
    "$ref": _OPTIONAL_TEXT,
    "description": _TEXT,
    "type": _TEXT,
    "nullable": _FLAG,
    "format": _TEXT,
    "title": _TEXT,
    "default": Anything(),
    "maximum": _NUMBER,
    "exclusiveMaximum": _FLAG,
    "minimum": _NUMBER,
    "exclusiveMinimum": _FLAG,
    "maxLength": _INTEGER,
    "minLength": _INTEGER,
    "pattern": _TEXT,
    "maxItems": _INTEGER,
    "minItems": _INTEGER,
    "uniqueItems": _FLAG,
    "multipleOf": _NUMBER,
    "enum": ListOf(Anything(), None),
    "maxProperties": _INTEGER,
    "minProperties": _INTEGER,
    "required": _TEXTS,
    "items": _SchemaOrArray(),
    "allOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "not": SCHEMA,
    "properties": MapOf(SCHEMA, {}),
    "additionalProperties": _SchemaOrFlag(),
    "patternProperties": MapOf(SCHEMA, {}),
    "dependencies": MapOf(_SchemaOrNames(), []),
    "additionalItems": _SchemaOrFlag(),
    "definitions": MapOf(SCHEMA, {}),
    "externalDocs": Struct({"description": _TEXT, "url": _TEXT}),
    "example": Anything(),
    PRESERVE: _OPTIONAL_FLAG,
    EMBEDDED: _FLAG,
    INT_OR_STRING: _FLAG,
    LIST_MAP_KEYS: _TEXTS,
    LIST_TYPE: _OPTIONAL_TEXT,
    MAP_TYPE: _OPTIONAL_TEXT,
    VALIDATIONS: ListOf(_RULE, {}),
}

FIELD_ORDER = tuple(_FIELDS)


def subschemas(schema: Schema) -> list[Schema]:
    """All schemas directly inside a schema, at any keyword."""
    found: list[Schema] = []
    for key in ("allOf", "anyOf", "oneOf"):
        found.extend(schema.get(key, ()))
    for key in ("properties", "patternProperties", "definitions", "dependencies"):
        found.extend(each for each in schema.get(key, {}).values() if isinstance(each, dict))
    for key in ("not", "additionalProperties", "additionalItems", "items"):
        each = schema.get(key)
        if isinstance(each, dict):
            found.append(each)
        elif isinstance(each, list):
            found.extend(each)
    return found


_SCALARS = ("string", "integer", "number", "boolean")
_PLAIN = frozenset(
    (
        *("type", "format", "title", "description", "externalDocs", "example", "enum", "nullable"),
        *("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
        *("maxLength", "minLength", "pattern"),
    )
)


def is_plain(schema: Schema) -> bool:
    """Whether a node is a scalar with nothing that the API server's rules are about, except a pattern.

    Most nodes are, and the walks over a schema need not look at these one by one.
    """
    return _PLAIN.issuperset(schema) and schema.get("type") in _SCALARS


_UNSUPPORTED = frozenset(
    ("id", "patternProperties", "definitions", "additionalItems", "dependencies", "$ref")
)


def unsupported_keywords(schema: Schema) -> list[str]:
    """The keywords of a node that make the API server refuse it because they leave its fields open."""
    if _UNSUPPORTED.isdisjoint(schema):
        return []
    found = [key for key in ("id", "patternProperties", "definitions") if schema.get(key)]
    return [*found, *(key for key in ("additionalItems", "dependencies", "$ref") if key in schema)]


_EMPTY_IS_NONE = frozenset(
    (
        "enum",
        "required",
        "allOf",
        "oneOf",
        "anyOf",
        "properties",
        "patternProperties",
        "dependencies",
        "definitions",
        LIST_MAP_KEYS,
        VALIDATIONS,
    )
)
_JSON_FIELDS = frozenset(("default", "example", "enum"))


def equal(one: Schema, other: Schema) -> bool:
    """Whether the API server considers two schemas equal: an empty list or map equals an absent one."""
    keys = {
        key for key in one.keys() | other.keys() if not (key in _EMPTY_IS_NONE and _none(one, other, key))
    }
    for key in keys:
        if key not in one or key not in other:
            return False
        left, right = one[key], other[key]
        if key in _JSON_FIELDS:
            same = _same_json(left, right)
        elif key in ("properties", "patternProperties", "dependencies", "definitions"):
            same = left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
        elif isinstance(left, list) and isinstance(right, list):
            same = len(left) == len(right) and all(map(_same, left, right))
        else:
            same = _same(left, right)
        if not same:
            return False
    return True


def _none(one: Schema, other: Schema, key: str) -> bool:
    return not one.get(key) and not other.get(key)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return equal(left, right)
    return type(left) is type(right) and bool(left == right)


def _same_json(left: Any, right: Any) -> bool:
    """JSON equality in which 1, 1.0 and true are three values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same_json(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same_json, left, right))
    return bool(left == right)
