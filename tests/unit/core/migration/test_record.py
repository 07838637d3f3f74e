"""What an action and its result leave in the status, which is all that users see and a restart goes by."""

from typing import Any

import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import (
    QUARANTINE_SHOWN,
    MigrationProgress,
    MigrationSweep,
    RefusedObject,
    StorageMigration,
)
from crdkeeper.core.migration.protocol import Finish, Hold, Pin
from crdkeeper.core.migration.record import STEPS, Baseline, Change, Recorder, Tally, format_duration
from tests.kstatus import status_of
from tests.unit.builders import NOW, condition_of, later, migration, refused, target, with_condition


def at_work(
    type_: str = "Rewrite", *, scanned: int = 0, named: list[RefusedObject] | None = None, **progress: int
) -> StorageMigration:
    """A migration with a pass at work."""
    made = migration()
    made.status.target = target()
    made.status.settled_resource_version = "500"
    made.status.sweep = MigrationSweep.model_validate({"type": type_, "scanned": scanned})
    made.status.progress = MigrationProgress.model_validate(progress)
    made.status.quarantine.objects = named or []
    return made


def progressed(made: StorageMigration, tally: Tally, rate: float = 0.0) -> MigrationProgress:
    Recorder(made).progressed(tally, Baseline.of(made.status), rate=rate, concurrency=8)
    return made.status.progress


class TestFirstSight:
    def test_all_conditions_exist_from_the_start_without_an_event(self) -> None:
        record = Recorder(migration(generation=3))
        record.first_sight(NOW)
        conditions = record.migration.status.conditions
        assert {each.type: each.status for each in conditions} == {
            **dict.fromkeys((*STEPS, "Succeeded", "Ready"), "Unknown"),
            "Reconciling": "True",
        }
        assert record.take_changes() == []
        assert record.migration.status.observed_generation == 3

    def test_what_is_on_record_stays(self) -> None:
        made = with_condition(at_work(scanned=7), "Settled", "True", "Settled")
        Recorder(made).first_sight(NOW)
        assert condition_of(made, "Settled") == ("True", "Settled")
        assert made.status.sweep is not None
        assert made.status.sweep.scanned == 7

    def test_a_run_that_begins_again_is_not_complete(self) -> None:
        made = migration()
        made.status.completion_time = NOW
        Recorder(made).first_sight(later(5))
        assert made.status.completion_time is None

    def test_a_plan_is_made_anew(self) -> None:
        made = migration(mode="Plan")
        made.status.sweep = MigrationSweep(type="Plan", done=True)
        made.status.progress.quarantined = 1
        made.status.quarantine.objects = [refused()]
        Recorder(made).first_sight(NOW)
        assert made.status.sweep is None
        assert made.status.progress == MigrationProgress()
        assert made.status.quarantine.objects == []


class TestPinned:
    def test_the_start(self) -> None:
        record = Recorder(migration())
        record.pinned(Pin(target(), False, "Begins."), NOW)
        status = record.migration.status
        assert (status.target, status.start_time, status.restarts) == (target(), NOW, 0)
        assert condition_of(record.migration, "Resolved") == ("True", "Pinned")
        assert condition_of(record.migration, "Succeeded") == ("Unknown", "Pinned")

    def test_a_restart_drops_all_evidence(self) -> None:
        made = at_work(scanned=7, named=[refused()], rewritten=5, quarantined=1)
        made.status.start_time = NOW
        for step in STEPS:
            with_condition(made, step, "True", "Done")
        record = Recorder(made)
        record.pinned(Pin(target(generation=3), True, "Begins again."), later(9))
        status = made.status
        assert status.target == target(generation=3)
        assert (status.settled_resource_version, status.sweep) == (None, None)
        assert status.progress == MigrationProgress()
        assert status.quarantine.objects == []
        assert (status.restarts, status.start_time) == (1, NOW)
        assert condition_of(made, "Resolved") == ("True", "TargetChanged")
        assert {condition_of(made, step) for step in STEPS[1:]} == {("Unknown", "Pending")}
        (told,) = [each for each in record.take_changes() if each.type == "Resolved"]
        assert told == Change("Resolved", "True", "TargetChanged", "Begins again.", warning=True)


