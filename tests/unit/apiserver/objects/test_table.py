"""What `kubectl get` shows of an object."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.age import duration_text
from crdkeeper.apiserver.objects.table import Open, TableColumn, TablePrinter

NOW = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
OBJECT = {
    "metadata": {"name": "a", "creationTimestamp": "2025-12-26T21:00:00Z"},
    "spec": {"n": 3, "f": 2.75, "t": "text", "b": True, "z": None, "list": ["<a>", 1e21], "time": "soon"},
}


@pytest.mark.parametrize(
    ("type_", "path", "cell"),
    [
        ("string", ".spec.n", "3"),
        ("string", ".spec.f", "2.75"),
        ("string", ".spec.b", "true"),
        ("string", ".spec.z", "<no value>"),
        ("string", ".spec.list", '["\\u003ca\\u003e",1e+21]'),
        ("string", ".spec.none", None),
        ("integer", ".spec.f", 2),
        ("integer", ".spec.t", None),
        ("integer", ".spec.b", None),
        ("integer", ".spec.n 5", None),
        ("number", ".spec.n", 3.0),
        ("boolean", ".spec.b", True),
        ("boolean", ".spec.n", None),
        ("date", ".metadata.creationTimestamp", "5d3h"),
        ("date", ".spec.time", "<invalid>"),
        ("date", ".spec.n", None),
        ("string", ".spec.list[7]", None),
    ],
)
def test_cells(type_: str, path: str, cell: Any) -> None:
    printer = TablePrinter({"additionalPrinterColumns": [{"name": "X", "type": type_, "jsonPath": path}]})
    shown = printer.cells(OBJECT, NOW)
    assert shown == ("a", cell)
    assert type(shown[1]) is type(cell)


def test_the_age_is_shown_where_no_column_is_given() -> None:
    printer = TablePrinter({})
    assert printer.columns == (TableColumn("Name", "string", "name"), TableColumn("Age", "date"))
    assert printer.cells(OBJECT, NOW) == ("a", "5d3h")


def test_a_path_that_cannot_be_parsed_ends_the_table() -> None:
    paths = (".spec.n", ".spec[", ".spec.t")
    columns = [{"name": each, "type": "string", "jsonPath": each, "priority": 1} for each in paths]
    printer = TablePrinter({"additionalPrinterColumns": columns})
    assert printer.broken == ".spec["
    assert printer.columns[1:] == (TableColumn(".spec.n", "string", priority=1),)
    assert printer.cells(OBJECT, NOW) == ("a", "3")


def test_what_is_up_to_chance_is_left_open() -> None:
    column = {"name": "X", "type": "boolean", "jsonPath": ".spec.*"}
    cell = TablePrinter({"additionalPrinterColumns": [column]}).cells(OBJECT, NOW)[1]
    assert isinstance(cell, Open)
    assert set(cell.among) == {None, True}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (8 * 3600 - 1, "7h59m"),
        (48 * 3600, "2d"),
        (8 * 86400 - 1, "7d23h"),
        (730 * 86400 - 1, "729d"),
        (730 * 86400, "2y"),
        (8 * 365 * 86400 - 1, "7y364d"),
        (8 * 365 * 86400, "8y"),
        (2**63 / 1e9, "292y"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(int(seconds * 10**9)) == text
