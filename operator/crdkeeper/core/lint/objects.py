"""Fields in general, objects and maps."""

import re

from crdkeeper.apiserver.schema.props import EMBEDDED, LIST_MAP_KEYS, PRESERVE
from crdkeeper.core.lint.conventions.limits import UNBOUNDED
from crdkeeper.core.lint.conventions.objects import (
    EMPTY_OBJECT,
    OPEN_SCHEMA,
    REQUIRED_UNDEFINED,
    TEMPLATE_METADATA,
)
from crdkeeper.core.lint.conventions.style import (
    DESCRIPTION,
    FIELD_NAME,
    MAP_OF_OBJECTS,
    NULLABLE,
    REFERENCE_NAME,
    REFERENCE_SHAPE,
    REQUIRED_DEFAULT,
    TIME_NAME,
)
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace

_CAMEL = re.compile("[a-z][A-Za-z0-9]*").fullmatch
_REFERENCES = ("Reference", "References")
_TIMESTAMPS = ("Timestamp", "TimeStamp")
_SPEC_AND_STATUS = frozenset(("spec", "status"))
_IMPLICIT = frozenset(("apiVersion", "kind", "metadata"))


def check_field(place: SchemaPlace, found: Findings) -> None:
    """Check a field of any type."""
    schema, name = place.schema, place.name
    if name:
        if not _CAMEL(name):
            place.report(found, FIELD_NAME, f"{name} is not lowerCamelCase")
        if name.endswith(_REFERENCES):
            place.report(found, REFERENCE_NAME, f"{name} is not named ...Ref")
        elif name.endswith(_TIMESTAMPS):
            place.report(found, TIME_NAME, f"{name} is not named ...Time")
        if not schema.get("description"):
            place.report(found, DESCRIPTION, "has no description")
        if place.required and "default" in schema and not _is_list_key(place):
            place.report(found, REQUIRED_DEFAULT, "is required and has a default", "default")
    if schema.get("nullable"):
        place.report(found, NULLABLE, "is nullable", "nullable")
    if schema.get(PRESERVE) and (place.parent is None or (place.parent.parent is None and _top(place))):
        place.report(found, OPEN_SCHEMA, "keeps all unknown fields", PRESERVE)


def _top(place: SchemaPlace) -> bool:
    return place.name in _SPEC_AND_STATUS


def _is_list_key(place: SchemaPlace) -> bool:
    owner = place.parent.parent if place.parent is not None else None
    return owner is not None and place.name in (owner.schema.get(LIST_MAP_KEYS) or ())


def check_object(place: SchemaPlace, found: Findings) -> None:
    """Check an object."""
    schema = place.schema
    properties = schema.get("properties")
    if not properties:
        if schema.get("additionalProperties", False) is not False:
            _check_map(place, found)
        elif not schema.get(PRESERVE) and not schema.get(EMBEDDED):
            _check_empty(place, found)
            _check_required(place, found)
        return
    if not schema.get(PRESERVE):
        _check_required(place, found)
    if place.name.endswith("Ref") and "name" not in properties and place.area != "status":
        place.report(found, REFERENCE_SHAPE, "is a reference without a name")
    template = properties.get("metadata")
    if (
        template is not None
        and "spec" in properties
        and place.parent is not None
        and place.area != "status"
        and not schema.get(EMBEDDED)
    ):
        metadata = place.child("metadata")
        if metadata is not None and _is_empty(metadata):
            message = "has no properties: labels and annotations of the template are pruned"
            metadata.report(found, TEMPLATE_METADATA, message)


def _is_empty(place: SchemaPlace) -> bool:
    schema = place.schema
    return (
        not (schema.get("properties") or schema.get("additionalProperties") or schema.get(PRESERVE))
        and schema.get("type") == "object"
    )


def _check_empty(place: SchemaPlace, found: Findings) -> None:
    parent = place.parent
    if parent is None:
        return
    if place.name == "metadata" and "spec" in (parent.schema.get("properties") or {}):
        # The finding about templates is more specific.
        return
    place.report(found, EMPTY_OBJECT, "has no properties: all that is written in it is pruned")


def _check_map(place: SchemaPlace, found: Findings) -> None:
    values = place.schema["additionalProperties"]
    if isinstance(values, dict) and values.get("type") == "object":
        place.report(found, MAP_OF_OBJECTS, "is a map of objects", "additionalProperties")
    if "maxProperties" not in place.schema:
        place.report(found, UNBOUNDED, "has no maxProperties")


def _check_required(place: SchemaPlace, found: Findings) -> None:
    schema = place.schema
    known = schema.get("properties") or {}
    implicit = _IMPLICIT if place.parent is None or schema.get(EMBEDDED) else ()
    for i, name in enumerate(schema.get("required") or ()):
        if name not in known and name not in implicit:
            message = f"requires {name}, which it does not define"
            place.report(found, REQUIRED_UNDEFINED, message, "required", i)
    for key in ("allOf", "anyOf", "oneOf"):
        for i, each in enumerate(schema.get(key) or ()):
            for j, name in enumerate((each or {}).get("required") or ()):
                if name not in known and name not in implicit:
                    message = f"requires {name} in {key}, which it does not define"
                    place.report(found, REQUIRED_UNDEFINED, message, key, i, "required", j)