class TestHeld:
    @pytest.mark.parametrize(
        ("hold", "step", "succeeded"),
        [
            (Hold("Settled", "Settling", "Wait.", 2.0), ("False", "Settling"), ("Unknown", "Settling")),
            (
                Hold("Permitted", "Forbidden", "No.", 10.0, failing=True),
                ("False", "Forbidden"),
                ("False", "Forbidden"),
            ),
            (Hold("Suspended", "Suspended", "Stop.", 10.0), ("True", "Suspended"), ("Unknown", "Suspended")),
        ],
        ids=["waiting", "failing", "suspended"],
    )
    def test_conditions(self, hold: Hold, step: tuple[str, str], succeeded: tuple[str, str]) -> None:
        record = Recorder(migration())
        record.held(hold, NOW)
        assert condition_of(record.migration, hold.condition) == step
        assert condition_of(record.migration, "Succeeded") == succeeded
        assert all(each.warning == hold.failing for each in record.take_changes() if each.type != "Succeeded")

    def test_nothing_moves_meanwhile(self) -> None:
        made = at_work(objects_per_second=100, concurrency=8)
        made.status.progress.remaining = "3s"
        Recorder(made).held(Hold("Rewritten", "APIServerUnavailable", "Wait.", 2.0), NOW)
        progress = made.status.progress
        assert (progress.objects_per_second, progress.concurrency, progress.remaining) == (0, 0, "")

    def test_the_same_reason_again_is_no_change(self) -> None:
        record = Recorder(migration())
        record.held(Hold("Settled", "Settling", "60 s more.", 2.0), NOW)
        record.take_changes()
        record.held(Hold("Settled", "Settling", "58 s more.", 2.0), later(2))
        assert record.take_changes() == []
        found = find_condition(record.migration.status.conditions, "Settled")
        assert found is not None
        assert found.message == "58 s more."

    def test_resumed(self) -> None:
        record = Recorder(migration())
        record.resumed(NOW)
        assert find_condition(record.migration.status.conditions, "Suspended") is None
        record.held(Hold("Suspended", "Suspended", "Stop.", 10.0), NOW)
        record.resumed(later(5))
        assert condition_of(record.migration, "Suspended") == ("False", "Resumed")


class TestProgressed:
    def test_counts_add_to_what_was_on_record(self) -> None:
        made = at_work(scanned=100, rewritten=80, gone=5, total=100)
        progress = progressed(
            made, Tally(scanned=50, rewritten=30, current=18, gone=1, total=150, refused_count=1)
        )
        assert (progress.rewritten, progress.gone, progress.quarantined) == (110, 6, 1)
        assert progress.total == 250
        assert progress.current == 150 - 110 - 6 - 1
        assert progress.percent == 60

    def test_what_a_killed_run_rewrote_is_found_current(self) -> None:
        # Scanned stood at the checkpoint, rewritten had gone on to 40 when the last status was saved.
        made = at_work(scanned=10, rewritten=40, total=100)
        assert progressed(made, Tally(scanned=30, current=30, total=90)).current == 0
        assert progressed(made, Tally(scanned=90, current=90, total=90)).current >= 0

    @pytest.mark.parametrize(("scanned", "percent"), [(0, 0), (1, 1), (50, 50), (100, 99)])
    def test_a_hundred_percent_is_for_the_end(self, scanned: int, percent: int) -> None:
        assert progressed(at_work(), Tally(scanned=scanned, total=100)).percent == percent

    def test_no_object_at_all(self) -> None:
        assert progressed(at_work(), Tally()).percent == 0

    def test_a_second_pass_does_not_begin_at_zero_percent(self) -> None:
        made = at_work("Verify", percent=99, current=3)
        progress = progressed(made, Tally(scanned=1, unexpected=1, total=100))
        assert (progress.percent, progress.current) == (99, 3)
        assert made.status.sweep is not None
        assert made.status.sweep.unexpected == 1

    @pytest.mark.parametrize(
        ("rate", "remaining"), [(0.0, ""), (1.0, "1m30s"), (30.0, "3s")], ids=["unknown", "slow", "fast"]
    )
    def test_rate_and_remaining_time(self, rate: float, remaining: str) -> None:
        progress = progressed(at_work(), Tally(scanned=10, total=100), rate)
        assert (progress.objects_per_second, progress.concurrency) == (round(rate), 8)
        assert progress.remaining == remaining

    def test_refused_objects_are_named(self) -> None:
        made = at_work()
        progressed(made, Tally(scanned=2, total=2, refused=[refused("a"), refused("b")], refused_count=2))
        assert [each.name for each in made.status.quarantine.objects] == ["a", "b"]
        assert made.status.progress.quarantined == 2

    def test_one_that_is_refused_again_after_a_restart_counts_once(self) -> None:
        made = at_work(named=[refused("a")], quarantined=1)
        progressed(made, Tally(scanned=2, total=2, refused=[refused("a"), refused("b")], refused_count=2))
        assert [each.name for each in made.status.quarantine.objects] == ["a", "b"]
        assert made.status.progress.quarantined == 2

    def test_names_are_told_apart_by_namespace(self) -> None:
        made = at_work(named=[refused("a", "one")], quarantined=1)
        progressed(made, Tally(scanned=1, refused=[refused("a", "two")], refused_count=1))
        assert made.status.progress.quarantined == 2

    def test_status_names_some_and_counts_all(self) -> None:
        made = at_work()
        many = [refused(f"w{number}") for number in range(QUARANTINE_SHOWN + 5)]
        progressed(made, Tally(scanned=2000, refused=many, refused_count=2000))
        assert len(made.status.quarantine.objects) == QUARANTINE_SHOWN
        assert made.status.progress.quarantined == 2000

    def test_saving_twice_counts_once(self) -> None:
        made = at_work(rewritten=1)
        record, before, tally = Recorder(made), Baseline.of(made.status), Tally(scanned=3, rewritten=3)
        for _ in range(2):
            record.progressed(tally, before, rate=0.0, concurrency=1)
        assert made.status.progress.rewritten == 4


