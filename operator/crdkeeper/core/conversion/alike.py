"""Whether two schemas allow values of the same form, so that a value can be copied from one to the other."""

from collections.abc import Iterator, Mapping
from typing import Final

from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE, Schema
from crdkeeper.core.conversion.fieldpaths import Steps
from crdkeeper.core.conversion.values import strictly

_FORM: Final = ("type", PRESERVE, EMBEDDED, INT_OR_STRING)
_DEEPEST: Final = 16


def difference(one: Schema, other: Schema) -> str | None:
    """The difference between two schemas, for people; None if values may be copied in both directions.

    Bounds, patterns, rules and defaults do not count: the API server checks them when an object is written.
    """
    if found := _form_difference(one, other):
        return found
    enums = [{strictly(value) for value in schema.get("enum") or ()} for schema in (one, other)]
    if enums[0] != enums[1]:
        return "the values of enum differ"
    properties = one.get("properties") or {}, other.get("properties") or {}
    for name in sorted(properties[0].keys() ^ properties[1].keys()):
        return f"only the {'hub' if name in properties[0] else 'spoke'} has the field {name} in it"
    for name, each in properties[0].items():
        if found := difference(each, properties[1][name]):
            return f"in {name} {found}"
    for key in ("items", "additionalProperties"):
        inner = one.get(key), other.get(key)
        if isinstance(inner[0], Mapping) and isinstance(inner[1], Mapping):
            if found := difference(inner[0], inner[1]):
                return f"in {key} {found}"
        elif isinstance(inner[0], Mapping) or isinstance(inner[1], Mapping):
            return f"only the {'hub' if isinstance(inner[0], Mapping) else 'spoke'} has {key}"
    return None


def _form_difference(one: Schema, other: Schema) -> str | None:
    for key in _FORM:
        if (one.get(key) or None) != (other.get(key) or None):
            name = "types" if key == "type" else key
            return f"the {name} differ ({one.get(key)} in the hub, {other.get(key)} in the spoke)"
    return None


def both_objects(one: Schema, other: Schema) -> bool:
    """Whether both are objects with fields, so that each field can be compared by itself."""
    maps = isinstance(one.get("additionalProperties"), Mapping) or isinstance(
        other.get("additionalProperties"), Mapping
    )
    return one.get("type") == "object" and not maps and _form_difference(one, other) is None


def fields(schema: Schema, at: Steps = ()) -> Iterator[Steps]:
    """All fields of an object and of the objects in it, except those in lists and maps."""
    for name, each in (schema.get("properties") or {}).items():
        if at or name not in ("apiVersion", "kind", "metadata"):
            yield (*at, name)
            if isinstance(each, Mapping) and len(at) < _DEEPEST:
                yield from fields(each, (*at, name))
