"""The table that the API server makes of custom objects, as printed by `kubectl get`.

Follows apiextensions-apiserver pkg/registry/customresource/tableconvertor: each of a version's
additionalPrinterColumns is a JSONPath, of which only the first result counts. A column whose path cannot be
parsed ends the table: it and all columns after it are missing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.golang.numbers import shortest
from crdkeeper.apiserver.golang.text import json_text
from crdkeeper.apiserver.jsonpath.comparison import Native
from crdkeeper.apiserver.jsonpath.evaluation import (
    MAX_STEPS,
    Chance,
    EvaluationFailed,
    Stateful,
    Unbounded,
    first,
)
from crdkeeper.apiserver.jsonpath.nodes import Template
from crdkeeper.apiserver.jsonpath.parser import PathError, parse_column
from crdkeeper.apiserver.objects.age import age_text

_MIN, _END = -(1 << 63), 1 << 63
_AGE: Final[Mapping[str, Any]] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_CHANCE: Final = "which of several values comes first is up to chance"

Shown = str | int | float | bool | None
"""None is an empty cell: there is no value, or none that the column's type shows."""


@dataclass(frozen=True, slots=True)
class Open:
    """A cell that cannot be determined offline; `why` says what prevents it."""

    why: str
    among: tuple[Shown, ...] = ()
    """The possible cells; empty if anything is possible."""


Cell = Shown | Open


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The header of a column. `kubectl get` shows those with a priority above 0 only with -o wide."""

    name: str
    type: str
    format: str = ""
    priority: int = 0


class TablePrinter:
    """The table of one version of a CRD."""

    def __init__(self, version: Mapping[str, Any], limit: int = MAX_STEPS) -> None:
        """`version` is an entry of spec.versions as the API server decodes it.

        A cell is left open if it requires visiting more than `limit` values.
        """
        self._limit = limit
        columns = [TableColumn("Name", "string", "name")]
        self._paths: list[Template] = []
        self.broken: str | None = None
        """The name of the first column whose path cannot be parsed, or of which only Go can tell."""
        for each in version.get("additionalPrinterColumns") or (_AGE,):
            try:
                self._paths.append(parse_column(each.get("jsonPath") or ""))
            except PathError:
                self.broken = each.get("name") or ""
                break
            columns.append(
                TableColumn(
                    each.get("name") or "",
                    each.get("type") or "",
                    each.get("format") or "",
                    each.get("priority") or 0,
                )
            )
        self.columns: tuple[TableColumn, ...] = tuple(columns)

    def cells(self, obj: Mapping[str, Any], now: int) -> tuple[Cell, ...]:
        """The row of an object as read from the API server, at `now` in nanoseconds since 1970."""
        name = (obj.get("metadata") or {}).get("name")
        found: list[Cell] = [name if isinstance(name, str) else ""]
        for column, path in zip(self.columns[1:], self._paths, strict=True):
            found.append(_cell(column.type, path, obj, now, self._limit))
        return tuple(found)


def _cell(type_: str, path: Template, obj: Mapping[str, Any], now: int, limit: int) -> Cell:
    try:
        cells = [_shown(type_, each, now) for each in first(path, obj, limit)]
    except EvaluationFailed:
        return None
    except Chance:
        return Open(_CHANCE)
    except Stateful:
        return Open("the path loops")
    except (Unbounded, RecursionError):
        return Open("the path selects too much")
    among = {(type(each), each): each for each in cells}
    if len(among) > 1:
        return Open(_CHANCE, tuple(among.values()))
    return cells[0] if cells else None


def _shown(type_: str, value: Any, now: int) -> Shown:
    """cellForJSONValue, and PrintResults for a string column."""
    if isinstance(value, int) and not isinstance(value, bool) and not _MIN <= value < _END:
        value = float(value)
    match type_:
        case "string":
            return _text(value)
        case "integer":
            return _integer(value)
        case "number":
            return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return age_text(value, now) if isinstance(value, str) else None
    return None


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    whole = math.trunc(value)
    # On amd64, what does not fit becomes the least integer.
    return whole if _MIN <= whole < _END else _MIN


def _text(value: Any) -> str:
    if value is None:
        return "<no value>"
    if isinstance(value, str):
        return value
    if isinstance(value, Native):
        return str(value.value)
    if isinstance(value, float):
        return shortest(value)
    return json_text(value)
