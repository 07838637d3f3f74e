"""Findings that are one are counted once: of a field in several versions, of a type at several fields."""

from typing import Any

from crdkeeper.core.lint.annotation import apply_annotation
from crdkeeper.core.lint.found import Found
from crdkeeper.core.lint.merging import merge
from crdkeeper.core.lint.severity import Severity
from tests.unit.core.lint.definitions import NUMBER, TEXT, check, definition, schema, version

Json = dict[str, Any]
D = {"description": "Said."}
WAIT: Json = {"type": "object", "properties": {"timeout": TEXT, "color": TEXT}, **D}


def merged(crd: Json, id: str) -> list[Found]:
    return [each for each in merge(check(crd)) if each.rule.id == id]


def versions(*names: str, spec: Json | None = None, **fields: Any) -> Json:
    """A CRD with the same schema in each version; the last one is stored."""
    made = [
        version(schema(spec or {"timeout": TEXT}), name, storage=name == names[-1], **fields)
        for name in names
    ]
    return definition(*made)


def test_a_field_of_several_versions_is_one_finding_that_names_them() -> None:
    (one,) = merged(versions("v1beta1", "v1"), "duration-text")
    assert (one.field, one.versions, one.fields) == ("v1beta1:.spec.timeout", ("v1beta1", "v1"), ())
    assert one.elsewhere == " (also in v1)"
    (one,) = merged(versions("v1beta1"), "duration-text")
    assert (one.versions, one.elsewhere) == ((), "")


def test_what_is_no_field_is_put_together_too() -> None:
    columns = [{"name": "X", "type": "string", "jsonPath": ".spec.nothing"}]
    (one,) = merged(versions("v1beta1", "v1", additionalPrinterColumns=columns), "column-target")
    assert one.versions == ("v1beta1", "v1")


def test_findings_that_say_something_else_stay_apart() -> None:
    old = version(schema({"x": {**TEXT, "pattern": "a"}}), "v1beta1", storage=False)
    new = version(schema({"x": {**TEXT, "pattern": "b"}}), "v1")
    assert len(merged(definition(old, new), "pattern-anchors")) == 2


def test_two_rules_of_one_field_are_two_findings() -> None:
    rules = {"x-kubernetes-validations": [{"rule": "self != 'a'"}, {"rule": "self != 'b'"}]}
    assert len(merged(versions("v1beta1", "v1", spec={"x": {**TEXT, **rules}}), "rule-message")) == 2


def test_a_name_stays_that_more_than_an_alpha_version_has() -> None:
    spec = {"drainTimeout": NUMBER}
    (one,) = merged(versions("v1alpha1", spec=spec), "duration-unit")
    assert one.severity is Severity.WARNING
    for newer in ("v1beta1", "v1"):
        (one,) = merged(versions("v1alpha1", newer, spec=spec), "duration-unit")
        assert (one.severity, one.versions) == (Severity.INFO, ("v1alpha1", newer))


def test_what_is_no_name_is_as_bad_as_where_it_matters_most() -> None:
    wait = {**TEXT, "description": "A Go duration."}
    old = version(schema({"timeout": wait}), "v1beta1", storage=False, deprecated=True)
    (one,) = merged(definition(old, version(schema({"timeout": wait}), "v1")), "duration-text")
    assert one.severity is Severity.WARNING


def test_a_type_that_stands_at_several_fields_is_one_finding() -> None:
    spec = {f"wait{i}": {**WAIT, "description": f"The wait number {i}."} for i in range(312)}
    (one,) = merged(versions("v1beta1", "v1", spec=spec), "duration-text")
    assert one.field == "v1beta1:.spec.wait0.timeout"
    assert (len(one.fields), one.fields[-1]) == (312, ".spec.wait311.timeout")
    assert one.elsewhere == " (also in v1; and in 311 other fields of the same type)"


def test_a_list_of_one_type_is_one_finding_wherever_it_stands() -> None:
    ports = {"type": "array", "maxItems": 3, "items": WAIT, **D}
    around = {"type": "object", "properties": {"ports": ports, "more": TEXT}, **D}
    (one,) = merged(versions("v1", spec={"ports": ports, "inner": around}), "list-type-missing")
    assert one.fields == (".spec.ports", ".spec.inner.ports")


def test_fields_of_other_types_stay_apart_though_they_are_alike() -> None:
    other = {**WAIT, "properties": {"timeout": TEXT, "size": NUMBER}}
    assert len(merged(versions("v1", spec={"a": WAIT, "b": other, "timeout": TEXT}), "duration-text")) == 3
    inner = {**WAIT, "properties": {**WAIT["properties"], "color": NUMBER}}
    assert len(merged(versions("v1", spec={"a": WAIT, "b": inner}), "duration-text")) == 2


def test_types_with_many_variants_are_not_compared_for_ever() -> None:
    spec = {
        f"wait{i}": {**WAIT, "properties": {"timeout": TEXT, "color": {**TEXT, "maxLength": i + 1}}}
        for i in range(100)
    }
    assert len(merged(versions("v1", spec=spec), "duration-text")) == 100


def test_what_is_ignored_in_one_version_counts_in_the_other() -> None:
    crd = versions("v1beta1", "v1")
    text = "duration-text v1beta1:.spec.timeout: Ours."
    metadata = {"name": "widgets.example.com", "annotations": {"lint.crdkeeper.dev/ignore": text}}
    two = merge(apply_annotation(metadata, check(crd)))
    assert [(each.field, each.ignored) for each in two] == [
        ("v1beta1:.spec.timeout", "Ours."),
        ("v1:.spec.timeout", ""),
    ]
