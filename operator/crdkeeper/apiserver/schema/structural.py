"""Whether a schema is structural, and if not, why: with the API server's messages.

Conversion can fail as a whole (`conversion_error`). What can be converted is checked node by node
(`violations`): each field has a type outside allOf, anyOf, oneOf and not, which may only restrict values of
fields that are defined outside them.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.nested import Exempt, check_value_validation
from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE, Schema, is_plain
from crdkeeper.apiserver.schema.violation import Report


def conversion_error(schema: Schema, known: dict[int, str | None] | None = None) -> str | None:
    """Why this cannot be converted to a structural schema; None if it can.

    `known` has the answers for nodes of one schema by their id, and gets more: none is looked at again.
    """
    if known is not None and id(schema) in known:
        return known[id(schema)]
    error = None if _SUSPECT.isdisjoint(schema) else _own_conversion_error(schema)
    if error is None:
        for each in _converted(schema):
            error = None if _RELEVANT.isdisjoint(each) else conversion_error(each, known)
            if error is not None:
                break
    if known is not None:
        known[id(schema)] = error
    return error


def _own_conversion_error(schema: Schema) -> str | None:
    for keyword, label in _UNSUPPORTED:
        if schema.get(keyword):
            return f"OpenAPIV3Schema '{label}' is not supported"
    if "additionalItems" in schema:
        return "OpenAPIV3Schema 'additionalItems' is not supported"
    if schema.get("definitions"):
        return "OpenAPIV3Schema 'definitions' is not supported"
    if schema.get(PRESERVE) is False:
        return f"internal error: '{PRESERVE}' must be true or undefined"
    items = schema.get("items")
    if isinstance(items, list) and items:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return None


_UNSUPPORTED = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
)
_SUSPECT = frozenset((*dict(_UNSUPPORTED), "additionalItems", "definitions", PRESERVE, "items"))
"""The keywords that can prevent the conversion; most nodes have none of them."""
_PARTS = frozenset(("not", "items", "additionalProperties", "allOf", "anyOf", "oneOf", "properties"))
_RELEVANT = _SUSPECT | _PARTS


def _converted(schema: Schema) -> list[Schema]:
    found: list[Schema] = []
    if _PARTS.isdisjoint(schema):
        return found
    for key in ("not", "items", "additionalProperties"):
        each = schema.get(key)
        if isinstance(each, dict):
            found.append(each)
    for key in ("allOf", "anyOf", "oneOf"):
        found.extend(schema.get(key, ()))
    found.extend(schema.get("properties", {}).values())
    return found


def violations(schema: Schema, path: Path, report: Report) -> None:
    """Report everything that keeps a schema, which can be converted, from being structural."""
    _check(schema, _Level.ROOT, path, report)
    _complete_junctors(schema, schema, path, path, report)


class _Level(Enum):
    """The position of a node, with the server's error there for a missing type."""

    ROOT = "must not be empty at the root"
    ITEM = "must not be empty for specified array items"
    FIELD = "must not be empty for specified object fields"


_RESTRICTIONS = frozenset(("pattern", "not", "allOf", "anyOf", "oneOf"))


def _check(schema: Schema, level: _Level, path: Path, report: Report) -> None:
    items = schema.get("items")
    if isinstance(items, dict):
        _check(items, _Level.ITEM, path.child("items"), report)
    elif schema.get("type") == "array":
        report.required(rules.ITEMS, path.child("items"), "must be specified")
    properties = schema.get("properties") or {}
    if properties:
        below = path.child("properties")
        for name, each in properties.items():
            if not is_plain(each):
                _check(each, _Level.FIELD, below.key(name), report)
            elif "pattern" in each:
                check_value_validation(each, below.key(name), report)
    if "additionalProperties" in schema:
        at = path.child("additionalProperties")
        if level is _Level.ROOT:
            report.forbidden(rules.ADDITIONAL_PROPERTIES, at, "must not be used at the root")
        if isinstance(schema["additionalProperties"], dict):
            _check(schema["additionalProperties"], _Level.FIELD, at, report)
    if not _RESTRICTIONS.isdisjoint(schema):
        check_value_validation(schema, path, report, exempt=_exempt(schema))
    _check_extensions(schema, path, report)
    _check_type(schema, level, path, report)
    if level is _Level.ROOT or schema.get(EMBEDDED):
        _check_type_meta(properties, path, report)
    if "metadata" in properties:
        _check_metadata(properties["metadata"], schema, level, path, report)


