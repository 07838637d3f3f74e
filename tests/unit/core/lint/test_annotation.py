"""Findings that a CRD's annotation ignores, and errors in the annotation itself."""

from collections import Counter
from typing import Any

import pytest

from crdkeeper.apiserver.schema import rules
from crdkeeper.core.lint import annotation
from crdkeeper.core.lint.annotation import ANNOTATION, apply_annotation, parse
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions.style import BOOLEAN
from crdkeeper.core.lint.conventions.suppressions import IGNORE_INVALID, IGNORE_UNUSED
from crdkeeper.core.lint.found import Found, Spot
from crdkeeper.core.lint.linter import lint
from crdkeeper.core.lint.severity import Severity
from tests.unit.core.lint.definitions import definition, schema, version

ON = Found(BOOLEAN, Spot("v1:.spec.on", ("spec", "versions", 0)), (), "is a boolean", Severity.INFO)
REFUSED = Found(rules.SCOPE, Spot("spec.scope", ()), (), "Required value", Severity.ERROR, final=True)
AT = f"metadata.annotations[{ANNOTATION}]"


def metadata(text: str) -> dict[str, Any]:
    return {"annotations": {ANNOTATION: text}}


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        ("boolean .spec.on: Two states.", True),
        ("boolean v1:.spec.on: Two states.", True),
        ("boolean .spec.*: Two states.", True),
        ("boolean *: Two states.", True),
        ("boolean *spec*n: Two states.", True),
        ("boolean v*:*.on: Two states.", True),
        ("boolean .s*s*on: Two states.", False),
        ("boolean .spec.on*on: Two states.", False),
        ("boolean *.*.*.*: Two states.", False),
        ("boolean **: Two states.", True),
        ("boolean v2:.spec.on: Two states.", False),
        ("boolean .spec: Two states.", False),
        ("boolean .spec.o.: Two states.", False),
        ("float .spec.on: Two states.", False),
        ("boolean .spec.on:", False),
    ],
)
def test_a_line(line: str, ignored: bool) -> None:
    first, *faults = apply_annotation(metadata(f"\n  {line}\n"), [ON])
    assert first.ignored == ("Two states." if ignored else "")
    assert bool(faults) is not ignored


@pytest.mark.parametrize(
    "metadata", [{}, {"annotations": None}, {"annotations": {}}, {"annotations": {"a": "b"}}]
)
def test_none(metadata: dict[str, object]) -> None:
    assert parse(metadata) == ([], [])
    assert apply_annotation(metadata, [ON]) == [ON]


def test_what_is_not_understood() -> None:
    lines, bad = parse(metadata("boolean .spec.on\n\nfloat .spec.x: Fine."))
    assert [each.id for each in lines] == ["float"]
    assert bad == ["'boolean .spec.on' is not in the form <id> <field>: <reason>"]


def test_the_first_line_counts() -> None:
    lines = ("boolean .spec.o*: One.", "boolean .spec.on: Two.", "boolean *: Three.")
    for first, *others in (lines, (*lines[1:], lines[0]), (lines[2], *lines[:2])):
        found, *unused = apply_annotation(metadata("\n".join((first, *others))), [ON])
        assert found.ignored == first.split(": ")[1]
        assert [each.rule for each in unused] == [IGNORE_UNUSED] * 2


def test_a_hostile_glob_takes_no_longer_than_others() -> None:
    # As a regular expression with `.*` for each star, it takes longer than the universe has existed.
    field = ".spec." + "a" * 300
    on = ON._replace(where=Spot(field, ()))
    found, unused = apply_annotation(metadata(f"boolean {'*a' * 100}*b: Slow."), [on])
    assert (found.ignored, unused.rule) == ("", IGNORE_UNUSED)


def test_no_more_lines_are_read_than_people_write() -> None:
    text = "\n".join(f"boolean .spec.f{i}: Ours." for i in range(100_000))
    fault, *unused = apply_annotation(metadata(text), [])
    assert (fault.rule, len(unused)) == (IGNORE_INVALID, 1_000)
    assert fault.message == f"{ANNOTATION}: only the first 1,000 of 100,000 lines are read"
    _, bad = parse(metadata("x" * 100_000))
    assert len(bad[0]) < 300


def test_the_work_for_many_globs_and_findings_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Counter[str]()
    matches = annotation._Glob.matches

    def counted(self: Any, field: str) -> bool:
        tries["tried"] += self.parts
        return matches(self, field)

    monkeypatch.setattr(annotation._Glob, "matches", counted)
    monkeypatch.setattr(annotation, "MAX_TRIES", 10_000)
    text = "\n".join(f"boolean *{i}*x: Ours." for i in range(100))
    found = [ON._replace(where=Spot(f"v1:.spec.on{i}", ())) for i in range(200)]
    *same, fault = apply_annotation(metadata(f"{text}\nboolean *on1: Two states."), found)
    assert tries["tried"] <= 10_000
    assert fault.rule is IGNORE_INVALID
    assert fault.message.endswith("too many fields with * for 200 findings; some remain")
    assert same == [each._replace(ignored="Two states.") if i == 1 else each for i, each in enumerate(found)]


@pytest.mark.parametrize(
    ("line", "convention", "message"),
    [
        (
            "boolean .spec.on",
            IGNORE_INVALID,
            f"{ANNOTATION}: 'boolean .spec.on' is not in the form <id> <field>: <reason>",
        ),
        ("spelling .spec.on: Ours.", IGNORE_INVALID, "there is no rule 'spelling'"),
        (
            "float .spec.on: Ours.",
            IGNORE_UNUSED,
            "float is ignored, but there is no such finding here",
        ),
        (
            "scope spec.scope: Ours.",
            IGNORE_UNUSED,
            "scope is ignored, but the API server refuses it anyway",
        ),
    ],
)
def test_what_is_wrong_with_it_is_a_finding(line: str, convention: Convention, message: str) -> None:
    *found, fault = apply_annotation(metadata(line), [ON, REFUSED])
    assert found == [ON, REFUSED]
    assert (fault.rule, fault.field, fault.message) == (convention, AT, message)
    assert fault.severity is convention.severity
    assert fault.steps == ("metadata", "annotations", ANNOTATION)


@pytest.mark.parametrize("field", ["v1alpha1", ".", "*"])
def test_the_root_can_be_named(field: str) -> None:
    annotations = {ANNOTATION: f"open-schema {field}: Its fields are those of charts."}
    content = {**schema(), "x-kubernetes-preserve-unknown-fields": True}
    crd = definition(
        version(content),
        metadata={"name": "widgets.example.com", "annotations": annotations},
    )
    (one,) = [each for each in lint(crd) if each.rule.id == "open-schema"]
    assert (one.field, one.path, bool(one.ignored)) == ("v1alpha1", ".", True)
