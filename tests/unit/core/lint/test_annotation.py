"""Findings that the annotation of a CRD has ignored."""

import pytest

from crdkeeper.core.lint.annotation import ANNOTATION, ignored_by, parse


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        ("boolean .spec.on: Two states.", True),
        ("boolean v1:.spec.on: Two states.", True),
        ("boolean .spec.*: Two states.", True),
        ("boolean *: Two states.", True),
        ("boolean v2:.spec.on: Two states.", False),
        ("boolean .spec: Two states.", False),
        ("boolean .spec.o.: Two states.", False),
        ("float .spec.on: Two states.", False),
        ("boolean .spec.on:", False),
    ],
)
def test_a_line(line: str, ignored: bool) -> None:
    metadata = {"annotations": {ANNOTATION: f"\n  {line}\n"}}
    assert ignored_by(metadata)("boolean", "v1:.spec.on") is ignored


@pytest.mark.parametrize(
    "metadata", [{}, {"annotations": None}, {"annotations": {}}, {"annotations": {"a": "b"}}]
)
def test_none(metadata: dict[str, object]) -> None:
    assert parse(metadata) == ([], [])
    assert not ignored_by(metadata)("boolean", "v1:.spec.on")


def test_what_is_not_understood() -> None:
    lines, bad = parse({"annotations": {ANNOTATION: "boolean .spec.on\n\nfloat .spec.x: Fine."}})
    assert [each.id for each in lines] == ["float"]
    assert bad == ["boolean .spec.on"]