def _check_extensions(schema: Schema, path: Path, report: Report) -> None:
    embedded = schema.get(EMBEDDED)
    if schema.get(INT_OR_STRING):
        for key in (PRESERVE, EMBEDDED):
            if schema.get(key):
                detail = f"must be false if {INT_OR_STRING} is true"
                report.invalid(rules.INT_OR_STRING, path.child(key), True, detail)
    if embedded and "additionalProperties" in schema:
        detail = f"must not be used if {EMBEDDED} is set"
        report.forbidden(rules.EMBEDDED_RESOURCE, path.child("additionalProperties"), detail)
    if embedded and not schema.get(PRESERVE) and not schema.get("properties"):
        detail = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        report.required(rules.EMBEDDED_RESOURCE, path.child("properties"), detail)


def _check_type(schema: Schema, level: _Level, path: Path, report: Report) -> None:
    type_ = schema.get("type", "")
    if schema.get(EMBEDDED) and type_ != "object":
        detail = f"must be object if {EMBEDDED} is true"
        if type_:
            report.invalid(rules.EMBEDDED_RESOURCE, path.child("type"), type_, detail)
        else:
            report.required(rules.EMBEDDED_RESOURCE, path.child("type"), detail)
    elif not type_ and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        report.required(rules.TYPE, path.child("type"), level.value)
    if level is _Level.ROOT and type_ and type_ != "object":
        report.invalid(rules.TYPE, path.child("type"), type_, "must be object at the root")


def _check_type_meta(properties: Mapping[str, Schema], path: Path, report: Report) -> None:
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type", "") != "string":
            at = path.child("properties").key(name).child("type")
            report.invalid(rules.METADATA_SCHEMA, at, properties[name].get("type", ""), "must be string")


def _check_metadata(metadata: Schema, owner: Schema, level: _Level, path: Path, report: Report) -> None:
    at = path.child("properties").key("metadata")
    root = level is _Level.ROOT
    if (root or owner.get(EMBEDDED)) and metadata.get("type", "") != "object":
        report.invalid(rules.METADATA_SCHEMA, at.child("type"), metadata.get("type", ""), "must be object")
    if root and not _only_names(metadata):
        detail = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        report.forbidden(rules.METADATA_SCHEMA, at, detail)


def _only_names(metadata: Schema) -> bool:
    for key, value in metadata.items():
        if key in ("type", "default") or _leaves_no_trace(key, value):
            continue
        if key != "properties" or not set(value) <= {"name", "generateName"}:
            return False
    return True


_LOST_IF_EMPTY = frozenset(
    ("enum", "allOf", "anyOf", "oneOf", "items", "$ref", "definitions", "patternProperties", "dependencies")
)


def _leaves_no_trace(key: str, value: Any) -> bool:
    """Whether a keyword with this empty value is missing from the server's structural form.

    When it compares whole schemas, `enum: []` equals an absent enum, but `required: []` does not.
    """
    return key in _LOST_IF_EMPTY and value in ([], "", {}) and (key != "items" or value == [])


def _exempt(schema: Schema) -> Exempt:
    """The two notations for an integer or string, in which a type is allowed inside a junctor."""
    any_of, all_of = schema.get("anyOf", ()), schema.get("allOf", ())
    return Exempt(
        any_of=is_int_or_string(any_of),
        first_all_of=bool(all_of) and is_int_or_string(all_of[0].get("anyOf", ())),
    )


def is_int_or_string(any_of: Any) -> bool:
    """Whether this anyOf contains only integer or string, in that order."""
    return len(any_of) == 2 and _is_bare_type(any_of[0], "integer") and _is_bare_type(any_of[1], "string")


def _is_bare_type(schema: Schema, type_: str) -> bool:
    if schema.get("type") != type_:
        return False
    return all(
        key == "type" or _leaves_no_trace(key, value) or (key == "additionalProperties" and value is False)
        for key, value in schema.items()
    )


def _complete(nested: Schema, schema: Schema | None, at: Path, path: Path, report: Report) -> None:
    """Report what a junctor refers to that the structural schema does not define."""
    if schema is None:
        report.required(rules.INCOMPLETE, at, f"because it is defined in {path}")
        return
    _complete_junctors(nested, schema, at, path, report)
    items = nested.get("items")
    if isinstance(items, dict):
        own = schema.get("items")
        _complete(
            items, own if isinstance(own, dict) else None, at.child("items"), path.child("items"), report
        )
    defined = schema.get("properties") or {}
    for name, each in nested.get("properties", {}).items():
        _complete(
            each,
            defined.get(name),
            at.child("properties").key(name),
            path.child("properties").key(name),
            report,
        )


def _complete_junctors(nested: Schema, schema: Schema, at: Path, path: Path, report: Report) -> None:
    if "not" in nested:
        _complete(nested["not"], schema, at, path.child("not"), report)
    for key in ("allOf", "anyOf", "oneOf"):
        for i, each in enumerate(nested.get(key, ())):
            _complete(each, schema, at, path.child(key).index(i), report)