class TestSweeps:
    def test_a_pass_over_refused_objects_is_a_round_of_retries(self) -> None:
        made = at_work(named=[refused()], quarantined=1, gone=2, rewritten=5)
        Recorder(made).sweep_began(MigrationSweep(type="Rewrite"), NOW)
        assert made.status.quarantine.rounds == 1
        assert made.status.quarantine.objects == []
        assert (made.status.progress.quarantined, made.status.progress.rewritten) == (0, 5)

    def test_a_verify_pass_is_none(self) -> None:
        made = at_work()
        Recorder(made).sweep_began(MigrationSweep(type="Verify"), NOW)
        assert made.status.quarantine.rounds == 0

    def test_a_plan_says_that_it_writes_nothing(self) -> None:
        made = migration(mode="Plan")
        Recorder(made).sweep_began(MigrationSweep(type="Plan"), NOW)
        assert condition_of(made, "Trimmed") == ("False", "PlanOnly")

    @pytest.mark.parametrize(
        ("type_", "condition", "reason"),
        [
            ("Rewrite", "Rewritten", "Rewriting"),
            ("Verify", "Verified", "Verifying"),
            ("Plan", "Succeeded", "Planning"),
        ],
    )
    def test_at_work(self, type_: str, condition: str, reason: str) -> None:
        made = at_work(type_)
        Recorder(made).sweeping(NOW)
        assert condition_of(made, condition) == ("Unknown", reason)
        assert condition_of(made, "Succeeded") == ("Unknown", reason)

    def test_a_full_pass_that_found_something_is_the_proof_all_the_same(self) -> None:
        made = at_work("Verify")
        made.spec.verify = "Full"
        sweep = made.status.sweep
        assert sweep is not None
        sweep.unexpected = 3
        Recorder(made).sweep_ended(10, 300, NOW)
        assert condition_of(made, "Verified") == ("True", "AllPatched")

    def test_checkpoint_and_expired_list(self) -> None:
        made = at_work()
        record = Recorder(made)
        record.checkpoint("token", 500)
        sweep = made.status.sweep
        assert sweep == MigrationSweep(type="Rewrite", continue_token="token", scanned=500)
        record.list_expired()
        assert sweep == MigrationSweep(type="Rewrite")

    @pytest.mark.parametrize(
        ("type_", "unexpected", "condition", "expected"),
        [
            ("Rewrite", 0, "Rewritten", ("True", "AllWritten")),
            ("Verify", 0, "Verified", ("True", "NothingLeft")),
            ("Verify", 3, "Verified", ("False", "FoundMore")),
        ],
    )
    def test_the_end_of_a_pass(
        self, type_: str, unexpected: int, condition: str, expected: tuple[str, str]
    ) -> None:
        made = at_work(type_)
        sweep = made.status.sweep
        assert sweep is not None
        sweep.unexpected, sweep.continue_token = unexpected, "token"
        Recorder(made).sweep_ended(10, 300, NOW)
        assert sweep == MigrationSweep.model_validate({"type": type_, "unexpected": unexpected, "done": True})
        assert condition_of(made, condition) == expected
        assert made.status.quarantine.next_retry_time is None

    @pytest.mark.parametrize(
        ("rounds", "seconds"), [(0, 10), (1, 20), (2, 40), (5, 300), (1000, 300)], ids=str
    )
    @pytest.mark.parametrize("type_", ["Rewrite", "Verify"])
    def test_refused_objects_are_tried_again_later(self, type_: str, rounds: int, seconds: int) -> None:
        made = at_work(type_, named=[refused()], quarantined=1)
        made.status.quarantine.rounds = rounds
        Recorder(made).sweep_ended(10, 300, NOW)
        assert made.status.quarantine.next_retry_time == later(seconds)
        assert find_condition(made.status.conditions, "Rewritten") is None
        assert find_condition(made.status.conditions, "Verified") is None

    def test_a_round_of_retries_that_leaves_some(self) -> None:
        made = at_work(named=[refused("a"), refused("b"), refused("c")], quarantined=3, rewritten=1)
        Recorder(made).retried([refused("b")], Tally(rewritten=1, gone=1))
        assert [each.name for each in made.status.quarantine.objects] == ["b"]
        progress = made.status.progress
        assert (progress.rewritten, progress.gone, progress.quarantined) == (2, 1, 1)

    def test_no_object_is_counted_twice(self) -> None:
        made = at_work(named=[refused("a")], quarantined=1, rewritten=100, total=100)
        Recorder(made).retried([], Tally(current=1))
        assert (made.status.progress.rewritten, made.status.progress.current) == (100, 0)

    def test_after_the_last_one_was_written_all_is_to_be_verified(self) -> None:
        made = at_work("Verify", named=[refused()], quarantined=1, total=9)
        made.status.quarantine.rounds = 2
        record = Recorder(made)
        record.retried([], Tally(rewritten=1))
        record.sweep_repaired(NOW)
        assert made.status.sweep == MigrationSweep(type="Rewrite", scanned=9, done=True)
        assert made.status.progress.quarantined == 0
        assert (made.status.quarantine.rounds, made.status.quarantine.objects) == (2, [])
        assert condition_of(made, "Rewritten") == ("True", "AllWritten")

    @pytest.mark.parametrize("call", ["sweeping", "sweep_ended", "progressed", "checkpoint"])
    def test_without_a_pass_there_is_nothing_to_record(self, call: str) -> None:
        made = migration()
        record, before = Recorder(made), made.status.model_copy(deep=True)
        calls: dict[str, Any] = {
            "sweeping": lambda: record.sweeping(NOW),
            "sweep_ended": lambda: record.sweep_ended(1, 2, NOW),
            "progressed": lambda: record.progressed(
                Tally(scanned=1), Baseline.of(made.status), rate=1, concurrency=1
            ),
            "checkpoint": lambda: record.checkpoint("token", 1),
        }
        calls[call]()
        assert made.status == before


