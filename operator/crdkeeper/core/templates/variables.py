"""What expressions see of an object: its type by its schema, and its value.

An object of a kind whose schema is not known has the type dyn: everything can be read, and nothing is checked
before it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.cel.expressions import DYN, Type, declare, list_of, unchecked_value, whole_converter
from crdkeeper.apiserver.cel.values.values import Value
from crdkeeper.apiserver.schema.props import PRESERVE, Schema

_TEXT: Final[Schema] = {"type": "string"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_FLAG: Final[Schema] = {"type": "boolean"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_OWNER: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
        **dict.fromkeys(("controller", "blockOwnerDeletion"), _FLAG),
    },
}
METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "generation": {"type": "integer"},
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": _OWNER},
    },
}
"""Metadata of every object, as expressions read it."""

_OF_EVERY_OBJECT: Final = {"apiVersion", "kind", "metadata"}


@dataclass(frozen=True, slots=True)
class TemplateVariable:
    """A variable of expressions."""

    type: Type
    schema: Schema | None
    """None for one whose type is not of a schema of its own."""
    convert: Callable[[Any], Value]
    """Makes its value of an object; of a list of objects for a collection."""


def of_object(name: str, schema: Schema | None) -> TemplateVariable:
    """The variable for an object of a schema, or of an unknown one; all of its metadata can be read."""
    if schema is not None and not _is_open(schema):
        schema = readable(schema)
        declared = declare(schema, root=False, whole=True)
        if declared is not None:
            return TemplateVariable(declared.type(name), schema, whole_converter(schema))
    return TemplateVariable(DYN, None, unchecked_value)


def _is_open(schema: Schema) -> bool:
    """Whether it allows all fields and declares none, beside those of every object."""
    return bool(schema.get(PRESERVE)) and not (schema.get("properties") or {}).keys() - _OF_EVERY_OBJECT


def of_list(variable: TemplateVariable) -> TemplateVariable:
    """The variable for a list of such objects."""

    def convert(data: Any) -> Value:
        return [variable.convert(each) for each in data]

    return TemplateVariable(list_of(variable.type), None, convert)


def readable(schema: Schema) -> Schema:
    """The schema of an object with the fields that every object has."""
    properties = {
        **(schema.get("properties") or {}),
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": METADATA,
    }
    return {**schema, "type": "object", "properties": properties}
