"""The cells of printer columns for objects in the same files as a CRD: which are empty, and which <invalid>.

Such objects need not have what only the API server or a controller sets.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.cel.values.times import MAX_SECONDS, SECOND
from crdkeeper.apiserver.jsonpath.nodes import Field
from crdkeeper.apiserver.jsonpath.parser import parse_column
from crdkeeper.apiserver.objects.age import INVALID
from crdkeeper.apiserver.objects.objectschema import CannotCompile, ObjectSchema
from crdkeeper.apiserver.objects.table import TablePrinter
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.lint.columns import shows
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions.columns import COLUMN_EMPTY, COLUMN_INVALID
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.jsonpath import Lead, follow

_NOW: Final = MAX_SECONDS * SECOND
"""So late that only what is not a time is <invalid>."""
_MOST_STEPS: Final = 5_000
"""The work for one cell."""
_MOST_COLUMNS: Final = 100
"""Columns in one version; with the limit per cell, this bounds the time for malicious paths."""
_WRITTEN: Final = frozenset(("name", "namespace", "labels", "annotations"))
"""What an author may set in metadata."""

Json = Any


def try_columns(
    version: Mapping[str, Any], index: int, objects: Sequence[Json], found: Findings, steps: int
) -> None:
    """Report on the columns of a version for objects that are written in it.

    `steps` are the values that all columns may visit for one object. `version` is the one at `index` of
    spec.versions, as the API server decodes it. Reports only what is certain and does not follow from the
    schema alone; nothing if the schema cannot be compiled.
    """
    schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    try:
        compiled = ObjectSchema.of(schema)
    except CannotCompile:
        return
    stored = [compiled.stored(each) for each in objects]
    readable = [each.object for each in stored if isinstance(each.object, dict) and not each.violations]
    columns = (version.get("additionalPrinterColumns") or ())[:_MOST_COLUMNS]
    limit = min(_MOST_STEPS, steps // max(len(columns), 1))
    printer = TablePrinter({"additionalPrinterColumns": columns}, limit)
    rows = [printer.cells(each, _NOW) for each in readable]
    for i, column in enumerate(columns):
        if i + 1 >= len(printer.columns):
            return
        target = follow(column["jsonPath"], schema)
        if target.lead is Lead.NOWHERE or not shows(column["type"], target.schema or {}):
            continue
        shown = [
            (obj, row[i + 1])
            for obj, row in zip(readable, rows, strict=True)
            if _is_expected(column["jsonPath"], obj)
        ]
        invalid = next((obj for obj, cell in shown if cell == INVALID), None)
        if invalid is not None and column.get("type") == "date":
            message = f"shows {INVALID} for {_name(invalid)}"
            _report(COLUMN_INVALID, version, index, i, message, found)
        elif shown and all(cell is None or cell == "" for _, cell in shown):
            many = f"all {len(shown)} objects in the files" if len(shown) > 1 else _name(shown[0][0])
            _report(COLUMN_EMPTY, version, index, i, f"is empty for {many}", found)


def _is_expected(path: str, obj: Json) -> bool:
    """Whether an object determines what a column shows, and not just the API server or a controller."""
    block = parse_column(path)[0]
    names = [each.name for each in block if isinstance(each, Field)] if isinstance(block, tuple) else []
    if names[:1] == ["metadata"]:
        return len(names) > 1 and names[1] in _WRITTEN
    return names[:1] != ["status"] or bool(obj.get("status"))


def _name(obj: Json) -> str:
    metadata = obj.get("metadata") or {}
    return f"{obj.get('kind')} {metadata.get('name') or metadata.get('generateName') or 'without a name'}"


def _report(
    convention: Convention, version: Mapping[str, Any], index: int, number: int, message: str, found: Findings
) -> None:
    column = version["additionalPrinterColumns"][number]
    steps = ("spec", "versions", index, "additionalPrinterColumns", number, "jsonPath")
    field = f"{version.get('name')}:additionalPrinterColumns[{number}]"
    found.add(convention, field, steps, f"column {column.get('name')}: {message}")
