"""What the status of a Composition says."""

import pytest

from crdkeeper.api.composition import Composition, CompositionStatus
from crdkeeper.api.meta import find_condition
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions import reasons
from crdkeeper.core.revisions.standing import CompositionFacts, judged, kept_before, standing
from crdkeeper.core.templates.compiled import CompilationResult
from crdkeeper.core.templates.problem import TemplateProblem
from crdkeeper.core.text import visible
from tests.kstatus import Status, status_of
from tests.unit.builders import NOW
from tests.unit.core.revisions.revisions import composition

GADGET = ("gadgets.example.com/v1", "Gadget")


def result(*problems: TemplateProblem) -> CompilationResult:
    return CompilationResult(None, problems, problems, {}, (), frozenset())


def status(facts: CompositionFacts) -> CompositionStatus:
    return standing(Composition.model_validate(composition()), facts, NOW)


VALID = Verdict(reasons.VALID_ALL, "")


@pytest.mark.parametrize(
    ("facts", "ready", "reason", "expected"),
    [
        (CompositionFacts(VALID, "small-2", 2), "True", "Current", "Current"),
        (CompositionFacts(VALID, "small-2", 2, kept="no"), "True", "RevisionsKept", "Current"),
        (CompositionFacts(VALID, "", 0, "no"), "False", "RevisionFailed", "Failed"),
        (CompositionFacts(VALID, "", 0, "no", passing=True), "False", "RevisionFailed", "InProgress"),
        (CompositionFacts(judged(result(), [GADGET]), "a", 1), "False", "KindMissing", "InProgress"),
        (CompositionFacts(Verdict(reasons.INVALID, ""), "a", 1), "False", "Invalid", "Failed"),
        (
            CompositionFacts(Verdict(reasons.DEFINITION_MISSING, ""), "", 0),
            "Unknown",
            "DefinitionMissing",
            "InProgress",
        ),
        (CompositionFacts(Verdict(reasons.NOT_READ, ""), "a", 1), "Unknown", "NotRead", "InProgress"),
    ],
)
def test_ready_and_kstatus(facts: CompositionFacts, ready: str, reason: str, expected: Status) -> None:
    found = status(facts)
    condition = find_condition(found.conditions, "Ready")
    assert condition is not None
    assert (condition.status, condition.reason) == (ready, reason)
    assert found.revision == facts.number
    object_ = {**composition(), "status": found.model_dump(mode="json", by_alias=True)}
    assert status_of(object_) == expected


def test_errors_are_named_with_path_column_and_hint() -> None:
    at = root("spec").child("resources").index(0).child("template")
    first = TemplateProblem(at, "undefined field 'siez'", "Did you mean size?", 17)
    others = [TemplateProblem(at.child(f"f{each}"), "is wrong") for each in range(6)]
    said = judged(result(first, *others), ()).message
    assert said.startswith(
        "spec.resources[0].template: column 17: undefined field 'siez'. Did you mean size? "
        "spec.resources[0].template.f0: is wrong. "
    )
    assert said.endswith("And 2 more errors.")


def test_an_error_counts_more_than_a_kind_that_is_missing() -> None:
    problem = TemplateProblem(root("spec"), "is wrong")
    assert judged(result(problem), [GADGET]).reason is reasons.INVALID


@pytest.mark.parametrize(("newest", "before", "after"), [(2, 1, 2), (1, 2, 2), (0, 2, 2), (0, 0, 0)])
def test_the_number_does_not_fall_whatever_is_deleted(newest: int, before: int, after: int) -> None:
    written = {**composition(), "status": {"revision": before}}
    facts = CompositionFacts(VALID, "small", newest)
    assert standing(Composition.model_validate(written), facts, NOW).revision == after


def test_control_characters_are_escaped() -> None:
    problem = TemplateProblem(root("spec").child("a\x1b[2J"), "undefined field '\u202e'")
    found = status(CompositionFacts(judged(result(problem), ()), "", 0))
    message = found.conditions[0].message
    assert "\\x1b" in message
    assert "\\u202e" in message
    assert message.isprintable()


def test_a_status_that_says_the_same_stays_as_it_is() -> None:
    facts = CompositionFacts(VALID, "small-2", 2)
    written = {**composition(), "status": status(facts).model_dump(mode="json", by_alias=True)}
    again = Composition.model_validate(written)
    assert standing(again, facts, NOW) == again.status


@pytest.mark.parametrize("kept", ["", "they are guarded", "two\nlines: no. Grant ##[it]"])
def test_what_keeps_revisions_is_read_from_the_status(kept: str) -> None:
    facts = CompositionFacts(VALID, "small-2", 2, kept=kept)
    written = {**composition(), "status": status(facts).model_dump(mode="json", by_alias=True)}
    again = Composition.model_validate(written)
    assert kept_before(again) == visible(kept)
    facts = CompositionFacts(VALID, "small-2", 2, kept=kept_before(again))
    assert standing(again, facts, NOW) == again.status


def test_another_reason_says_nothing_of_what_keeps_revisions() -> None:
    facts = CompositionFacts(VALID, "", 0, "Older ones that no composite uses cannot be deleted: no")
    written = {**composition(), "status": status(facts).model_dump(mode="json", by_alias=True)}
    assert kept_before(Composition.model_validate(written)) == ""
