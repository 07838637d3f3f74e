"""One cause is one finding: what follows from another finding is not said beside it."""

from typing import Any

import pytest

from crdkeeper.core.lint.linter import lint
from crdkeeper.core.lint.severity import Severity
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


def named(schema: Json) -> Json:
    return {"description": "It.", **schema}


@pytest.mark.parametrize(
    ("path", "field", "expected"),
    [
        (".spec.it.name", {"$ref": "#/definitions/reference"}, []),
        (
            ".spec.it.name",
            {"$ref": "#/definitions/reference", "type": "object", "properties": {"a": TEXT}},
            [],
        ),
        (".spec.it[0].name", {"type": "array", "items": {"$ref": "#/definitions/reference"}}, []),
        ('.spec.it[?(@.a=="b")].name', {"type": "array", "items": {"$ref": "#/definitions/reference"}}, []),
        (".spec.it.name", {"type": "Any"}, []),
        (".spec.it[0].name", {"type": "Any"}, []),
        (".spec.it[0].name", {"type": "object", "$ref": "#/definitions/reference"}, []),
        (".spec.it.name", {}, []),
        (".spec.it.name", {"type": "object", "patternProperties": {"^n": TEXT}}, []),
        (".spec.it.name", {"properties": {"a": TEXT}}, ["column-target"]),
        (".spec.it.name", {"type": "object", "minLength": 1, "properties": {"a": TEXT}}, ["column-target"]),
        (".spec.it.name", {"type": "object", "pattern": "("}, ["column-target"]),
        (".spec.it.name", {"type": "string"}, ["column-target"]),
        (".spec.other", {"$ref": "#/definitions/reference"}, ["column-target"]),
    ],
)
def test_a_path_through_what_the_server_refuses_may_be_right(
    path: str, field: Json, expected: list[str]
) -> None:
    found = lint(definition(with_column(path, it=named(field))))
    assert [each.rule.id for each in found if each.rule.id.startswith("column-t")] == expected
    assert expected or any(each.final for each in found)


@pytest.mark.parametrize("type_", ["Any", "null"])
def test_a_type_that_the_server_refuses_is_the_only_finding_about_it(type_: str) -> None:
    field = named({"type": type_, "format": "date-time"})
    found = lint(definition(with_column(".spec.it", "integer", it=field)))
    assert {each.rule.id for each in found if each.severity is not Severity.INFO} == {"type"}


FILTER = '.status.conditions[?(@.type=="Ready")].status'
ESCAPED = "; without the backslashes before its quotes it is one"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (FILTER.replace('"', '\\"'), ESCAPED),
        (FILTER.replace('"', "\\'"), ESCAPED),
        ('.status.conditions[?(@.type==\\"Ready)].status', ": a filter is not closed"),
        ('.spec["size"]', ': ["size"] is no index'),
        (".spec[", ": a bracket is not closed"),
    ],
)
def test_a_path_that_cannot_be_parsed_says_why(path: str, reason: str) -> None:
    (one,) = [each for each in check(definition(with_column(path))) if each.rule.id == "column-syntax"]
    assert one.message == f"column X: {path} is not a JSONPath{reason}"
    assert one.mistake == reason


@pytest.mark.parametrize(
    ("path", "escaped"),
    [
        (".metadata.labels['app.kubernetes.io/name']", r".metadata.labels['app\.kubernetes\.io/name']"),
        (r".metadata.labels['app\.kubernetes.io/name']", r".metadata.labels['app\.kubernetes\.io/name']"),
        (".spec.all[0]['a.b']['c']", r".spec.all[0]['a\.b']['c']"),
    ],
)
def test_a_dot_in_a_quoted_key_is_said_to_need_a_backslash(path: str, escaped: str) -> None:
    keyed = {"a.b": {"type": "object", "properties": {"c": TEXT}}}
    items = {**OBJECTS, "items": {"type": "object", "properties": keyed}}
    column = definition(with_column(path, all=items))
    (one,) = [each for each in check(column) if each.rule.id == "column-target"]
    reason = "a dot in a quoted key needs a backslash"
    assert one.message == f"column X: {path} leads to nothing in the schema; {reason}: {escaped}"
    assert one.mistake == reason
    corrected = definition(with_column(escaped, all=items))
    assert not [each for each in check(corrected) if each.rule.id == "column-target"]


@pytest.mark.parametrize("path", [".spec['no.such']", ".spec.gone", ".metadata.labels.example.com/name"])
def test_a_dot_is_not_mentioned_where_a_backslash_does_not_help(path: str) -> None:
    (one,) = [each for each in check(definition(with_column(path))) if each.rule.id == "column-target"]
    assert one.message == f"column X: {path} leads to nothing in the schema"
    assert not one.mistake


def test_a_schema_at_the_wrong_level_is_one_finding() -> None:
    crd = definition(version(schema()))
    crd["spec"]["schema"] = crd["spec"]["versions"][0].pop("schema")
    reported = [each for each in lint(crd) if each.severity in (Severity.ERROR, Severity.WARNING)]
    assert [(each.rule.id, each.message) for each in reported] == [
        ("schema-required", "Required value; spec.schema is at the wrong level")
    ]
