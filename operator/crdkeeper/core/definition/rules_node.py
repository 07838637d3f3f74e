"""The rules of each node of a schema beyond its being structural.

Nodes inside of allOf, anyOf, oneOf, not and definitions are held to the same rules.
"""

from dataclasses import dataclass, replace
from typing import Any

from crdkeeper.core.definition.rules_lists import check_list, check_map_type
from crdkeeper.core.definition.rules_validations import check_validations
from crdkeeper.core.schema import rules
from crdkeeper.core.schema.fieldpath import Path
from crdkeeper.core.schema.props import EMBEDDED, PRESERVE, VALIDATIONS, Schema
from crdkeeper.core.schema.violation import Report

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = frozenset(("metadata", "kind", "apiVersion"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands, as far as rules depend on it."""

    root: bool = False
    cel: bool = False
    """Whether the server compiles expressions here."""
    in_meta: bool = False
    no_default: str | None = None
    """Why no default may stand here."""


class NodeChecks:
    """Walks a schema and reports on each node."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def check(self, schema: Schema, path: Path, place: Place) -> None:
        """Reports on a node and all below it."""
        report = self._report
        before = len(report.violations)
        _check_keywords(schema, path, place, report)
        inner = replace(place, root=False) if place.root else place
        if "additionalProperties" in schema:
            self._additional(schema, path, inner)
        properties = schema.get("properties")
        if properties:
            below = path.child("properties")
            meta = place.root or schema.get(EMBEDDED)
            for name, each in properties.items():
                here = inner
                if meta and name in _META:
                    here = replace(inner, in_meta=True)
                    if place.root:
                        here = replace(here, no_default=f"in top-level {name}")
                self.check(each, below.key(name), here)
        self._junctors(schema, path, replace(inner, cel=False) if inner.cel else inner)
        self._items(schema, path, inner)
        if schema.get(PRESERVE) is False:
            report.invalid(rules.PRESERVE_FALSE, path.child(PRESERVE), False, "must be true or undefined")
        check_map_type(schema, path, report)
        check_list(schema, path, report)
        if schema.get(VALIDATIONS):
            check_validations(schema, path, report)
            if place.cel and len(report.violations) == before:
                self._leave_expressions(schema, path)

    def _additional(self, schema: Schema, path: Path, place: Place) -> None:
        values = schema["additionalProperties"]
        at = path.child("additionalProperties")
        if schema.get("properties") and values is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            self._report.forbidden(rules.ADDITIONAL_PROPERTIES, at, detail)
        if place.in_meta:
            place = replace(place, no_default="inside additionalProperties applying to object metadata")
        if isinstance(values, dict):
            self.check(values, at, place)

    def _junctors(self, schema: Schema, path: Path, place: Place) -> None:
        if "not" in schema:
            self.check(schema["not"], path.child("not"), place)
        for key in ("allOf", "oneOf", "anyOf"):
            for i, each in enumerate(schema.get(key, ())):
                self.check(each, path.child(key).index(i), place)
        for key in ("definitions", "dependencies"):
            for name, each in schema.get(key, {}).items():
                if isinstance(each, dict):
                    self.check(each, path.child(key).key(name), place)

    def _items(self, schema: Schema, path: Path, place: Place) -> None:
        items: Any = schema.get("items")
        at = path.child("items")
        if isinstance(items, dict):
            self.check(items, at, place)
        elif items:
            for i, each in enumerate(items):
                self.check(each, at.index(i), place)

    def _leave_expressions(self, schema: Schema, path: Path) -> None:
        for i, each in enumerate(schema[VALIDATIONS]):
            at = path.child(VALIDATIONS).index(i)
            self._report.leave(rules.CEL, at.child("rule"), "the expression is not compiled")
            if each.get("messageExpression"):
                self._report.leave(rules.CEL, at.child("messageExpression"), "the expression is not compiled")


def _check_keywords(schema: Schema, path: Path, place: Place, report: Report) -> None:
    type_ = schema.get("type", "")
    if type_ and type_ not in _TYPES:
        report.not_supported(rules.TYPE, path.child("type"), type_, _TYPES)
        if type_ == "null":
            detail = "type cannot be set to null, use nullable as an alternative"
            report.forbidden(rules.TYPE, path.child("type"), detail)
    if place.no_default is not None and "default" in schema:
        report.forbidden(rules.DEFAULT_PLACE, path.child("default"), f"must not be set {place.no_default}")
    if place.in_meta and schema.get(EMBEDDED):
        detail = "must not be used inside of resource meta"
        report.forbidden(rules.EMBEDDED_RESOURCE, path.child(EMBEDDED), detail)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        report.forbidden(rules.UNIQUE_ITEMS, path.child("uniqueItems"), detail)
    for key in ("id", "patternProperties", "definitions"):
        if schema.get(key):
            report.forbidden(rules.UNSUPPORTED_KEYWORD, path.child(key), f"{key} is not supported")
    for key in ("additionalItems", "dependencies", "$ref"):
        if key in schema:
            report.forbidden(rules.UNSUPPORTED_KEYWORD, path.child(key), f"{key} is not supported")
    if isinstance(schema.get("items"), list) and schema["items"]:
        detail = "items must be a schema object and not an array"
        report.forbidden(rules.ITEMS, path.child("items"), detail)
