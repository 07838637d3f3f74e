"""How old evidence may be: for each step, and for who only waits."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crdkeeper.core.retirement.evidence import Obstacle
from crdkeeper.core.retirement.facts import RetirementFacts
from crdkeeper.core.retirement.steps import decide
from crdkeeper.operations.retirement.run import due_time
from tests.unit.core.retirement.cases import (
    HOUR,
    NOW,
    definition,
    entry,
    evidence,
    facts,
    owner,
    passed,
)

NEW = entry("v1")
SERVED = definition(entry("v1alpha1"), NEW)
DEPRECATED = definition(entry("v1alpha1", deprecated=True), NEW)
UNSERVED = definition(entry("v1alpha1", deprecated=True, served=False), NEW)
QUIET = {"quietSinceTime": (NOW - 300 * HOUR).isoformat(), "definitionUid": "u1"}
AT_ONCE = {"settleSeconds": 0}
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def counted(crd: Mapping[str, Any], ago: timedelta, took: timedelta, **fields: Any) -> RetirementFacts:
    """A count that began so long ago, and took so long."""
    gathered = facts(crd, evidence(**fields), taken=NOW - ago)
    assert gathered.taken is not None
    return replace(gathered, taken=replace(gathered.taken, took=took))


@pytest.mark.parametrize("crd", [DEPRECATED, UNSERVED], ids=["NotServed", "Removed"])
def test_no_step_that_can_break_somebody_is_taken_on_old_evidence(crd: Mapping[str, Any]) -> None:
    of = owner(QUIET, migration=AT_ONCE)
    fresh = decide(of, counted(crd, 4 * MINUTE, SECOND))
    assert (fresh.act, fresh.count) == (True, False)
    old = decide(of, counted(crd, 6 * MINUTE, SECOND))
    assert (old.act, old.count) == (False, True)


def test_a_hold_of_a_month_is_no_month_without_evidence() -> None:
    of, hold = owner(QUIET, migration=AT_ONCE), Obstacle("Removed", "VersionConversion", "x", "y")
    assert passed(of, facts(UNSERVED, evidence(), holds=(hold,))).ready.reason == "VersionConversion"
    gone = decide(of, facts(UNSERVED, evidence(), now=NOW + 720 * HOUR))
    assert (gone.act, gone.count) == (False, True)


@pytest.mark.parametrize("crd", [DEPRECATED, UNSERVED], ids=["NotServed", "Removed"])
def test_a_long_count_can_be_used_once_it_is_complete(crd: Mapping[str, Any]) -> None:
    done = decide(owner(QUIET, migration=AT_ONCE), counted(crd, 61 * MINUTE, 60 * MINUTE))
    assert (done.act, done.count) == (True, False)


@pytest.mark.parametrize(
    "spec",
    [{"mode": "Plan"}, {"mode": "Guide"}, {"suspend": True}],
    ids=["Plan", "Guide", "suspended"],
)
@pytest.mark.parametrize("crd", [SERVED, DEPRECATED, UNSERVED], ids=["Deprecated", "NotServed", "Removed"])
def test_who_waits_for_a_person_counts_at_most_a_twentieth_of_the_time(
    crd: Mapping[str, Any], spec: dict[str, Any]
) -> None:
    of = owner(QUIET, migration=AT_ONCE, **spec)
    assert not decide(of, counted(crd, 9 * MINUTE, SECOND)).count
    assert decide(of, counted(crd, 11 * MINUTE, SECOND)).count
    assert not decide(of, counted(crd, 104 * MINUTE, 5 * MINUTE)).count
    assert decide(of, counted(crd, 106 * MINUTE, 5 * MINUTE)).count


def test_a_version_is_deprecated_on_what_is_known_now() -> None:
    month = decide(owner(), counted(SERVED, 720 * HOUR, SECOND))
    assert (month.due, month.act, month.count) == ("Deprecated", False, True)
    assert decide(owner(), counted(SERVED, 9 * MINUTE, SECOND)).act


def test_what_cannot_be_counted_is_not_tried_all_the_time() -> None:
    failed = {"complete": False, "failure": "expired"}
    assert decide(owner(QUIET), counted(DEPRECATED, 2 * MINUTE, SECOND, **failed)).count
    assert not decide(owner(QUIET), counted(DEPRECATED, 59 * MINUTE, 30 * MINUTE, **failed)).count
    assert decide(owner(QUIET), counted(DEPRECATED, 61 * MINUTE, 30 * MINUTE, **failed)).count


def changed(gathered: RetirementFacts, crd: Mapping[str, Any]) -> RetirementFacts:
    """The same, once somebody has changed the CRD since."""
    return replace(gathered, crd={**crd, "metadata": {**crd["metadata"], "generation": 2}})


@pytest.mark.parametrize("mode", ["Plan", "Guide", "Execute"])
@pytest.mark.parametrize("crd", [SERVED, DEPRECATED, UNSERVED], ids=["Deprecated", "NotServed", "Removed"])
def test_who_changes_the_spec_all_the_time_has_objects_counted_at_a_pace(
    crd: Mapping[str, Any], mode: str
) -> None:
    of = owner(QUIET, migration=AT_ONCE, mode=mode)
    waits = decide(of, changed(counted(crd, 39 * SECOND, 2 * SECOND), crd))
    assert (waits.count, waits.act) == (False, False)
    assert due_time(waits, NOW) == pytest.approx(3.05)
    assert decide(of, changed(counted(crd, 42 * SECOND, 2 * SECOND), crd)).count
    # A long count is not put off for longer than usual.
    assert not decide(of, changed(counted(crd, 69 * MINUTE, 60 * MINUTE), crd)).count
    assert decide(of, changed(counted(crd, 70 * MINUTE, 60 * MINUTE), crd)).count


def test_a_plan_says_when_objects_are_counted_again() -> None:
    waits = decide(owner(mode="Plan"), changed(counted(SERVED, 3 * MINUTE, 2 * MINUTE), SERVED))
    assert waits.ready.reason == "Counting"
    assert waits.ready.message.endswith("all objects are counted again at 2026-11-23T12:09:00Z.")


@pytest.mark.parametrize(("before", "after"), [(SERVED, DEPRECATED), (DEPRECATED, UNSERVED)])
def test_after_a_step_objects_are_counted_at_once(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    gathered = changed(counted(before, 2 * SECOND, SECOND), after)
    assert decide(owner(QUIET, mode="Guide"), gathered).count


def test_a_change_after_the_end_leads_to_no_count() -> None:
    of = owner()
    passed(of, facts(UNSERVED, evidence()))
    gone = definition(NEW)
    removed = decide(of, changed(counted(gone, 61 * MINUTE, SECOND), gone))
    assert (removed.ready.reason, removed.count) == ("Removed", False)
    assert due_time(removed, NOW) == 60


def test_entries_that_somebody_has_moved_by_other_means_are_noticed() -> None:
    of = owner(QUIET, mode="Guide", migration=AT_ONCE)
    named = decide(of, counted(UNSERVED, 11 * MINUTE, SECOND, objects=3))
    assert (named.due, named.count) == ("Migrated", True)
    moved = decide(of, facts(UNSERVED, evidence()))
    assert moved.due == "Removed"


def test_writes_in_flight_end_before_objects_are_counted_for_the_last_time() -> None:
    of = owner(QUIET)  # settleSeconds: 65
    first = passed(of, facts(UNSERVED, evidence()))
    assert (first.ready.status, first.ready.reason, first.act) == ("Unknown", "Settling", False)
    assert due_time(first, NOW + 60 * SECOND) == pytest.approx(5.05)
    waits = passed(of, facts(UNSERVED, evidence(), now=NOW + 64 * SECOND))
    assert (waits.ready.reason, waits.count, waits.act) == ("Settling", False, False)
    over = passed(of, facts(UNSERVED, evidence(), now=NOW + 65 * SECOND))
    assert (over.ready.reason, over.count, over.act) == ("Counting", True, False)
    settled = NOW + 66 * SECOND
    last = decide(of, facts(UNSERVED, evidence(), taken=settled, now=settled))
    assert (last.due, last.act) == ("Removed", True)
    late = decide(of, facts(UNSERVED, evidence(objects=1), taken=settled, now=settled))
    assert (late.due, late.act) == ("Migrated", True)
