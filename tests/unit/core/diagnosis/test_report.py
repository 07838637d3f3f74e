"""The report as a whole: the summary, what is kept across a restart, what deserves an Event or a write."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from crdkeeper.api.definitionreport import CountInProgress
from crdkeeper.api.meta import find_condition
from crdkeeper.core.diagnosis import registry
from crdkeeper.core.diagnosis.assessment import Assessment, assess
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conditions import established, namesaccepted
from crdkeeper.core.diagnosis.deletion import CLEANUP
from crdkeeper.core.diagnosis.facts import LiveFacts
from crdkeeper.core.diagnosis.findings import collect
from crdkeeper.core.diagnosis.report import (
    ReportedCondition,
    Wanted,
    nothing_stored,
    on_record,
    report_metadata,
    wanted_report,
)
from tests.kstatus import status_of
from tests.unit.builders import later
from tests.unit.core.diagnosis.builders import NAME, NOW, as_read, condition, facts, live_crd

REFUSED = (
    condition("NamesAccepted", "False", "KindConflict", '"Widget" is already in use'),
    condition("Established", "False", "NotAccepted", "not all names are accepted"),
)


def reason(wanted: Wanted, type_: str) -> tuple[str, str]:
    """Status and reason of a condition of the report."""
    found = find_condition(wanted.status.conditions, type_)
    assert found is not None
    return found.status, found.reason


def message(wanted: Wanted, type_: str) -> str:
    found = find_condition(wanted.status.conditions, type_)
    assert found is not None
    return found.message


def test_all_conditions_are_there_in_their_order() -> None:
    types = [each.type for each in wanted_report(facts(), {}).status.conditions]
    assert types == ["Ready", *(each.type for each in registry.CONDITIONS)] == [*registry.REASONS]


def test_a_healthy_crd_is_ready() -> None:
    wanted = wanted_report(facts(), {})
    assert reason(wanted, "Ready") == ("True", "Healthy")
    assert wanted.changes == []
    status = wanted.status
    assert (status.observed_generation, status.definition_generation) == (1, 2)
    assert (status.storage_version, status.stored_versions) == ("v2", ["v2"])
    assert {each.observed_generation for each in status.conditions} == {1}
    assert {each.last_transition_time for each in status.conditions} == {NOW}


def test_ready_takes_the_reason_of_the_worst_and_names_the_others() -> None:
    wanted = wanted_report(facts(conditions=REFUSED, stored=("v1", "v2")), {})
    assert reason(wanted, "Ready") == ("False", "KindConflict")
    said = message(wanted, "Ready")
    assert said.startswith("NamesAccepted: ")
    assert said.endswith("Also: Established (NotAccepted), StorageCurrent (OldVersionsStored).")


def test_what_is_wrong_weighs_more_than_what_is_not_known() -> None:
    wanted = wanted_report(facts(conditions=(), stored=("v1", "v2")), {})
    assert reason(wanted, "NamesAccepted") == ("Unknown", "NotYetProcessed")
    assert reason(wanted, "Ready") == ("False", "OldVersionsStored")


def test_what_is_not_known_makes_ready_unknown() -> None:
    assert reason(wanted_report(facts(conditions=()), {}), "Ready") == ("Unknown", "NotYetProcessed")


def test_errors_of_the_linter_are_told_and_leave_it_ready() -> None:
    found = collect([("Refused", "scope", "spec.scope", "Required value"), ("Warning", "a", "b", "c")])
    wanted = wanted_report(facts(Assessment(findings=found)), {})
    assert reason(wanted, "Ready") == ("True", "WouldBeRefused")
    assert "1 error and 1 warning" in message(wanted, "Ready")
    assert [each.id for each in wanted.status.findings] == ["scope", "a"]
    assert wanted.status.finding_counts.refused == 1


def test_violations_of_structure_make_it_not_ready() -> None:
    assessment = assess(live_crd(schema={"type": "object", "properties": {"spec": {}}}))
    wanted = wanted_report(facts(assessment), {})
    assert reason(wanted, "NonStructuralSchema") == ("True", "Violations")
    assert reason(wanted, "Ready") == ("False", "Violations")
    assert wanted.status.finding_counts.refused > 0


@pytest.mark.parametrize(
    ("changes", "status"),
    [({}, "Current"), ({"stored": ("v1", "v2")}, "Failed"), ({"conditions": ()}, "InProgress")],
)
def test_kstatus_judges_a_report_as_ready_does(changes: dict[str, Any], status: str) -> None:
    found = as_read(wanted_report(facts(**changes), {})).to_object()
    found["metadata"]["generation"] = 1
    assert status_of(found) == status


# Transitions


def test_what_stays_keeps_its_time_and_what_changes_gets_a_new_one() -> None:
    first = wanted_report(facts(), {})
    second = wanted_report(facts(stored=("v1", "v2"), now=later(60)), first.reported)
    since = {each.type: each.last_transition_time for each in second.status.conditions}
    assert since.pop("StorageCurrent") == since.pop("Ready") == since.pop("Stalled") == later(60)
    assert set(since.values()) == {NOW}


def test_times_are_whole_seconds_as_the_api_server_keeps_them() -> None:
    wanted = wanted_report(facts(now=later(0.75)), {})
    assert wanted.is_as(on_record(as_read(wanted)))


def changed(before: Wanted, **now: Any) -> list[str]:
    """The reasons that deserve an Event."""
    return [each.reason.name for each in wanted_report(facts(**now), before.reported).changes]


def test_trouble_and_its_end_are_news_and_nothing_else() -> None:
    good = wanted_report(facts(), {})
    bad = wanted_report(facts(stored=("v1", "v2")), good.reported)
    assert changed(good) == []
    assert changed(good, stored=("v1", "v2")) == ["OldVersionsStored"]
    assert changed(bad, stored=("v1", "v2")) == []
    assert changed(bad) == ["Current"]


def test_trouble_at_first_sight_is_news() -> None:
    reasons = [each.reason for each in wanted_report(facts(conditions=REFUSED), {}).changes]
    assert reasons == [namesaccepted.KIND_CONFLICT, established.NOT_ACCEPTED]


def test_what_becomes_known_is_news_only_if_it_is_bad() -> None:
    unknown = wanted_report(facts(conditions=()), {})
    assert unknown.changes == []
    assert changed(unknown) == []
    assert changed(unknown, conditions=REFUSED) == ["KindConflict", "NotAccepted"]


def test_what_is_known_again_is_news_if_it_is_not_as_before() -> None:
    """A change of the CRD has conditions probed again, which are Unknown until then."""
    bad = wanted_report(facts(conditions=REFUSED), {})
    unknown = wanted_report(facts(conditions=()), bad.reported)
    still = wanted_report(facts(conditions=()), unknown.reported)
    assert unknown.changes == still.changes == []
    for before in (unknown, still):
        assert changed(before) == ["NoConflicts", "Established"]
        assert changed(before, conditions=REFUSED) == []
    good = wanted_report(facts(), unknown.reported)
    assert changed(wanted_report(facts(conditions=()), good.reported)) == []


# Across a restart


PENDING = frozenset(("VersionsCurrent",))


def known_reason() -> str:
    """Some reason of VersionsCurrent that is False."""
    return next(each.name for each in registry.REASONS["VersionsCurrent"] if each.status == "False")


def test_a_condition_that_waits_for_its_probe_stays_as_it_was_told() -> None:
    before = ReportedCondition("False", known_reason(), NOW, 2, "As it was reported.")
    wanted = wanted_report(facts(now=later(60)), {"VersionsCurrent": before}, PENDING)
    assert reason(wanted, "VersionsCurrent") == ("False", known_reason())
    assert message(wanted, "VersionsCurrent") == "As it was reported."
    assert wanted.reported["VersionsCurrent"] == before


@pytest.mark.parametrize(
    "before",
    [
        ReportedCondition("False", "NoSuchReason", NOW, 2, "Of another version of crdkeeper."),
        ReportedCondition("False", known_reason(), NOW, 1, "Of another generation of the CRD."),
        ReportedCondition("False", known_reason(), NOW, 2, ""),
    ],
    ids=["unknown reason", "other generation", "no message"],
)
def test_else_it_is_judged_by_what_is_known(before: ReportedCondition) -> None:
    reported = {"VersionsCurrent": before}
    assert wanted_report(facts(), reported, PENDING) == wanted_report(facts(), reported)
    assert message(wanted_report(facts(), reported, PENDING), "VersionsCurrent") != before.message


def test_that_there_was_no_deletion_does_not_stay_in_one() -> None:
    """A deletion leaves the generation of the CRD as it is."""
    before = wanted_report(facts(), {})
    deleted = facts(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[CLEANUP])
    wanted = wanted_report(deleted, before.reported, {"Terminating"})
    assert reason(wanted, "Terminating") == ("True", "Pending")
    assert reason(wanted, "Ready") == ("False", "Pending")
    left = ReportedCondition("True", "ObjectsLeft", NOW, 2, "As it was reported.")
    again = wanted_report(deleted, {"Terminating": left}, {"Terminating"})
    assert message(again, "Terminating") == "As it was reported."


def test_an_unchanged_crd_needs_no_write_after_a_restart() -> None:
    wanted = wanted_report(facts(), {})
    record = on_record(as_read(wanted))
    again = wanted_report(facts(now=later(3600)), record.reported)
    assert again.is_as(record)
    assert again.changes == []


# What is recorded


def test_the_owner_is_the_crd() -> None:
    wanted = wanted_report(facts(), {})
    assert on_record(as_read(wanted, uid="u9")).owners == ("u9",)
    (owner,) = report_metadata(facts().seen.definition)["ownerReferences"]
    assert (owner["uid"], owner["name"]) == ("u1", NAME)


def test_edits_by_others_are_seen() -> None:
    wanted = wanted_report(facts(stored=("v1", "v2")), {})
    for edit in (
        lambda status: status.conditions[0].__setattr__("status", "True"),
        lambda status: status.conditions.pop(),
        lambda status: status.stored_versions.clear(),
        lambda status: setattr(status, "storage_version", "v9"),
        lambda status: setattr(status.finding_counts, "errors", 9),
    ):
        report = as_read(wanted)
        edit(report.status)
        assert not wanted.is_as(on_record(report))


def test_conditions_that_others_add_are_left_alone() -> None:
    """Server-side apply can't remove them: considering them a difference would mean writing for ever."""
    wanted = wanted_report(facts(), {})
    report = as_read(wanted)
    theirs = report.status.conditions[0].model_copy(update={"type": "TheirsReady"})
    report.status.conditions.insert(0, theirs)
    report.status.conditions.reverse()
    assert wanted.is_as(on_record(report))
    assert "TheirsReady" not in on_record(report).reported


