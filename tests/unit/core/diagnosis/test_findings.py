"""Findings: all counted, the worst kept, in compact form."""

from typing import Any

from crdkeeper.api.definitionreport import FINDINGS_SHOWN, Severity
from crdkeeper.core.diagnosis.findings import FindingSummary, Row, collect, rows
from crdkeeper.core.lint.annotation import ANNOTATION
from crdkeeper.core.lint.linter import lint
from tests.unit.core.diagnosis.builders import live_crd

PLAIN = {"type": "object", "properties": {"spec": {"type": "object", "description": "Nothing yet."}}}


# A warning: the pattern matches anywhere.
LOOSE = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "description": "One field.",
            "properties": {"size": {"type": "string", "description": "S or M.", "pattern": "[SM]"}},
        }
    },
}


def found(severity: Severity, number: int) -> list[Row]:
    return [(severity, "rule", f"spec.f{i}", "Required value") for i in range(number)]


def found_in(crd: dict[str, Any]) -> list[Row]:
    """The findings, without matters of style."""
    return [each for each in rows(lint(crd, live=True)) if each[0] != "Note"]


def test_nothing_found_takes_no_room() -> None:
    assert collect([]) == FindingSummary()
    assert FindingSummary().shown() == []
    assert FindingSummary().counts().total == 0


def test_the_worst_are_kept_in_order_and_all_are_counted() -> None:
    severities: tuple[tuple[Severity, int], ...] = (
        ("Unchecked", 3),
        ("Warning", 60),
        ("Error", 2),
        ("Note", 5),
        ("Refused", 1),
    )
    findings = collect(each for severity, number in severities for each in found(severity, number))
    shown = findings.shown()
    expected = ["Refused", "Error", "Error", *["Warning"] * (FINDINGS_SHOWN - 3)]
    assert [each.severity for each in shown] == expected
    assert [each.path for each in shown[1:5]] == ["spec.f0", "spec.f1", "spec.f0", "spec.f1"]
    assert findings.counts().to_object() == {
        "total": 63,
        "refused": 1,
        "errors": 2,
        "warnings": 60,
        "notes": 5,
        "unchecked": 3,
    }


def test_notes_are_counted_only() -> None:
    findings = collect(found("Note", 5))
    assert findings.shown() == []
    assert findings.counts().notes == 5


def test_long_texts_are_cut() -> None:
    (shown,) = collect([("Error", "rule", "p" * 9999, "m" * 9999)]).shown()
    assert len(shown.path) == len(shown.message) == 512


def test_findings_are_kept_small() -> None:
    many: list[Row] = [
        ("Warning", "rule", f"spec.versions[0].schema.properties[f{i}]", "Say what it is.") for i in range(50)
    ]
    assert len(collect(many).packed) < 1024


def test_what_the_server_adds_is_no_finding() -> None:
    """A live CRD has a status, finalizers and owners that no manifest has."""
    added: dict[str, Any] = {
        "finalizers": ["customresourcecleanup.apiextensions.k8s.io"],
        "managedFields": [{"manager": "kubectl"}],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"}],
    }
    assert found_in(live_crd(schema=PLAIN, **added)) == []


def test_an_error_of_the_linter_is_found() -> None:
    assert found_in(live_crd(schema=PLAIN, spec={"scope": ""})) == [
        ("Refused", "scope", "spec.scope", "Required value")
    ]


def test_conventions_are_part_of_it_unless_the_author_has_them_ignored() -> None:
    said = found_in(live_crd(schema=LOOSE))
    assert {each[1] for each in said} == {"pattern-anchors"}
    lines = "pattern-anchors v*:.spec.size: its controller trims the value"
    assert found_in(live_crd(schema=LOOSE, annotations={ANNOTATION: lines})) == []
    lines = "pattern-anchors v1:.spec.size: its controller trims the value"
    assert [each[2] for each in found_in(live_crd(schema=LOOSE, annotations={ANNOTATION: lines}))] == [
        "v2:.spec.size"
    ]


def test_what_is_wrong_with_the_annotation_is_found_as_by_the_command_line() -> None:
    lines = "nonsense\npattern-anchors v*:.spec.size: its controller trims the value\nboolean *: Two states."
    assert [each[:3] for each in found_in(live_crd(schema=LOOSE, annotations={ANNOTATION: lines}))] == [
        ("Error", "ignore-invalid", f"metadata.annotations[{ANNOTATION}]"),
        ("Warning", "ignore-unused", f"metadata.annotations[{ANNOTATION}]"),
    ]
