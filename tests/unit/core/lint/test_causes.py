"""One cause is one finding: what follows from another finding is not said beside it."""

from typing import Any

import pytest

from tests.unit.core.lint.definitions import TEXT, check, definition, schema, version

Json = dict[str, Any]


def with_column(path: str, type_: str = "string", **spec: Json) -> Json:
    columns = [{"name": "X", "type": type_, "jsonPath": path}]
    return version(schema(dict(spec)), additionalPrinterColumns=columns)


OBJECTS: Json = {
    "type": "array",
    "maxItems": 3,
    "description": "All.",
    "items": {"type": "object", "properties": {"name": TEXT, "day": {**TEXT, "format": "date"}}},
    "x-kubernetes-list-type": "atomic",
}


@pytest.mark.parametrize(
    ("path", "type_", "message"),
    [
        (".spec.all[*].name", "string", ".spec.all[*].name selects several values"),
        (
            ".spec.all[*]",
            "integer",
            ".spec.all[*] selects several values of type object, which a column of type integer "
            "does not show",
        ),
        (".spec.all[*].day", "date", ".spec.all[*].day selects several values"),
    ],
)
def test_a_column_of_several_values_has_one_finding(path: str, type_: str, message: str) -> None:
    crd = definition(with_column(path, type_, all=OBJECTS))
    found = [each for each in check(crd) if each.rule.id.startswith("column-")]
    assert [(each.rule.id, each.message) for each in found if each.severity.value == "warning"] == [
        ("column-list", f"column X: {message}")
    ]