def test_a_reason_belongs_to_one_condition_and_says_what_to_do() -> None:
    for type_, reasons in registry.REASONS.items():
        assert reasons, type_
        assert any(each.healthy for each in reasons), type_
        for each in reasons:
            assert each.condition == type_
            assert each.meaning.endswith("."), each.name
            assert not each.remedy or each.remedy.endswith("."), each.name
            assert each.healthy or each.remedy or each.meaning.endswith(" yet."), each.name


# The recorded state as a stand-in for an assessment


def found_one() -> Assessment:
    return Assessment(findings=collect([("Refused", "scope", "spec.scope", "Required value")]))


def test_what_is_on_record_of_the_same_revision_stands_in() -> None:
    written = wanted_report(facts(found_one()), {})
    record = on_record(as_read(written))
    assert written.is_as(record)
    stand_in = record.assessment(facts().seen)
    assert stand_in is not None
    assert stand_in.recorded

    again = wanted_report(facts(stand_in, now=later(60)), record.reported)
    assert again.is_as(record)
    assert reason(again, "Ready") == ("True", "WouldBeRefused")
    assert again.changes == []
    moved = wanted_report(facts(stand_in, stored=("v1", "v2")), record.reported)
    assert not moved.is_as(record)


def test_what_was_written_is_on_record_as_if_it_was_read_back() -> None:
    for known in (facts(found_one()), facts(stored=("v1", "v2")), facts(conditions=REFUSED)):
        written = wanted_report(known, {})
        read = as_read(written)
        assert written.stored(read.metadata) == replace(on_record(read), reported=written.reported)
        assert not written.is_as(nothing_stored(read.metadata))


