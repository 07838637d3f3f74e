"""NonStructuralSchema: each violation with its path; CRDs from before v1; schemas that can't be converted."""

from typing import Any

import pytest

from crdkeeper.core.diagnosis.assessment import assess
from crdkeeper.core.diagnosis.conditions import structural
from crdkeeper.core.diagnosis.structure import Structure
from crdkeeper.core.diagnosis.verdict import Reason
from tests.unit.core.diagnosis.builders import live_crd

AT = "spec.versions[0].schema.openAPIV3Schema"


def judged(schema: dict[str, Any], **changes: Any) -> tuple[Reason, str]:
    verdict = structural.judge(assess(live_crd(schema=schema, **changes)).structure)
    return verdict.reason, verdict.message


def field(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": schema}}


@pytest.mark.parametrize(
    ("schema", "reported"),
    [
        ({}, f"{AT}.type: Required value: must not be empty at the root"),
        (field({}), f"{AT}.properties[spec].type: Required value: must not be empty for specified object"),
        (field({"type": "array"}), f"{AT}.properties[spec].items: Required value: must be specified"),
        (
            field({"type": "object", "anyOf": [{"type": "object"}]}),
            "Forbidden: must be empty to be structural",
        ),
    ],
)
def test_violations_are_told_with_path_and_message(schema: dict[str, Any], reported: str) -> None:
    reason, message = judged(schema)
    assert reason is structural.VIOLATIONS
    assert (reason.status, reason.healthy) == ("True", False)
    assert reported in message
    assert message.startswith("2 violations: ")  # one in each version


def test_preserve_unknown_fields_is_one() -> None:
    reason, message = judged({"type": "object"}, spec={"preserveUnknownFields": True})
    assert reason is structural.VIOLATIONS
    assert "spec.preserveUnknownFields: Invalid value: true: must be false" in message


def test_what_cannot_be_converted_is_an_error() -> None:
    reason, message = judged(field({"$ref": "#/definitions/spec"}))
    assert reason is structural.STRUCTURAL_ERROR
    assert (
        "failed to check validation schema for version v1: OpenAPIV3Schema '$ref' is not supported" in message
    )


def test_sound_schemas_are_structural() -> None:
    reason, _ = judged(field({"type": "object", "properties": {"size": {"type": "integer"}}}))
    assert reason is structural.STRUCTURAL
    assert (reason.status, reason.healthy) == ("False", True)


def test_a_version_without_a_schema_is_passed_over() -> None:
    crd = live_crd()
    del crd["spec"]["versions"][0]["schema"]
    assert assess(crd).structure == Structure()


def test_many_violations_are_counted_and_some_are_shown() -> None:
    broken = {"type": "object", "properties": {f"f{i}": {} for i in range(100)}}
    reason, message = judged(broken)
    assert reason is structural.VIOLATIONS
    assert message.startswith("200 violations: ")
    assert "and 190 more" in message
    assert len(message) < 4096


def test_a_schema_that_is_too_deep_is_not_decided() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(3000):
        deep = {"type": "object", "properties": {"a": deep}}
    assessment = assess(live_crd(schema=deep))
    reason = structural.judge(assessment.structure).reason
    assert reason is structural.NOT_DECIDED
    # For ever: only the author can reduce the nesting.
    assert reason.healthy
    assert assessment.findings.counts().unchecked == 1
    assert assessment.findings.counts().total == 0
