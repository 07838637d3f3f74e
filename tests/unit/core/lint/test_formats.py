"""Formats that the API server does not know: mistakes, and hints for other tools."""

from typing import Any

import pytest

from crdkeeper.core.lint.severity import Severity
from tests.unit.core.lint.definitions import NUMBER, TEXT, check, definition, schema, version

Json = dict[str, Any]
LISTED: Json = {"type": "array", "items": TEXT, "maxItems": 2, "x-kubernetes-list-type": "set"}
OF_TYPE: dict[str, Json] = {
    "string": TEXT,
    "integer": NUMBER,
    "number": {"type": "number"},
    "array": LISTED,
    "boolean": {"type": "boolean"},
}


@pytest.mark.parametrize(
    ("type_", "format_", "severity", "known"),
    [
        # Forms, and the registry of OpenAPI.
        ("string", "data-url", Severity.INFO, ""),
        ("string", "textarea", Severity.INFO, ""),
        ("string", "commonmark", Severity.INFO, ""),
        ("string", "uri-reference", Severity.INFO, ""),
        ("string", "idn-email", Severity.INFO, ""),
        ("string", "my.company/color", Severity.INFO, ""),
        ("string", "uuid7", Severity.INFO, ""),
        ("string", "ssh", Severity.INFO, ""),
        ("string", "int64", Severity.INFO, ""),
        ("array", "table", Severity.INFO, ""),
        ("boolean", "checkbox", Severity.INFO, ""),
        ("integer", "port", Severity.INFO, ""),
        # What the author may believe to be checked.
        ("string", "^[a-z]*$", Severity.WARNING, ""),
        ("string", "date time", Severity.WARNING, "date-time"),
        ("string", "Date-Time", Severity.WARNING, "date-time"),
        ("string", "hostName", Severity.WARNING, "hostname"),
        ("string", "emial", Severity.WARNING, "email"),
        ("string", "datetimes", Severity.WARNING, "date-time"),
        ("string", "url", Severity.WARNING, "uri"),
        ("string", "ip", Severity.WARNING, "ipv4 or ipv6"),
        ("string", "int32", Severity.WARNING, ""),
        ("array", "uri", Severity.WARNING, ""),
        ("integer", "date-time", Severity.WARNING, ""),
        ("integer", "uint32", Severity.WARNING, ""),
        ("number", "int64", Severity.WARNING, ""),
    ],
)
def test_a_format_is_a_mistake_if_it_resembles_one_that_is_checked(
    type_: str, format_: str, severity: Severity, known: str
) -> None:
    crd = definition(version(schema({"x": {**OF_TYPE[type_], "format": format_}})))
    (one,) = [each for each in check(crd) if each.rule.id == "format-unknown"]
    meant = f"; {known} is" if known else ""
    assert (one.severity, one.message) == (severity, f"format {format_} is not known for {type_}{meant}")


def test_a_long_format_is_no_work() -> None:
    crd = definition(version(schema({"x": {**TEXT, "format": "a" * 100_000}})))
    (one,) = [each for each in check(crd) if each.rule.id == "format-unknown"]
    assert one.severity is Severity.INFO
