"""Immutable fields that can be removed and set again: which of them are the author's mistake."""

from typing import Any

import pytest

from crdkeeper.core.lint.linter import lint
from crdkeeper.core.lint.severity import Severity
from tests.unit.core.lint.definitions import NUMBER, TEXT, definition, schema, version

Json = dict[str, Any]


def rules(*texts: str) -> Json:
    return {"x-kubernetes-validations": [{"rule": each, "message": "No."} for each in texts]}


FIXED = rules("self == oldSelf")


def found(content: Json) -> list[tuple[str, Severity]]:
    """The errors of the API server, and the fields that can be circumvented."""
    reported = lint(definition(version(content)))
    return [
        (each.path if each.rule.id == "immutable-bypass" else each.rule.id, each.severity)
        for each in reported
        if each.final or each.rule.id == "immutable-bypass"
    ]


@pytest.mark.parametrize(
    ("guards", "expected"),
    [
        # The server refuses a rule about a field that does not exist.
        (("has(self.PoolName) == has(oldSelf.PoolName)",), ["cel"]),
        (("!has(oldSelf.poolname) || has(self.poolname)",), ["cel"]),
        (("has(self.poolNmae) == has(oldSelf.poolNmae)",), ["cel"]),
        (("has(self.size) == has(oldSelf.size)",), [".spec.poolName"]),
        (("has(self.region) == has(oldSelf.region)",), ["cel", ".spec.poolName"]),
        (("has(self.poolName) == has(oldSelf.poolName)", "has(self.PoolName)"), ["cel"]),
        (("has(self.poolName) == has(oldSelf.poolName)",), []),
        ((), [".spec.poolName"]),
    ],
)
def test_a_misspelt_guard_is_the_only_finding_about_its_field(
    guards: tuple[str, ...], expected: list[str]
) -> None:
    keywords = rules(*guards) if guards else {}
    content = schema({"poolName": {**TEXT, **FIXED}, "size": NUMBER}, spec_keywords=keywords)
    assert [each for each, _ in found(content)] == expected


def test_another_field_of_the_object_is_not_the_misspelt_one() -> None:
    fields = {"pool": {**TEXT, **FIXED}, "poolSize": NUMBER, "region": {**TEXT, **FIXED}}
    content = schema(fields, spec_keywords=rules("has(self.Region) == has(oldSelf.Region)"))
    assert [each for each, _ in found(content)] == ["cel", ".spec.pool"]


def test_nobody_removes_a_whole_spec_by_mistake() -> None:
    assert found(schema(spec_keywords=FIXED)) == [(".spec", Severity.INFO)]
    assert found(schema(spec_keywords=FIXED, required=["spec"])) == []
    free = schema()
    free["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **FIXED}
    assert found(free) == [(".spec", Severity.INFO)]
    inner = {"type": "object", "description": "Where.", "properties": {"a": TEXT}, **FIXED}
    assert found(schema({"place": inner})) == [(".spec.place", Severity.WARNING)]
    content = schema()
    content["properties"]["provisioner"] = {**TEXT, **FIXED}
    assert found(content) == [(".provisioner", Severity.WARNING)]


def test_what_stands_in_an_immutable_object_cannot_be_removed() -> None:
    inside = {"type": "object", "properties": {"selector": {**TEXT, **FIXED}}}
    assert found(schema({"source": inside})) == [(".spec.source.selector", Severity.WARNING)]
    around = {**inside, **FIXED}
    assert found(schema({"source": around}, spec_keywords={"required": ["source"]})) == []
    # Only the object around it can be removed.
    assert found(schema({"source": around})) == [(".spec.source", Severity.WARNING)]


@pytest.mark.parametrize("beside", ["keyRef", "keySelector"])
def test_a_field_beside_its_reference_is_set_later(beside: str) -> None:
    fields = {"key": {**TEXT, **FIXED}, beside: {"type": "object", "properties": {"name": TEXT}}}
    assert found(schema(fields)) == [(".spec.key", Severity.INFO)]


@pytest.mark.parametrize(
    ("message", "description", "expected"),
    [
        ("Value is immutable once set", "The account.", Severity.INFO),
        ("cannot be changed once it is set", "The account.", Severity.INFO),
        ("Value is immutable", "The account.", Severity.WARNING),
        # What users read of the field is a promise.
        ("Value is immutable once set", "The account. Immutable once\nset.", Severity.WARNING),
        ("Value is immutable once set", "The account. It cannot be changed.", Severity.WARNING),
    ],
)
def test_a_field_that_is_fixed_once_set_is_set_later(
    message: str, description: str, expected: Severity
) -> None:
    rule = {"rule": "self == oldSelf", "message": message}
    field = {**TEXT, "description": description, "x-kubernetes-validations": [rule]}
    assert found(schema({"account": field})) == [(".spec.account", expected)]
