"""Arrays."""

import re

from crdkeeper.apiserver.schema.props import LIST_TYPE, VALIDATIONS, Schema
from crdkeeper.core.lint.borrowed import is_borrowed
from crdkeeper.core.lint.conventions.limits import UNBOUNDED
from crdkeeper.core.lint.conventions.lists import (
    LIST_OF_NAMED,
    LIST_TYPE_MISSING,
    OPTIONAL_ENTRIES,
    SET_OF_OBJECTS,
)
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace

_COMPOSED = ("array", "object")
_PARTS = frozenset(("key", "kind", "namespace"))
_UNIQUE = re.compile(r"\b(?:unique|uniquely|distinct)\b", re.IGNORECASE)
_OF_OTHERS = re.compile(r"(?<![^.])[^.]*\b(?:in|of|within) each\b[^.]*", re.IGNORECASE)
"""A sentence about the names of what is inside the entries.

It is looked for only where one begins: from each character on, that takes quadratic time.
"""
_NAME = re.compile(r"\.name\b")
_COMPARING = ("exists_one(", "filter(", "map(")
"""Macros of CEL with which a rule compares the names of entries."""
_EITHER = ("anyOf", "oneOf", "minProperties", VALIDATIONS)


def check_array(place: SchemaPlace, found: Findings) -> None:
    """Check an array."""
    schema = place.schema
    items = schema.get("items")
    if schema.get(LIST_TYPE) is None and not (place.name == "conditions" and place.area == "status"):
        if isinstance(items, dict) and place.area != "status" and _are_named(items, schema):
            message = "names are to be unique, but the schema accepts two entries with the same name"
            place.report(found, LIST_OF_NAMED, message)
        else:
            place.report(found, LIST_TYPE_MISSING, "has no x-kubernetes-list-type")
    if schema.get(LIST_TYPE) == "set" and isinstance(items, dict) and items.get("type") in _COMPOSED:
        place.report(found, SET_OF_OBJECTS, f"is a set of items of type {items['type']}", LIST_TYPE)
    if isinstance(items, dict) and place.area != "status" and _may_be_empty(items):
        place.report(found, OPTIONAL_ENTRIES, "has entries of which no field is required", "items")
    if "maxItems" not in schema:
        place.report(found, UNBOUNDED, "has no maxItems")


def _are_named(items: Schema, list_: Schema) -> bool:
    """Whether a required `name` identifies the items, according to descriptions, and no rule checks that.

    A name alone proves nothing: it may be that of something else, to which several items refer.
    """
    properties = items.get("properties") or {}
    name = properties.get("name") or {}
    if "name" not in (items.get("required") or ()) or name.get("type") != "string":
        return False
    if not _PARTS.isdisjoint(properties) or is_borrowed(properties):
        return False
    rules = (str(each.get("rule")) for each in list_.get(VALIDATIONS) or ())
    if any(_NAME.search(each) and any(macro in each for macro in _COMPARING) for each in rules):
        return False
    texts = (name.get("description"), list_.get("description"))
    return any(_UNIQUE.search(_OF_OTHERS.sub("", each or "")) for each in texts)


def _may_be_empty(items: Schema) -> bool:
    """Whether an object without any field is a valid entry of an author's own type."""
    properties = items.get("properties")
    if not properties or is_borrowed(properties) or any(each in items for each in _EITHER):
        return False
    return not items.get("required")
