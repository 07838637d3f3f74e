"""A decoded schema in OpenAPI v3.

As in Structural.ToKubeOpenAPI of k8s.io/apiextensions-apiserver, after Unfold: empty fields are left out,
integral floats lose their dot, and int-or-string is also written as anyOf.
"""

from typing import Any

from crdkeeper.apiserver.objects.jsonvalue import stored
from crdkeeper.apiserver.schema.props import INT_OR_STRING, LIST_MAP_KEYS, VALIDATIONS, Schema
from crdkeeper.apiserver.schema.structural import is_int_or_string

Published = dict[str, Any]
"""A schema of OpenAPI; its receiver may change it."""

_JUNCTORS = ("allOf", "oneOf", "anyOf")
_BELOW = frozenset((*_JUNCTORS, "not", "items", "properties", "additionalProperties"))
_EMPTY_OR_REFUSED = frozenset(
    ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
)
"""Keywords that a structural schema cannot contain: if not rejected, they have no effect."""
_OMITTED_IF_EMPTY = frozenset(("required", "enum", "example", LIST_MAP_KEYS, VALIDATIONS))
_VALUES = frozenset(("default", "enum", "example", "maximum", "minimum", "multipleOf"))


def rendered(schema: Schema) -> Published:
    """The node and everything below it. Raises RecursionError if schemas are nested too deeply."""
    shown = _restrictions(schema)
    additional = schema.get("additionalProperties")
    if additional is not None:
        shown["additionalProperties"] = rendered(additional) if isinstance(additional, dict) else additional
    items, properties = schema.get("items"), schema.get("properties")
    if isinstance(items, dict):
        shown["items"] = rendered(items)
    if properties:
        shown["properties"] = {name: rendered(each) for name, each in properties.items()}
    if schema.get(INT_OR_STRING):
        _unfold(shown, schema)
    return shown


def _restriction(schema: Schema) -> Published:
    """A schema inside a junctor: its additionalProperties are not published."""
    shown = _restrictions(schema)
    items, properties = schema.get("items"), schema.get("properties")
    if isinstance(items, dict):
        shown["items"] = _restriction(items)
    if properties:
        shown["properties"] = {name: _restriction(each) for name, each in properties.items()}
    return shown


def _restrictions(schema: Schema) -> Published:
    shown = {key: _shown(key, value) for key, value in schema.items() if _is_shown(key, value)}
    for key in _JUNCTORS:
        if schema.get(key):
            shown[key] = [_restriction(each) for each in schema[key]]
    if "not" in schema:
        shown["not"] = _restriction(schema["not"])
    return shown


def _is_shown(key: str, value: Any) -> bool:
    if key in _BELOW or key in _EMPTY_OR_REFUSED:
        return False
    return not (key in _OMITTED_IF_EMPTY and value in ("", [], {}))


def _shown(key: str, value: Any) -> Any:
    if key in _VALUES:
        return stored(value)
    if key == VALIDATIONS:
        return [{"rule": "", **{name: each for name, each in rule.items() if each != ""}} for rule in value]
    return list(value) if isinstance(value, list) else value


def _unfold(shown: Published, schema: Schema) -> None:
    any_of, all_of = schema.get("anyOf", ()), schema.get("allOf", ())
    if is_int_or_string(any_of) or (all_of and is_int_or_string(all_of[0].get("anyOf", ()))):
        return
    types = [{"type": "integer"}, {"type": "string"}]
    if not any_of:
        shown["anyOf"] = types
    else:
        shown["allOf"] = [{"anyOf": types}, *shown.get("allOf", ())]
