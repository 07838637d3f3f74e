"""Conventions on printer columns."""

from typing import Final

from crdkeeper.core.lint.convention import error, info, warning

_GROUP: Final = "columns"
ABOUT: Final = "printer columns"

COLUMN_SYNTAX = error(
    _GROUP,
    "column-syntax",
    "The API server accepts any string, but does not show a column whose path it cannot parse, nor "
    "any column after it.",
    "Correct jsonPath: put keys in brackets in single quotes, and close all brackets, quotes and filters.",
)
COLUMN_TARGET = warning(
    _GROUP,
    "column-target",
    "The column is always empty.",
    "Correct jsonPath, or remove the column.",
)
COLUMN_TYPE = warning(
    _GROUP,
    "column-type",
    "The API server does not show a value whose type differs from the column's.",
    "Set the column's type to the field's type. Type string shows any value.",
)
COLUMN_INVALID = warning(
    _GROUP,
    "column-invalid",
    "A column of type date shows <invalid> for a text that is no time as of RFC 3339.",
    "Make the field a time (format: date-time), or the column one of type string.",
)
COLUMN_EMPTY = info(
    _GROUP,
    "column-empty",
    "The column shows nothing of the objects that stand in the same files, as they would be stored.",
    "Correct jsonPath or the objects; or show something that each object has.",
)
COLUMN_LIST = warning(
    _GROUP,
    "column-list",
    "If the path matches several values, the API server shows only the first.",
    "Point to one value: use an index, a condition's type, or a status field that summarizes the list.",
)
COLUMN_DATE = info(
    _GROUP,
    "column-date",
    "kubectl shows a column of type date as an age, but one of type string as a timestamp.",
    "Use type: date.",
)
COLUMN_AGE = info(
    _GROUP,
    "column-age",
    "Custom columns replace the default Age column of kubectl get.",
    "Add a column {name: Age, type: date, jsonPath: .metadata.creationTimestamp}.",
)
COLUMN_READY = info(
    _GROUP,
    "column-ready",
    "kubectl get does not show whether the object is ready, although its conditions do.",
    'Add a column {name: Ready, type: string, jsonPath: .status.conditions[?(@.type=="Ready")].status}.',
)
OF_SAMPLES = frozenset((COLUMN_INVALID.id, COLUMN_EMPTY.id))
