"""Terminating: what blocks a deletion, and how to continue without losing or leaving anything."""

from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.core.diagnosis.conditions import terminating
from crdkeeper.core.diagnosis.conditions.terminating import TerminatingFacts, judge
from crdkeeper.core.diagnosis.deletion import (
    CLEANUP,
    Blockers,
    BlockerTally,
    Deletion,
    FinalizerUse,
    deletion,
)
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.builders import crd, definition

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def verdict(blockers: Blockers | None, *finalizers: str, message: str = "") -> Verdict:
    found = Deletion(SINCE, finalizers or (CLEANUP,), message)
    return judge(TerminatingFacts(definition(), found, blockers))


def blockers(*objects: tuple[str, ...], complete: bool = True, failure: Failure | None = None) -> Blockers:
    """Those of objects with these finalizers."""
    tally = BlockerTally()
    tally.add(
        {"metadata": {"name": f"w{i}", "namespace": "ns", "finalizers": list(each)}}
        for i, each in enumerate(objects)
    )
    return tally.blockers(complete=complete, failure=failure)


def test_nothing_is_being_deleted() -> None:
    found = judge(TerminatingFacts(definition(), None, None))
    assert (found.reason, found.reason.healthy) == (terminating.NOT_TERMINATING, True)


def test_objects_and_finalizers_are_named() -> None:
    found = verdict(blockers(("a/x", "b/y"), ("a/x",), ("a/x",), ("a/x",), ()))
    assert (found.reason, found.reason.status) == (terminating.OBJECTS_HAVE_FINALIZERS, "True")
    assert found.message.startswith(
        "Being deleted since 2026-01-01T00:00:00Z. 5 objects left: a/x on 4 objects (ns/w0, ns/w1, ns/w2, "
        "…); b/y on 1 object (ns/w0). Check that the controller"
    )
    assert "Leave the CRD's own finalizer" in found.message


def test_more_than_was_looked_at() -> None:
    assert "At least 1 object left: " in verdict(blockers(("a/x",), complete=False)).message


@pytest.mark.parametrize(
    ("found", "finalizers", "reason"),
    [
        (None, (CLEANUP,), "Pending"),
        (blockers((), ()), (CLEANUP,), "ObjectsLeft"),
        (blockers(), (CLEANUP,), "CleaningUp"),
        (blockers(), (CLEANUP, "mine/f"), "DefinitionHasFinalizers"),
        (None, ("mine/f",), "DefinitionHasFinalizers"),
        (
            blockers(failure=Failure(ProbeTrouble.FORBIDDEN, 403, "no"), complete=False),
            (CLEANUP,),
            "NotPermitted",
        ),
        (
            blockers(failure=Failure(ProbeTrouble.FAILED, 500, "no webhook"), complete=False),
            (CLEANUP,),
            "ObjectsUnreadable",
        ),
        (
            blockers(failure=Failure(ProbeTrouble.BUSY, 429, "busy"), complete=False),
            (CLEANUP,),
            "APIServerUnavailable",
        ),
        # What was seen before the failure counts.
        (
            blockers(("a/x",), failure=Failure(ProbeTrouble.SILENT, 0, "?"), complete=False),
            (CLEANUP,),
            "ObjectsHaveFinalizers",
        ),
    ],
)
def test_reasons(found: Blockers | None, finalizers: tuple[str, ...], reason: str) -> None:
    said = verdict(found, *finalizers)
    assert (said.reason.name, said.reason.status, said.reason.healthy) == (reason, "True", False)


def test_own_finalizers_of_the_definition_are_told_too() -> None:
    said = verdict(blockers(("a/x",)), CLEANUP, "mine/f")
    assert "The CRD itself also has the finalizers mine/f." in said.message


def test_the_servers_words_are_told_where_nothing_else_explains() -> None:
    said = verdict(blockers(), message="could not list instances")
    assert 'The API server says: "could not list instances".' in said.message


def test_memory_and_output_are_bounded() -> None:
    found = blockers(*((f"f{i}/x",) for i in range(500)))
    assert (found.objects, len(found.finalizers), found.finalizers_total) == (500, 10, 100)
    assert "; and 90 more finalizers." in verdict(found).message


def test_examples_are_the_first() -> None:
    assert blockers(*(("a/x",) for _ in range(9))).finalizers == (
        FinalizerUse("a/x", 9, ("ns/w0", "ns/w1", "ns/w2")),
    )


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, None),
        (
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [CLEANUP]},
            Deletion(SINCE, (CLEANUP,), "in progress"),
        ),
    ],
)
def test_the_deletion_of_a_definition(metadata: dict[str, Any], expected: Deletion | None) -> None:
    said = {"conditions": [{"type": "Terminating", "status": "True", "message": "in progress"}]}
    assert deletion(crd(status=said, **metadata)) == expected
