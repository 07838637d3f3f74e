"""The next step for a CompositeResourceDefinition, and the conditions that follow."""

import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.apiserver.schema.props import VALIDATIONS
from crdkeeper.core.composer.fence import fencing
from crdkeeper.core.composer.plan import FINALIZER, ComposerStep, Gathered, plan, takes
from crdkeeper.core.composer.standing import standing
from crdkeeper.core.composer.update import Rehearsed, UpdateFacts, judge
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.composition.definition import OWNER
from crdkeeper.core.rehearsal.report import RehearsalReport
from tests.unit.core.composition.documents import SPEC, document, schema, version
from tests.unit.jsonpatch import patched

Json = Any
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OURS = {"uid": "1-2", "generation": 3, "finalizers": [FINALIZER]}
GOING = {**OURS, "deletionTimestamp": "2026-01-02T03:04:05Z"}
LET_GO = {**GOING, "finalizers": ["example.com/other"]}


def gathered(
    value: Json = None,
    *,
    live: Json = None,
    composites: int | None = 0,
    rehearsal: RehearsalReport | None = None,
) -> Gathered:
    value = document(metadata=OURS) if value is None else value
    definition = CompositeResourceDefinition.model_validate(value)
    judged, update = judge(
        accept(value), live if live is not None and takes(definition, live) else None, None
    )
    return Gathered(definition, judged, live, composites, facts=UpdateFacts(update, Rehearsed(rehearsal)))


def crd(value: Json = None, *, uid: str = "1-2", established: bool = True) -> Json:
    """The CRD as it is read from the cluster."""
    found = copy.deepcopy(accept(document(metadata=OURS) if value is None else value).crd)
    assert found is not None
    found["metadata"] |= {"uid": "9", "generation": 1, "resourceVersion": "5"}
    found["metadata"]["annotations"][OWNER] = uid
    conditions = [
        {"type": each, "status": "True", "reason": "R"} for each in ("NamesAccepted", "Established")
    ]
    found["status"] = {"storedVersions": ["v1"], "conditions": conditions if established else []}
    return found


def fenced(live: Json) -> Json:
    """The CRD when its API refuses new composites."""
    return patched(live, fencing(live))


def nobodys(live: Json) -> Json:
    """The CRD after somebody has removed what it says about its definition."""
    del live["metadata"]["annotations"][OWNER]
    return live


def going(live: Json) -> Json:
    """The CRD when it is being deleted."""
    live["metadata"]["deletionTimestamp"] = GOING["deletionTimestamp"]
    return live


ADOPTING = document(metadata={**OURS, "annotations": {"crdkeeper.dev/adopt": "true"}})


def owned(live: Json) -> Json:
    """The CRD as another program made it, to be deleted with an object of its own."""
    live["metadata"]["ownerReferences"] = [
        {"apiVersion": "example.com/v1", "kind": "Owner", "name": "theirs", "uid": "7", "controller": True}
    ]
    return live


def outcome(known: Gathered) -> tuple[ComposerStep, str]:
    made = plan(known)
    return made.step, made.refusal.reason.name if made.refusal is not None else ""


REPLICAS = {"type": "integer", "minimum": 2, "default": 2}
TIGHTER = document(
    version(of=schema({**SPEC, "properties": {**SPEC["properties"], "replicas": REPLICAS}})), metadata=OURS
)

CLOSED = document(
    version(of=schema(**{VALIDATIONS: fencing(crd())[0]["value"]})),
    metadata=OURS,
)
"""A definition that was made from such a CRD."""