@pytest.mark.parametrize(
    "changes",
    [{"generation": 3}, {"uid": "u2"}, {"annotations": {"a": "b"}}, {"labels": {"a": "b"}}],
    ids=lambda each: next(iter(each)),
)
def test_what_is_on_record_of_another_revision_does_not(changes: dict[str, Any]) -> None:
    record = on_record(as_read(wanted_report(facts(found_one()), {})))
    assert record.assessment(facts(**changes).seen) is None


def test_findings_that_others_changed_are_put_right() -> None:
    written = wanted_report(facts(found_one()), {})
    for edit in (
        lambda status: status.findings.clear(),
        lambda status: setattr(status.finding_counts, "refused", 0),
        lambda status: setattr(status, "assessed", ""),
    ):
        report = as_read(written)
        edit(report.status)
        record = on_record(report)
        assert record.assessment(facts().seen) is None
        assert not written.is_as(record)


def test_another_version_of_crdkeeper_looks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    record = on_record(as_read(wanted_report(facts(found_one()), {})))
    monkeypatch.setattr("crdkeeper.core.diagnosis.report.__version__", "99")
    assert record.assessment(facts().seen) is None


# The census


def counted(
    versions: dict[str, int] | None = None, *, complete: bool = True, taken_at: datetime = NOW
) -> LiveFacts:
    """A census of ten objects."""
    census = Census(
        objects=10,
        complete=complete,
        uses=(),
        uses_total=0,
        versions=versions or {},
        resource_version="1",
        taken_at=taken_at,
    )
    return LiveFacts(census=census)


