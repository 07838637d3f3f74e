"""Arrays."""

from crdkeeper.apiserver.schema.props import LIST_TYPE, Schema
from crdkeeper.core.lint.conventions.limits import UNBOUNDED
from crdkeeper.core.lint.conventions.lists import LIST_OF_NAMED, LIST_TYPE_MISSING, SET_OF_OBJECTS
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace

_COMPOSED = ("array", "object")
_PARTS = frozenset(("key", "kind", "namespace"))


def check_array(place: SchemaPlace, found: Findings) -> None:
    """What holds for arrays."""
    schema = place.schema
    items = schema.get("items")
    if schema.get(LIST_TYPE) is None and not (place.name == "conditions" and place.area == "status"):
        if isinstance(items, dict) and place.area != "status" and _are_named(items):
            message = "is a list of objects that each have a name, without x-kubernetes-list-type"
            place.report(found, LIST_OF_NAMED, message)
        else:
            place.report(found, LIST_TYPE_MISSING, "has no x-kubernetes-list-type")
    if schema.get(LIST_TYPE) == "set" and isinstance(items, dict) and items.get("type") in _COMPOSED:
        place.report(found, SET_OF_OBJECTS, f"is a set of items of type {items['type']}", LIST_TYPE)
    if "maxItems" not in schema:
        place.report(found, UNBOUNDED, "has no maxItems")


def _are_named(items: Schema) -> bool:
    """Whether a required `name` tells one item from another; references have several parts."""
    properties = items.get("properties") or {}
    named = "name" in (items.get("required") or ()) and (properties.get("name") or {}).get("type") == "string"
    return named and _PARTS.isdisjoint(properties)