@pytest.mark.parametrize(
    ("known", "step", "reason"),
    [
        (gathered(document(metadata={"uid": "1-2"})), ComposerStep.ADD_FINALIZER, ""),
        (gathered(), ComposerStep.APPLY, ""),
        (gathered(live=crd()), ComposerStep.APPLY, ""),
        (gathered(live=crd(uid="0")), ComposerStep.NOTHING, "NotOurs"),
        (gathered(ADOPTING, live=owned(crd(uid="0"))), ComposerStep.NOTHING, "NotOurs"),
        (gathered(ADOPTING, live=owned(crd())), ComposerStep.APPLY, ""),
        (
            gathered(
                document(metadata={**OURS, "annotations": {"crdkeeper.dev/adopt": "true"}}), live=crd(uid="0")
            ),
            ComposerStep.APPLY,
            "",
        ),
        (gathered(live=fenced(crd())), ComposerStep.UNFENCE, ""),
        (gathered(live=fenced(crd(uid="0"))), ComposerStep.UNFENCE, "NotOurs"),
        (gathered(live=fenced(nobodys(crd()))), ComposerStep.NOTHING, "NotOurs"),
        (gathered(live=fenced(going(crd()))), ComposerStep.NOTHING, "CRDTerminating"),
        (gathered(TIGHTER, live=fenced(crd()), composites=3), ComposerStep.UNFENCE, "Rehearsing"),
        (gathered(CLOSED, live=fenced(crd())), ComposerStep.APPLY, ""),
        (gathered(document(metadata=LET_GO), live=crd()), ComposerStep.NOTHING, ""),
        (gathered(document(metadata=LET_GO), live=fenced(crd())), ComposerStep.UNFENCE, ""),
        (gathered(document(metadata=GOING), live=fenced(crd(uid="0"))), ComposerStep.REMOVE_FINALIZER, ""),
        (
            gathered(document(metadata=GOING), live=fenced(nobodys(crd()))),
            ComposerStep.REMOVE_FINALIZER,
            "",
        ),
        (gathered(TIGHTER, live=crd(), composites=0), ComposerStep.APPLY, ""),
        (gathered(TIGHTER, live=crd(), composites=3), ComposerStep.NOTHING, "Rehearsing"),
        (
            gathered(TIGHTER, live=crd(), composites=3, rehearsal=RehearsalReport("a")),
            ComposerStep.NOTHING,
            "BreakingChanges",
        ),
        (gathered(TIGHTER, live=crd(), composites=None), ComposerStep.NOTHING, "BreakingChanges"),
        (
            gathered(document(version(of=schema({"type": "array"})), metadata=OURS)),
            ComposerStep.NOTHING,
            "Invalid",
        ),
        (
            gathered(document(metadata=GOING), live=crd(), composites=2),
            ComposerStep.NOTHING,
            "TerminatingCompositeResource",
        ),
        (
            gathered(document(metadata=GOING), live=crd(), composites=None),
            ComposerStep.NOTHING,
            "TerminatingCompositeResource",
        ),
        (gathered(document(metadata=GOING), live=crd()), ComposerStep.FENCE, ""),
        (gathered(document(metadata=GOING), live=fenced(crd())), ComposerStep.SETTLE, ""),
        (
            replace(gathered(document(metadata=GOING), live=fenced(crd())), settled=True),
            ComposerStep.DELETE_CRD,
            "",
        ),
        (
            replace(gathered(document(metadata=GOING), live=fenced(crd()), composites=1), settled=True),
            ComposerStep.NOTHING,
            "TerminatingCompositeResource",
        ),
        (gathered(document(metadata=GOING), live=crd(established=False)), ComposerStep.DELETE_CRD, ""),
        (
            gathered(document(metadata=GOING, deletion="Cascade"), live=crd()),
            ComposerStep.DELETE_CRD,
            "",
        ),
        (
            gathered(document(metadata=GOING, deletion="Orphan"), live=fenced(crd())),
            ComposerStep.UNFENCE,
            "",
        ),
        (gathered(document(metadata=GOING)), ComposerStep.REMOVE_FINALIZER, ""),
        (
            gathered(document(metadata=GOING), live=crd(uid="0"), composites=2),
            ComposerStep.REMOVE_FINALIZER,
            "",
        ),
        (
            gathered(document(metadata=GOING, deletion="Cascade"), live=crd(), composites=2),
            ComposerStep.DELETE_COMPOSITES,
            "",
        ),
        (
            gathered(document(metadata=GOING, deletion="Orphan"), live=crd(), composites=2),
            ComposerStep.RELEASE_CRD,
            "",
        ),
    ],
)
def test_the_next_step(known: Gathered, step: ComposerStep, reason: str) -> None:
    assert outcome(known) == (step, reason)


def test_breaking_changes_can_be_allowed() -> None:
    value = copy.deepcopy(TIGHTER)
    value["spec"]["breakingChanges"] = "Allow"
    assert outcome(gathered(value, live=crd(), composites=3)) == (ComposerStep.APPLY, "")


def test_a_breaking_change_is_named() -> None:
    refusal = plan(gathered(TIGHTER, live=crd(), composites=3, rehearsal=RehearsalReport("a"))).refusal
    assert refusal is not None
    assert "Tried on 3 composites: none is affected. v1 spec.replicas: " in refusal.message


@pytest.mark.parametrize(
    ("known", "accepted", "established", "ready"),
    [
        (gathered(live=crd()), "Accepted", "WatchingCompositeResource", "True"),
        (gathered(live=crd(established=False)), "Accepted", "Establishing", "Unknown"),
        (gathered(), "Accepted", "NoCRD", "False"),
        (gathered(live=crd(uid="0")), "NotOurs", "NoCRD", "False"),
        (
            gathered(document(metadata=GOING), live=crd(), composites=2),
            "Accepted",
            "TerminatingCompositeResource",
            "False",
        ),
    ],
)
def test_conditions(known: Gathered, accepted: str, established: str, ready: str) -> None:
    status = standing(known, plan(known), NOW)
    found = {each.type: each for each in status.conditions}
    assert (found["Accepted"].reason, found["Established"].reason) == (accepted, established)
    assert found["Ready"].status == ready
    assert status.observed_generation == 3


def test_the_owner_of_a_crd_is_named() -> None:
    refusal = plan(gathered(ADOPTING, live=owned(crd(uid="0")))).refusal
    assert refusal is not None
    assert "Owner theirs" in refusal.message
    assert "metadata.ownerReferences" in refusal.message


def test_a_long_name_of_an_owner_does_not_cut_off_the_remedy() -> None:
    live = owned(crd(uid="0"))
    live["metadata"]["ownerReferences"][0] |= {"kind": "K" * 100_000, "name": "x" * 100_000}
    refusal = plan(gathered(ADOPTING, live=live)).refusal
    assert refusal is not None
    assert len(refusal.message) < 2000
    assert refusal.message.endswith("remove metadata.ownerReferences from the CRD")


def test_a_lost_finalizer_comes_back_even_if_the_change_is_refused() -> None:
    """Or a later deletion would ignore spec.deletion."""
    bare = {**TIGHTER, "metadata": {**TIGHTER["metadata"], "finalizers": []}}
    known = gathered(bare, live=crd(), composites=2)
    made = plan(known)
    assert made.step is ComposerStep.ADD_FINALIZER
    assert made.refusal == plan(gathered(TIGHTER, live=crd(), composites=2)).refusal is not None
    assert plan(gathered(bare, live=crd(uid="0"), composites=2)).step is ComposerStep.NOTHING
