"""Conventions on how fields are named, shaped and described in the Kubernetes API."""

from typing import Final

from crdkeeper.core.lint.convention import info, warning

_GROUP: Final = "style"
ABOUT: Final = "how fields are named, shaped and described in the Kubernetes API"

FIELD_NAME = info(
    _GROUP,
    "field-name",
    "Fields are lowerCamelCase throughout the Kubernetes API; people and code generators rely on it.",
    "Rename the field in the next version.",
    renames=True,
)
DESCRIPTION = info(
    _GROUP,
    "description",
    "kubectl explain shows no description for the field.",
    "Describe its meaning, its unit, and what happens if it is not set.",
)
REFERENCE_SHAPE = info(
    _GROUP,
    "reference-shape",
    "A field named ...Ref is an object that references another one. A field that holds only a name "
    "is called ...Name.",
    "Make it an object with `name` (and kind and namespace if they vary), or rename it.",
)
DURATION_UNIT = warning(
    _GROUP,
    "duration-unit",
    "Neither the name nor the description shows the unit of the number.",
    "Include the unit in the name, as in timeoutSeconds, or at least in the description.",
    renames=True,
)
BOOLEAN = info(
    _GROUP,
    "boolean",
    "A choice between yes and no often gets a third option later, which a boolean cannot express.",
    "Use a string with an enum.",
)
FLOAT = info(
    _GROUP,
    "float",
    "Floats do not survive a round trip in all languages, and cannot be compared.",
    "Use an integer in a smaller unit, or a quantity.",
)
NULLABLE = info(
    _GROUP,
    "nullable",
    "null becomes a third state besides absent and empty, and Go clients cannot tell it from absent.",
    "Remove nullable, unless null has a meaning of its own.",
)
ENUM_CASE = info(
    _GROUP,
    "enum-case",
    "Enum values are UpperCamelCase in the Kubernetes API, unless they come from another system.",
    "Rename the values in the next version.",
)
REQUIRED_DEFAULT = info(
    _GROUP,
    "required-default",
    "A field with a default is never missing, but generated clients still force users to set it.",
    "Remove it from required.",
)
MAP_OF_OBJECTS = info(
    _GROUP,
    "map-of-objects",
    "The API conventions prefer lists of named objects to maps of objects.",
    "Use a list with x-kubernetes-list-type: map.",
)
TIME_NAME = info(
    _GROUP,
    "time-name",
    "Points in time are named ...Time in the Kubernetes API, as in creationTime, and not ...Timestamp.",
    "Rename the field in the next version.",
    renames=True,
)
REFERENCE_NAME = info(
    _GROUP,
    "reference-name",
    "References to other objects are named ...Ref or ...Refs in the Kubernetes API.",
    "Rename the field in the next version.",
    renames=True,
)