def test_a_census_is_reported_once_it_is_complete() -> None:
    assert wanted_report(facts(live=counted(complete=False)), {}).status.census is None
    found = wanted_report(facts(live=counted({"v1": 3, "v2": 10})), {}).status.census
    assert found is not None
    assert (found.objects, found.taken_at) == (10, NOW)
    assert [(each.version, each.objects) for each in found.versions] == [("v2", 10), ("v1", 3)]


def test_the_census_on_record_remains_until_there_is_another() -> None:
    written = wanted_report(facts(live=counted({"v1": 3})), {})
    record = on_record(as_read(written))
    assert record.census == written.status.census
    for live in (LiveFacts(), counted(complete=False), counted({"v1": 3}, taken_at=later(3600))):
        again = wanted_report(facts(live=live), record.reported, (), record.census)
        assert again.status.census == record.census
    for live in (counted({"v1": 4}, taken_at=later(60)), counted({"v1": 3}, taken_at=later(7 * 3600))):
        again = wanted_report(facts(live=live), record.reported, (), record.census)
        assert again.status.census != record.census
        assert not again.is_as(record)


def test_versions_that_strangers_made_up_are_bounded() -> None:
    forged = {"v" * 64: 9, **{f"v{each}": 1 for each in range(30)}}
    found = wanted_report(facts(live=counted(forged)), {}).status.census
    assert found is not None
    assert len(found.versions) == 20
    assert all(len(each.version) < 64 for each in found.versions)
    assert as_read(wanted_report(facts(live=counted(forged)), {})).status.census == found


def test_how_far_a_count_has_got_stays_until_it_goes_on() -> None:
    before = CountInProgress(about="x", continue_token="t", started_at=NOW, objects=40, versions=[], uses=[])
    counted = Census(
        objects=40,
        complete=False,
        uses=(),
        uses_total=0,
        versions={},
        resource_version="1",
        taken_at=NOW,
        counting=before,
    )
    now = wanted_report(facts(live=LiveFacts(census=counted)), {})
    record = on_record(as_read(now))
    assert record.counting == before
    assert now.is_as(record)
    waiting = wanted_report(facts(), {}, {"VersionsCurrent"}, None, record.counting)
    assert waiting.status.counting == before
    assert wanted_report(facts(), {}, (), None, record.counting).status.counting is None
    done = replace(counted, complete=True, counting=None)
    assert wanted_report(facts(live=LiveFacts(census=done)), {}, (), None, before).status.counting is None
