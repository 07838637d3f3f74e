"""What is said of a definition in each state, and what kstatus (Flux, Argo CD, Helm) makes of it."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.advice import Advice
from crdkeeper.core.composer.holding import Waiting
from crdkeeper.core.composer.offering import SeenComposition
from crdkeeper.core.composer.plan import Gathered, Plan, plan
from crdkeeper.core.composer.standing import standing, standing_unread
from crdkeeper.core.diagnosis.nameconflicts import NameConflict
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.rehearsal.report import RehearsalReport
from tests.kstatus import status_of
from tests.unit.core.composer.test_plan import GOING, NOW, OURS, TIGHTER, crd, gathered, owned
from tests.unit.core.composition.documents import document

Json = Any
NO_RIGHT = Verdict(reasons.RIGHT_MISSING, "the composer lacks rights")
SAFE = RehearsalReport("databases")
NOT_LISTED = Verdict(reasons.NOT_LISTED, "the webhook fails")


def with_(known: Gathered, **changes: Any) -> Gathered:
    values = {each: getattr(known, each) for each in Gathered.__slots__}
    return Gathered(**(values | changes))


def conflicting(reason: str = "ShortNamesConflict", *, established: str = "True") -> Json:
    live = crd()
    live["status"]["conditions"] = [
        {"type": "NamesAccepted", "status": "False", "reason": reason, "message": '"db" is already in use'},
        {"type": "Established", "status": established, "reason": "NotAccepted"},
    ]
    return live


def installing(reason: str) -> Json:
    live = crd()
    live["status"]["conditions"][1] = {"type": "Established", "status": "False", "reason": reason}
    return live


def terminating() -> Json:
    live = crd()
    live["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    return live


DELETED = gathered(document(metadata=GOING), live=crd(), composites=2)


@pytest.mark.parametrize(
    ("known", "reason", "judged"),
    [
        (gathered(live=crd()), "WatchingCompositeResource", "Current"),
        (gathered(), "NoCRD", "InProgress"),
        (gathered(live=crd(established=False)), "Establishing", "InProgress"),
        (gathered(live=installing("Installing")), "Establishing", "InProgress"),
        (gathered(live=installing("Whatever")), "Establishing", "InProgress"),
        (gathered(live=crd(uid="0")), "NotOurs", "Failed"),
        (gathered(TIGHTER, live=crd(), composites=3), "Rehearsing", "InProgress"),
        (gathered(TIGHTER, live=crd(), composites=3, rehearsal=SAFE), "BreakingChanges", "Failed"),
        (gathered(live=conflicting()), "ShortNamesConflict", "Failed"),
        (gathered(live=conflicting(established="False")), "ShortNamesConflict", "Failed"),
        (gathered(live=conflicting("made up: by somebody")), "Establishing", "InProgress"),
        (with_(gathered(live=crd(), composites=None), hidden=NO_RIGHT), "RightMissing", "Failed"),
        (with_(gathered(live=crd(), composites=3), hidden=NO_RIGHT), "RightMissing", "Failed"),
        (with_(gathered(live=crd(), composites=None), hidden=NOT_LISTED), "NotListed", "InProgress"),
        (gathered(live=terminating()), "CRDTerminating", "InProgress"),
        (DELETED, "TerminatingCompositeResource", "Terminating"),
        (
            gathered(document(metadata=GOING), live=terminating()),
            "TerminatingCompositeResource",
            "Terminating",
        ),
    ],
)
def test_ready_and_kstatus(known: Gathered, reason: str, judged: str) -> None:
    found = standing(known, plan(known), NOW)
    conditions = {each.type: each for each in found.conditions}
    assert conditions["Ready"].reason == reason
    assert conditions.keys() >= {"Accepted", "Established", "Offered", "Ready"}
    metadata = known.definition.metadata.to_object()
    assert status_of({"metadata": metadata, "status": found.to_object()}) == judged
    listed = {(each.condition, each.status, each.name) for each in reasons.REASONS}
    said = {(each.type, each.status, each.reason) for each in found.conditions}
    assert {each for each in said if each[0] in (reasons.ACCEPTED, reasons.ESTABLISHED)} <= listed


def test_a_definition_is_ready_although_nothing_can_be_composed() -> None:
    denied = Verdict(reasons.RIGHT_MISSING_TO_COMPOSE, "the composer lacks rights")
    small = SeenComposition("small", "platform.example.com", "v1", "Database", True)
    known = with_(gathered(live=crd()), compositions=(small,), denied=denied)
    for status in (
        standing(known, plan(known), NOW),
        standing_unread(known.definition, NOT_LISTED, known.compositions, denied, NOW),
    ):
        found = {each.type: each for each in status.conditions}
        assert (found["Offered"].status, found["Offered"].reason) == ("False", "RightMissing")
    assert {each.type: each.status for each in standing(known, plan(known), NOW).conditions}[
        "Ready"
    ] == "True"


def test_the_holder_of_a_name_is_named() -> None:
    conflict = NameConflict("shortNames", "db", "caches.platform.example.com", "shortNames")
    known = with_(gathered(live=conflicting()), conflicts=(conflict,))
    found = {each.type: each for each in standing(known, plan(known), NOW).conditions}
    assert found["Established"].message.startswith(
        'shortNames "db" is held by CRD caches.platform.example.com (as its short name). '
        "The API is still served under its former names. "
    )


def test_without_a_known_holder_the_server_is_quoted() -> None:
    known = gathered(live=conflicting(established="False"))
    found = {each.type: each for each in standing(known, plan(known), NOW).conditions}
    assert found["Established"].message.startswith(
        'ShortNamesConflict: "db" is already in use. The API is not served. '
    )


def test_protect_names_the_first_composites() -> None:
    known = with_(DELETED, composites=7, first=tuple(f"team/a-{number}" for number in range(5)))
    found = {each.type: each for each in standing(known, plan(known), NOW).conditions}
    assert found["Established"].message == (
        "7 composites (team/a-0, team/a-1, team/a-2, team/a-3, team/a-4 and 2 more); "
        "spec.deletion is Protect: delete them, or set spec.deletion to Cascade or Orphan."
    )


HELD = Waiting(2, ("team/a (x)", "team/b (x)"), 2)
CASCADE = gathered(document(metadata=GOING, deletion="Cascade"), live=crd(), composites=2)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (CASCADE, "The composites are being deleted. 2 composites left."),
        (
            with_(CASCADE, waiting=HELD),
            "The composites are being deleted. 2 composites left. "
            "2 composites wait for their finalizers: team/a (x), team/b (x).",
        ),
        (with_(CASCADE, live=terminating(), composites=0), "The CRD is being deleted."),
        (
            with_(CASCADE, live=terminating(), waiting=HELD),
            "The CRD is being deleted. 2 composites left. "
            "2 composites wait for their finalizers: team/a (x), team/b (x).",
        ),
        (with_(CASCADE, composites=0), "The definition is being deleted."),
        (
            with_(CASCADE, composites=None, hidden=NOT_LISTED),
            "the webhook fails",
        ),
    ],
)
def test_a_deletion_that_continues_needs_nobody(known: Gathered, said: str) -> None:
    found = {each.type: each for each in standing(known, plan(known), NOW).conditions}
    assert found["Ready"].message == found["Established"].message == said
    assert "Reconciling" in found
    assert "Stalled" not in found


@pytest.mark.parametrize(
    "known", [DELETED, with_(DELETED, waiting=HELD), with_(CASCADE, composites=None, hidden=NO_RIGHT)]
)
def test_a_deletion_that_a_person_stops_is_stalled(known: Gathered) -> None:
    found = {each.type for each in standing(known, plan(known), NOW).conditions}
    assert "Stalled" in found
    assert "Reconciling" not in found


def test_a_deletion_keeps_what_was_accepted() -> None:
    before = standing(gathered(live=crd(uid="0")), plan(gathered(live=crd(uid="0"))), NOW)
    value = {**document(metadata=GOING), "status": before.to_object()}
    known = gathered(value, live=crd(), composites=2)
    found = {each.type: each for each in standing(known, plan(known), NOW).conditions}
    assert found["Accepted"].reason == "NotOurs"


def test_what_the_api_server_answered_is_said() -> None:
    known = gathered(live=crd())
    decided = Plan(plan(known).step, Verdict(reasons.FAILED, "cannot apply the CRD: 500"))
    found = {each.type: each for each in standing(known, decided, NOW).conditions}
    assert (found["Ready"].status, found["Ready"].reason) == ("False", "Failed")
    assert "Reconciling" in found
    assert OURS["generation"] == found["Ready"].observed_generation


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        (Advice("v1:.spec.a: no. Why. Remedy.", 1), "v1:.spec.a: no. Why. Remedy."),
        (
            Advice("v1:.spec.a: no. Why. Remedy.", 3),
            "v1:.spec.a: no. Why. Remedy. And 2 more warnings: `crdkeeper lint` lists them.",
        ),
    ],
)
def test_what_lint_says_is_a_warning(advice: Advice, said: str) -> None:
    known = gathered(live=crd())
    known = with_(known, facts=replace(known.facts, advice=advice))
    found = {each.type: each for each in standing(known, plan(known), NOW).conditions}
    assert (found["Accepted"].status, found["Accepted"].reason) == ("True", "AcceptedWithWarnings")
    assert found["Accepted"].message.endswith(said)
    assert found["Ready"].status == "True"


def test_an_owner_that_somebody_gives_to_the_crd_is_warned_of() -> None:
    live = owned(crd())
    live["metadata"]["ownerReferences"][0]["name"] = "x" * 100_000
    known = gathered(live=live)
    conditions = {each.type: each for each in standing(known, plan(known), NOW).conditions}
    accepted = conditions["Accepted"]
    assert (accepted.status, accepted.reason) == ("True", "AcceptedWithWarnings")
    assert accepted.message.startswith("Owner xxx")
    assert accepted.message.endswith("Remove metadata.ownerReferences from the CRD.")
    assert conditions["Ready"].status == "True"
