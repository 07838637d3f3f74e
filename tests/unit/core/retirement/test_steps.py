"""Which step is due, what holds it, and what is never done."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crdkeeper.api.meta import DEFINITION_UID, find_condition
from crdkeeper.core.retirement.evidence import AuditedUses, Obstacle
from crdkeeper.core.retirement.holds import definition_holds
from crdkeeper.core.retirement.steps import decide
from tests.unit.core.retirement.cases import (
    HOUR,
    NOW,
    definition,
    entry,
    evidence,
    facts,
    owner,
    passed,
    reader,
    writer,
)

NEW = entry("v1")
SERVED = definition(entry("v1alpha1"), NEW)
DEPRECATED = definition(entry("v1alpha1", deprecated=True), NEW)
UNSERVED = definition(entry("v1alpha1", deprecated=True, served=False), NEW)
STORED = definition(entry("v1alpha1", deprecated=True, served=False), NEW, stored=("v1alpha1", "v1"))
GONE = definition(NEW)
QUIET = {"quietSinceTime": (NOW - 3 * HOUR).isoformat(), "definitionUid": "u1"}


@pytest.mark.parametrize(
    ("crd", "due", "reason"),
    [
        (SERVED, "Deprecated", "Deprecating"),
        (DEPRECATED, "NotServed", "StoppingToServe"),
        (STORED, "Migrated", "StartingMigration"),
        (UNSERVED, "Removed", "Removing"),
    ],
    ids=["deprecate", "stop serving", "migrate", "remove"],
)
def test_one_step_is_due_at_a_time(crd: dict[str, object], due: str, reason: str) -> None:
    decision = decide(owner(QUIET, migration={"settleSeconds": 0}), facts(crd, evidence()))
    assert (decision.due, decision.act, decision.ready.reason) == (due, True, reason)


def test_a_version_that_was_never_there_is_no_success() -> None:
    of = owner()
    for _ in range(3):
        decision = passed(of, facts(GONE))
        assert (decision.ready.status, decision.ready.reason) == ("False", "VersionNotFound")
        assert (decision.act, decision.count, decision.due, decision.stalled) == (False, False, None, True)
        assert {each.status for each in decision.steps.values()} == {"Unknown"}
    assert "its versions are v1." in decision.ready.message
    # If it comes, it is retired, and its absence means something from then on.
    assert passed(of, facts(SERVED, evidence())).due == "Deprecated"
    assert passed(of, facts(GONE)).ready.reason == "Removed"


def test_what_another_crd_of_that_name_had_proves_nothing() -> None:
    of = owner(QUIET)
    passed(of, facts(UNSERVED, evidence()))
    assert passed(of, facts(definition(NEW, uid="u2"))).ready.reason == "VersionNotFound"


def test_a_version_that_was_there_before_is_removed() -> None:
    of = owner(QUIET)
    passed(of, facts(UNSERVED, evidence()))
    assert passed(of, facts(GONE)).ready.reason == "Removed"
    # And stays so.
    assert passed(of, facts(GONE)).ready.reason == "Removed"


def test_the_quiet_period_begins_with_the_deprecation() -> None:
    decision = decide(owner(), facts(DEPRECATED, evidence(writer(NOW - 1000 * HOUR))))
    assert (decision.due, decision.ready.reason) == (None, "QuietPeriod")
    assert decision.quiet_since == NOW
    assert decision.quiet_until == NOW + 2 * HOUR


def test_a_writer_starts_the_quiet_period_again() -> None:
    decision = decide(owner(QUIET), facts(DEPRECATED, evidence(writer(NOW - HOUR))))
    assert (decision.due, decision.quiet_since) == (None, NOW - HOUR)
    assert "tool in namespace shop" in decision.steps["Unused"].message


def test_requests_start_it_again_unless_they_may_be_ours() -> None:
    of = owner(QUIET)
    passed(of, facts(DEPRECATED, evidence(readers=(reader(5),)), taken=NOW - HOUR))
    same = facts(DEPRECATED, evidence(readers=(reader(5),)))
    assert decide(of, same).due == "NotServed"
    more = facts(DEPRECATED, evidence(readers=(reader(6),)))
    assert (decide(of, more).due, decide(of, more).quiet_since) == (None, NOW)
    # All that a server has counted since it restarted is newer than the last look.
    restarted = facts(DEPRECATED, evidence(readers=(reader(1, NOW - timedelta(minutes=1)),)))
    assert decide(of, restarted).due is None
    crd = {**DEPRECATED, "spec": {**DEPRECATED["spec"], "conversion": {"strategy": "Webhook"}}}
    assert decide(of, facts(crd, evidence(readers=(reader(6),)))).due == "NotServed"


def test_our_own_counting_is_no_use_of_a_storage_version() -> None:
    of = owner(QUIET)
    versions = (entry("v1alpha1", deprecated=True, storage=True), entry("v1", storage=False))
    crd = definition(*versions, stored=("v1alpha1",))
    passed(of, facts(crd, evidence(readers=(reader(5),)), taken=NOW - HOUR))
    decision = decide(of, facts(crd, evidence(readers=(reader(6),))))
    assert (decision.steps["Unused"].status, decision.ready.reason) == ("True", "StorageVersion")


def test_a_client_in_an_audit_log_starts_the_quiet_period_again() -> None:
    of = owner(QUIET)
    used = AuditedUses((), 1, NOW - HOUR, "ann", 5, NOW - HOUR, NOW)
    decision = decide(of, facts(DEPRECATED, evidence(audit=used)))
    assert (decision.due, decision.quiet_since) == (None, NOW - HOUR)
    assert "by ann, as an audit log shows" in decision.ready.message
    older = replace(used, newest=NOW - 3 * HOUR)
    assert decide(of, facts(DEPRECATED, evidence(audit=older))).due == "NotServed"


def test_our_own_counting_is_no_use_while_the_storage_version_is_not_served() -> None:
    of = owner(QUIET)
    old, other = entry("v1alpha1", deprecated=True), entry("v1beta1")
    unserved = entry("v1", served=False)
    for versions, due in (((old, other, unserved), "NotServed"), ((other, old, unserved), None)):
        crd = definition(*versions)
        passed(of, facts(crd, evidence(readers=(reader(5),)), taken=NOW - HOUR))
        assert decide(of, facts(crd, evidence(readers=(reader(6),)))).due == due


def test_what_was_counted_before_the_end_does_not_end_the_quiet_period() -> None:
    old = facts(DEPRECATED, evidence(), taken=NOW - 2 * HOUR)
    decision = decide(owner(QUIET), old)
    assert (decision.due, decision.count, decision.act) == (None, True, False)
    # Nor is it enough that it was over when it was counted, if that was long ago.
    late = facts(DEPRECATED, evidence(), taken=NOW - timedelta(minutes=20))
    assert (decide(owner(QUIET), late).count, decide(owner(QUIET), late).act) == (True, False)


def test_evidence_about_another_state_of_the_crd_does_not_count() -> None:
    changed = definition(entry("v1alpha1", deprecated=True), NEW, generation=2)
    gathered = replace(facts(DEPRECATED, evidence()), crd=changed)
    decision = decide(owner(QUIET), gathered)
    assert (decision.count, decision.act, decision.steps["Unused"].reason) == (True, False, "Counting")


def test_objects_that_cannot_be_counted_stop_it() -> None:
    gathered = facts(DEPRECATED, evidence(complete=False, failure="not permitted"))
    decision = decide(owner(QUIET), gathered)
    assert (decision.ready.status, decision.ready.reason, decision.act) == ("False", "NotKnown", False)
    assert decision.stalled


@pytest.mark.parametrize(
    ("crd", "reason"),
    [
        (
            definition(entry("v1alpha1", storage=True, deprecated=True), entry("v1", storage=False)),
            "StorageVersion",
        ),
        (
            definition(entry("v1alpha1", storage=True, served=False), entry("v1", storage=False)),
            "StorageVersion",
        ),
        (definition(entry("v1alpha1", deprecated=True), entry("v1", served=False)), "LastServedVersion"),
    ],
    ids=["storage version", "storage version that is not served", "last served version"],
)
def test_what_is_never_done(crd: dict[str, object], reason: str) -> None:
    decision = decide(owner(QUIET), facts(crd, evidence()))
    assert (decision.ready.status, decision.ready.reason) == ("False", reason)
    assert (decision.act, decision.due, decision.stalled) == (False, None, True)


def test_nobody_is_warned_who_has_nothing_to_go_to() -> None:
    crd = definition(entry("v1alpha1", storage=True), entry("v1", served=False, storage=False))
    of = owner()
    decision = passed(of, facts(crd, evidence()))
    assert (decision.act, decision.due, decision.stalled) == (False, None, True)
    assert decision.ready.reason == "LastServedVersion"
    assert decision.ready.message.startswith("Deprecated is held: v1alpha1 is the only served version")
    assert [(each.step, each.reason) for each in of.status.holds] == [
        ("Deprecated", "LastServedVersion"),
        ("NotServed", "StorageVersion"),
    ]


def test_a_storage_version_is_deprecated_if_another_one_is_served() -> None:
    crd = definition(entry("v1alpha1", storage=True), entry("v1", storage=False))
    decision = decide(owner(), facts(crd, evidence()))
    assert (decision.act, decision.due) == (True, "Deprecated")


def test_entries_of_managed_fields_must_be_moved_before_the_removal() -> None:
    decision = decide(owner(), facts(UNSERVED, evidence(objects=3)))
    assert (decision.due, decision.steps["Migrated"].reason) == ("Migrated", "NamedByManagers")
    uncounted = decide(owner(), facts(UNSERVED))
    assert (uncounted.count, uncounted.act) == (True, False)


def test_a_hold_stops_its_step_and_those_after_it() -> None:
    hold = Obstacle("NotServed", "Composition", "web", "Composition web names v1alpha1.")
    before = decide(owner(), facts(SERVED, evidence(), holds=(hold,)))
    assert (before.due, before.act) == ("Deprecated", True)
    for crd in (DEPRECATED, STORED, UNSERVED):
        held = decide(owner(QUIET), facts(crd, evidence(), holds=(hold,)))
        assert (held.due, held.act, held.ready.reason) == (None, False, "Composition")


def test_objects_are_migrated_also_if_the_crd_is_made_elsewhere() -> None:
    (hold,) = definition_holds(
        {"metadata": {"name": "dbs", "annotations": {DEFINITION_UID: "u"}}}, "v1alpha1"
    )
    for crd in (SERVED, DEPRECATED, UNSERVED):
        held = decide(owner(QUIET, migration={"settleSeconds": 0}), facts(crd, evidence(), holds=(hold,)))
        assert (held.act, held.ready.reason) == (False, "CompositeResourceDefinition")
    for mode, act in (("Execute", True), ("Guide", False)):
        decision = decide(owner(mode=mode), facts(UNSERVED, evidence(objects=3), holds=(hold,)))
        assert (decision.due, decision.act) == ("Migrated", act)


@pytest.mark.parametrize(
    ("spec", "missing", "ready"),
    [
        ({"mode": "Plan"}, (), ("True", "PlanOnly")),
        ({"mode": "Guide"}, (), ("False", "ChangeDue")),
        ({"suspend": True}, (), ("Unknown", "Suspended")),
        ({}, ("retire x",), ("False", "NotPermitted")),
    ],
    ids=["plan", "guide", "suspended", "not permitted"],
)
def test_who_does_not_act_says_what_is_due(
    spec: dict[str, Any], missing: tuple[str, ...], ready: tuple[str, str]
) -> None:
    of = owner(**spec)
    decision = passed(of, facts(SERVED, evidence(), missing=missing))
    assert (decision.ready.status, decision.ready.reason) == ready
    assert not decision.act
    assert of.status.due is not None
    assert of.status.due.step == "Deprecated"
    assert '"path": "/spec/versions/0/deprecated"' in of.status.due.patch
    assert of.status.due.manifest == "spec:\n  versions:\n  - name: v1alpha1\n    deprecated: true\n"


def test_a_step_that_was_taken_back_is_not_repeated() -> None:
    of = owner(QUIET)
    passed(of, facts(UNSERVED, evidence()))
    for _ in range(3):
        back = passed(of, facts(DEPRECATED, evidence()))
        assert (back.ready.reason, back.act, back.stalled) == ("Reverted", False, True)
    assert "argocd, old" in back.ready.message
    assert "then set spec.suspend to true" in back.ready.message
    # The quiet period starts again.
    assert back.quiet_since == NOW
    of.metadata.generation = 2
    assert passed(of, facts(DEPRECATED, evidence())).ready.reason == "QuietPeriod"


def test_a_version_that_was_put_back_is_not_removed_again() -> None:
    of = owner(QUIET)
    passed(of, facts(UNSERVED, evidence()))
    passed(of, facts(GONE))
    assert passed(of, facts(UNSERVED, evidence())).ready.reason == "Reverted"
    assert passed(of, facts(GONE)).ready.reason == "Removed"


def test_another_crd_of_that_name_begins_anew() -> None:
    of = owner(QUIET)
    passed(of, facts(UNSERVED, evidence()))
    other = definition(entry("v1alpha1"), NEW, uid="u2")
    decision = passed(of, facts(other, evidence()))
    assert (decision.due, decision.act, decision.quiet_since) == ("Deprecated", True, None)


@pytest.mark.parametrize(
    "crd", [None, {**GONE, "metadata": {**GONE["metadata"], "deletionTimestamp": "now"}}]
)
def test_without_a_crd_nothing_is_known(crd: dict[str, object] | None) -> None:
    decision = decide(owner(), facts(crd))
    assert not decision.act
    assert {each.status for each in decision.steps.values()} == {"Unknown"}


def test_lists_in_status_are_bounded_and_say_the_full_count() -> None:
    many = tuple(Obstacle("NotServed", "Composition", f"c{each}", "Named." * 9) for each in range(1000))
    of = owner(QUIET)
    passed(of, facts(DEPRECATED, evidence(*[writer(NOW - 9 * HOUR)] * 1000), holds=many))
    status = of.status
    assert (len(status.holds), status.hold_count) == (50, 1000)
    assert (len(status.evidence.writers), status.evidence.writer_count) == (50, 1000)
    ready = find_condition(status.conditions, "Ready")
    assert ready is not None
    assert "and 999 more" in ready.message
