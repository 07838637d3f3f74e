"""additionalPrinterColumns: whether `kubectl get` can show what they promise.

Values are formatted as in ConvertToTable of apiextensions-apiserver
(pkg/registry/customresource/tableconvertor): type string shows anything, the others only values of their
type.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.apiserver.cel.values.times import MAX_SECONDS, SECOND
from crdkeeper.apiserver.objects.age import INVALID, age_text
from crdkeeper.apiserver.schema.fieldpath import Step
from crdkeeper.apiserver.schema.props import INT_OR_STRING, PRESERVE, TYPES, Schema
from crdkeeper.core.lint.checkeddefinition import CheckedVersion
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions.columns import (
    COLUMN_AGE,
    COLUMN_DATE,
    COLUMN_INVALID,
    COLUMN_LIST,
    COLUMN_READY,
    COLUMN_SYNTAX,
    COLUMN_TARGET,
    COLUMN_TYPE,
)
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.jsonpath import Lead, Target, follow
from crdkeeper.core.lint.place import SchemaPlace

_SHOWN = {
    "integer": ("integer", "number"),
    "number": ("integer", "number"),
    "boolean": ("boolean",),
    "date": ("string",),
}
_UNESCAPED = "a dot in a quoted key needs a backslash"
_AGE = ".metadata.creationTimestamp"
_BY_FORMAT = {"date": ("2026-01-02",), "duration": ("1h", "P1D")}
"""Strings in formats that people mistake for times; none has a time of day."""
_NOW = MAX_SECONDS * SECOND


def check_columns(version: CheckedVersion, found: Findings) -> None:
    """Report on the columns of one version."""
    root = version.root
    columns = version.declared.get("additionalPrinterColumns") or ()
    at: tuple[Step, ...] = (*root.steps[:3], "additionalPrinterColumns")
    for i, column in enumerate(columns):
        _check_column(_Column(column, f"{root.version}:additionalPrinterColumns[{i}]", (*at, i)), root, found)
    field = f"{root.version}:additionalPrinterColumns"
    paths = [str(each.get("jsonPath")) for each in columns]
    if columns and _AGE not in paths:
        found.add(COLUMN_AGE, field, at, "no column shows the age")
    status = root.child("status")
    conditions = status.child("conditions") if status is not None else None
    if conditions is not None and not any(each.startswith(".status") for each in paths):
        found.add(COLUMN_READY, field, at, "no column shows anything of status")


def shows(type_: str, schema: Schema) -> bool:
    """Whether a column of that type shows any value that the schema allows."""
    found = schema.get("type")
    if found not in TYPES or schema.get(INT_OR_STRING) or schema.get(PRESERVE):
        return True
    return type_ not in _SHOWN or found in _SHOWN[type_]


class _Column:
    def __init__(self, column: Mapping[str, Any], field: str, steps: tuple[Step, ...]) -> None:
        self.type = str(column.get("type"))
        self.path = str(column.get("jsonPath"))
        self.name = str(column.get("name"))
        self._field, self._steps = field, steps

    def report(
        self, found: Findings, convention: Convention, message: str, key: str, *, mistake: str = ""
    ) -> None:
        steps, text = (*self._steps, key), f"column {self.name}: {message}"
        found.add(convention, self._field, steps, text, mistake=mistake)


def _check_column(column: _Column, root: SchemaPlace, found: Findings) -> None:
    target = follow(column.path, root.schema)
    if target.lead is Lead.NOWHERE:
        mistake = _UNESCAPED if target.escaped else ""
        correction = f"; {mistake}: {target.escaped}" if mistake else ""
        message = f"{column.path} leads to nothing in the schema{correction}"
        column.report(found, COLUMN_TARGET, message, "jsonPath", mistake=mistake)
    elif target.lead is Lead.BROKEN:
        message = f"{column.path} is not a JSONPath{target.problem}"
        column.report(found, COLUMN_SYNTAX, message, "jsonPath", mistake=target.problem)
    elif target.lead is Lead.FIELD:
        _check_target(column, target, found)


def _check_target(column: _Column, target: Target, found: Findings) -> None:
    schema = target.schema or {}
    type_, format_ = schema.get("type"), schema.get("format")
    if target.many:
        # Whatever the type is, the path has to change.
        unseen = f" of type {type_}, which a column of type {column.type} does not show"
        more = "" if shows(column.type, schema) else unseen
        column.report(found, COLUMN_LIST, f"{column.path} selects several values{more}", "jsonPath")
        return
    if column.type not in _SHOWN:
        if format_ in ("date-time", "datetime") and type_ == "string":
            message = f"{column.path} is a time"
            column.report(found, COLUMN_DATE, message, "type")
    elif not shows(column.type, schema):
        message = f"{column.path} has type {type_}, which a column of type {column.type} does not show"
        column.report(found, COLUMN_TYPE, message, "type")
    elif column.type == "date" and all(age_text(each, _NOW) == INVALID for each in _examples(schema)):
        message = f"shows {INVALID} for any value that the schema allows"
        column.report(found, COLUMN_INVALID, message, "jsonPath")


def _examples(schema: Schema) -> Sequence[str]:
    """Strings that represent everything that the schema allows; the zero time if any string is allowed."""
    texts = [each for each in schema.get("enum") or () if isinstance(each, str)]
    return texts or _BY_FORMAT.get(schema.get("format") or "", ("",))