class TestFinished:
    def test_migrated_and_trimmed(self) -> None:
        made = at_work()
        record = Recorder(made)
        record.trimmed(["v0", "v1"], "v2", NOW)
        record.take_changes()
        record.finished(Finish(True, "Migrated", "Done."), later(1))
        found = find_condition(made.status.conditions, "Trimmed")
        assert found is not None
        assert (found.status, found.reason) == ("True", "Trimmed")
        assert "v0, v1" in found.message
        assert condition_of(made, "Succeeded") == ("True", "Migrated")
        assert (made.status.progress.percent, made.status.completion_time) == (100, later(1))
        assert record.take_changes() == [Change("Succeeded", "True", "Migrated", "Done.")]

    @pytest.mark.parametrize(
        ("trim", "uid", "trimmed"),
        [
            (False, "u1", ("False", "NotRequested")),
            (True, None, ("False", "NotApplicable")),
            (True, "u1", ("True", "AlreadyCurrent")),
        ],
        ids=["no trim wanted", "no CRD", "trimmed by somebody else"],
    )
    def test_migrated_without_a_trim_of_ours(
        self, trim: bool, uid: str | None, trimmed: tuple[str, str]
    ) -> None:
        made = at_work()
        made.spec.trim = trim
        made.status.target = target(uid=uid)
        Recorder(made).finished(Finish(True, "Migrated", "Done."), NOW)
        assert condition_of(made, "Trimmed") == trimmed

    def test_nothing_to_do(self) -> None:
        made = migration()
        Recorder(made).finished(Finish(True, "AlreadyCurrent", "It is."), NOW)
        assert {condition_of(made, step) for step in (*STEPS, "Succeeded")} == {("True", "AlreadyCurrent")}

    def test_failed(self) -> None:
        made = at_work(percent=40)
        made.metadata.generation = 4
        record = Recorder(made)
        record.finished(Finish(False, "RetriesExhausted", "No more."), NOW)
        assert condition_of(made, "Succeeded") == ("False", "RetriesExhausted")
        assert (made.status.progress.percent, made.status.observed_generation) == (40, 4)
        assert record.take_changes()[-1].warning

    @pytest.mark.parametrize("reason", ["DefinitionDeleted", "DefinitionTerminating"])
    def test_the_crd_went(self, reason: str) -> None:
        made = at_work()
        Recorder(made).finished(Finish(False, reason, "Gone."), NOW)
        assert condition_of(made, "Resolved") == ("False", reason)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0s"),
        (0.4, "0s"),
        (45, "45s"),
        (59.6, "1m00s"),
        (130, "2m10s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (11100, "3h05m"),
    ],
)
def test_durations_as_people_read_them(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


class TestKstatus:
    """Flux, Argo CD and Helm judge a migration as its users do."""

    def test_one_that_nobody_has_seen_is_in_progress(self) -> None:
        fresh = migration().to_object() | {"status": {"observedGeneration": -1}}
        assert status_of(fresh) == "InProgress"

    @pytest.mark.parametrize(
        ("finish", "status"),
        [
            (None, "InProgress"),
            (Finish(True, "Migrated", "Done."), "Current"),
            (Finish(False, "RetriesExhausted", "Refused."), "Failed"),
        ],
    )
    def test_it_follows_the_summary(self, finish: Finish | None, status: str) -> None:
        made = migration()
        record = Recorder(made)
        record.first_sight(NOW)
        if finish is not None:
            record.finished(finish, NOW)
        assert status_of(made.to_object()) == status

    def test_what_a_person_must_mend_has_failed_until_it_is_mended(self) -> None:
        made = migration()
        record = Recorder(made)
        record.first_sight(NOW)
        record.held(Hold("Permitted", "Forbidden", "No.", 10.0, failing=True), NOW)
        assert status_of(made.to_object()) == "Failed"
        record.held(Hold("Settled", "Settling", "Wait.", 10.0), NOW)
        assert status_of(made.to_object()) == "InProgress"

    def test_what_is_tried_again_is_in_progress(self) -> None:
        made = migration()
        record = Recorder(made)
        record.first_sight(NOW)
        record.held(Hold("Rewritten", "ObjectsRefused", "Refused.", 10.0, failing=True), NOW)
        assert condition_of(made, "Ready") == ("False", "ObjectsRefused")
        assert status_of(made.to_object()) == "InProgress"

    def test_a_changed_spec_is_in_progress(self) -> None:
        made = migration()
        record = Recorder(made)
        record.first_sight(NOW)
        record.finished(Finish(True, "Migrated", "Done."), NOW)
        made.metadata.generation += 1
        assert status_of(made.to_object()) == "InProgress"
