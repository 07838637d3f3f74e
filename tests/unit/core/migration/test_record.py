"""The effect of each occurrence on the status, which users see and a restarted run resumes from."""

import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import MigrationProgress, MigrationSweep
from crdkeeper.core.migration.counts import Baseline, SweepTally
from crdkeeper.core.migration.occurrences import (
    ListExpired,
    Occurrence,
    RetryBegan,
    RetryBroken,
    RetryEnded,
    RunBegan,
    Separated,
    SweepBegan,
    SweepCounted,
    SweepEnded,
    Trimmed,
)
from crdkeeper.core.migration.protocol import STEPS, Finish, Hold, Pin, SweepType
from crdkeeper.core.migration.record import Announcement, record
from tests.unit.builders import (
    NOW,
    at_work,
    condition_of,
    happen,
    later,
    migration,
    refused,
    target,
    with_condition,
)

STOP = Hold("Suspended", "Suspended", "Stop.", 10.0)


def test_what_is_recorded_from_stays_as_it_is() -> None:
    made = at_work(scanned=7, rewritten=5)
    before = made.model_copy(deep=True)
    recorded = record(made, Pin(target(generation=3), True, "Begins again."), NOW)
    assert made == before
    assert recorded.status.progress.rewritten == 0


class TestRunBegan:
    def test_all_conditions_exist_from_the_start_without_an_event(self) -> None:
        made = migration(generation=3)
        assert happen(made, RunBegan()) == []
        assert {each.type: each.status for each in made.status.conditions} == {
            **dict.fromkeys((*STEPS, "Succeeded", "Ready"), "Unknown"),
            "Reconciling": "True",
        }
        assert made.status.observed_generation == 3

    def test_what_is_on_record_stays(self) -> None:
        made = with_condition(at_work(scanned=7), "Settled", "True", "Settled")
        happen(made, RunBegan())
        assert condition_of(made, "Settled") == ("True", "Settled")
        assert made.status.sweep is not None
        assert made.status.sweep.scanned == 7

    def test_a_run_that_begins_again_is_not_complete(self) -> None:
        made = migration()
        made.status.completion_time = NOW
        happen(made, RunBegan(), now=later(5))
        assert made.status.completion_time is None

    def test_a_plan_is_made_anew(self) -> None:
        made = migration(mode="Plan")
        made.status.sweep = MigrationSweep(type="Plan", done=True)
        made.status.progress.quarantined = 1
        made.status.quarantine.objects = [refused()]
        happen(made, RunBegan())
        assert made.status.sweep is None
        assert made.status.progress == MigrationProgress()
        assert made.status.quarantine.objects == []


class TestPinned:
    def test_the_start(self) -> None:
        made = migration()
        happen(made, Pin(target(), False, "Begins."))
        status = made.status
        assert (status.target, status.start_time, status.restarts) == (target(), NOW, 0)
        assert condition_of(made, "Resolved") == ("True", "Pinned")
        assert condition_of(made, "Succeeded") == ("Unknown", "Pinned")

    def test_a_restart_drops_all_evidence(self) -> None:
        made = at_work(scanned=7, named=[refused()], rewritten=5, quarantined=1)
        made.status.start_time = NOW
        for step in STEPS:
            with_condition(made, step, "True", "Done")
        announced = happen(made, Pin(target(generation=3), True, "Begins again."), now=later(9))
        status = made.status
        assert status.target == target(generation=3)
        assert (status.settled_resource_version, status.sweep) == (None, None)
        assert status.progress == MigrationProgress()
        assert status.quarantine.objects == []
        assert (status.restarts, status.start_time) == (1, NOW)
        assert condition_of(made, "Resolved") == ("True", "TargetChanged")
        assert {condition_of(made, step) for step in STEPS[1:]} == {("Unknown", "Pending")}
        (event,) = [each for each in announced if each.type == "Resolved"]
        assert event == Announcement("Resolved", "True", "TargetChanged", "Begins again.", warning=True)


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
            (STOP, ("True", "Suspended"), ("Unknown", "Suspended")),
        ],
        ids=["waiting", "failing", "suspended"],
    )
    def test_conditions(self, hold: Hold, step: tuple[str, str], succeeded: tuple[str, str]) -> None:
        made = migration(suspend=hold == STOP)
        announced = happen(made, hold)
        assert condition_of(made, hold.condition) == step
        assert condition_of(made, "Succeeded") == succeeded
        assert all(each.warning == hold.failing for each in announced if each.type != "Succeeded")

    def test_nothing_moves_meanwhile(self) -> None:
        made = at_work(objects_per_second=100, concurrency=8)
        made.status.progress.remaining = "3s"
        happen(made, Hold("Rewritten", "APIServerUnavailable", "Wait.", 2.0))
        progress = made.status.progress
        assert (progress.objects_per_second, progress.concurrency, progress.remaining) == (0, 0, "")

    def test_the_same_reason_again_is_no_change(self) -> None:
        made = migration()
        happen(made, Hold("Settled", "Settling", "60 s more.", 2.0))
        assert happen(made, Hold("Settled", "Settling", "58 s more.", 2.0), now=later(2)) == []
        found = find_condition(made.status.conditions, "Settled")
        assert found is not None
        assert found.message == "58 s more."

    def test_resumed(self) -> None:
        made = migration(suspend=True)
        happen(made, RunBegan(), STOP)
        made.spec.suspend = False
        assert Announcement("Suspended", "False", "Resumed", "Not suspended.") in happen(made, RunBegan())
        assert condition_of(made, "Suspended") == ("False", "Resumed")

    def test_who_was_never_suspended_is_not_resumed(self) -> None:
        made = migration()
        happen(made, RunBegan())
        assert find_condition(made.status.conditions, "Suspended") is None

    def test_settled(self) -> None:
        made = migration()
        happen(made, Separated("500", "65 s have passed."))
        assert made.status.settled_resource_version == "500"
        assert condition_of(made, "Settled") == ("True", "Settled")
        assert condition_of(made, "Permitted") == ("True", "Allowed")


class TestSweeps:
    def test_a_pass_over_refused_objects_is_a_round_of_retries(self) -> None:
        made = at_work(named=[refused()], quarantined=1, gone=2, rewritten=5)
        happen(made, SweepBegan("Rewrite", fresh=True))
        assert made.status.quarantine.rounds == 1
        assert made.status.quarantine.objects == []
        assert (made.status.progress.quarantined, made.status.progress.rewritten) == (0, 5)

    def test_a_verify_pass_is_none(self) -> None:
        made = at_work()
        happen(made, SweepBegan("Verify", fresh=True))
        assert made.status.quarantine.rounds == 0

    def test_a_plan_says_that_it_writes_nothing(self) -> None:
        made = migration(mode="Plan")
        happen(made, SweepBegan("Plan", fresh=True))
        assert condition_of(made, "Trimmed") == ("False", "PlanOnly")

    @pytest.mark.parametrize(
        ("type_", "condition", "reason"),
        [
            ("Rewrite", "Rewritten", "Rewriting"),
            ("Verify", "Verified", "Verifying"),
            ("Plan", "Succeeded", "Planning"),
        ],
    )
    def test_at_work(self, type_: SweepType, condition: str, reason: str) -> None:
        made = at_work(type_, scanned=7)
        happen(made, SweepBegan(type_, fresh=False))
        assert made.status.sweep == MigrationSweep(type=type_, scanned=7)
        assert condition_of(made, condition) == ("Unknown", reason)
        assert condition_of(made, "Succeeded") == ("Unknown", reason)
        # A migration by the command may have no object with a status.
        said = find_condition(made.status.conditions, condition)
        assert said is not None
        assert "status" not in said.message

    def test_a_full_pass_that_found_something_is_the_proof_all_the_same(self) -> None:
        made = at_work("Verify")
        made.spec.verify = "Full"
        sweep = made.status.sweep
        assert sweep is not None
        sweep.unexpected = 3
        happen(made, SweepEnded())
        assert condition_of(made, "Verified") == ("True", "AllPatched")

    def test_checkpoint_and_expired_list(self) -> None:
        made = at_work()
        happen(made, SweepCounted(SweepTally(), Baseline.of(made.status), "token", 500, 0.0, 1))
        assert made.status.sweep == MigrationSweep(type="Rewrite", continue_token="token", scanned=500)
        happen(made, ListExpired())
        assert made.status.sweep == MigrationSweep(type="Rewrite")

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
        happen(made, SweepEnded())
        ended = MigrationSweep.model_validate({"type": type_, "unexpected": unexpected, "done": True})
        assert made.status.sweep == ended
        assert condition_of(made, condition) == expected
        assert made.status.quarantine.next_retry_time is None

    @pytest.mark.parametrize(
        ("rounds", "seconds"), [(0, 10), (1, 20), (2, 40), (5, 300), (1000, 300)], ids=str
    )
    @pytest.mark.parametrize("type_", ["Rewrite", "Verify"])
    def test_refused_objects_are_tried_again_later(self, type_: str, rounds: int, seconds: int) -> None:
        made = at_work(type_, named=[refused()], quarantined=1)
        made.status.quarantine.rounds = rounds
        happen(made, SweepEnded())
        assert made.status.quarantine.next_retry_time == later(seconds)
        assert find_condition(made.status.conditions, "Rewritten") is None
        assert find_condition(made.status.conditions, "Verified") is None

    def test_after_the_last_one_was_written_all_is_to_be_verified(self) -> None:
        made = at_work("Verify", named=[refused()], quarantined=1, total=9)
        made.status.quarantine.rounds = 2
        happen(made, RetryEnded([], SweepTally(rewritten=1)))
        assert made.status.sweep == MigrationSweep(type="Rewrite", scanned=9, done=True)
        assert made.status.progress.quarantined == 0
        assert (made.status.quarantine.rounds, made.status.quarantine.objects) == (2, [])
        assert condition_of(made, "Rewritten") == ("True", "AllWritten")

    @pytest.mark.parametrize(
        "end", [RetryEnded([refused("b")], SweepTally(rewritten=1)), RetryBroken()], ids=["refused", "broken"]
    )
    def test_a_round_of_retries_that_leaves_some(self, end: Occurrence) -> None:
        made = at_work(named=[refused("a"), refused("b")], quarantined=2)
        happen(made, RetryBegan(), end, now=later(5))
        assert (made.status.quarantine.rounds, made.status.quarantine.next_retry_time) == (1, later(25))
        left = [each.name for each in made.status.quarantine.objects]
        assert left == (["a", "b"] if end == RetryBroken() else ["b"])

    @pytest.mark.parametrize(
        "occurrence",
        [
            SweepEnded(),
            ListExpired(),
            SweepCounted(SweepTally(scanned=1), Baseline.of(migration().status), "token", 1, 1, 1),
        ],
    )
    def test_without_a_pass_there_is_nothing_to_record(self, occurrence: Occurrence) -> None:
        made = migration()
        before = made.status.model_copy(deep=True)
        assert happen(made, occurrence) == []
        assert made.status == before


class TestFinished:
    def test_migrated_and_trimmed(self) -> None:
        made = at_work()
        happen(made, Trimmed(["v0", "v1"], "v2"))
        announced = happen(made, Finish(True, "Migrated", "Done."), now=later(1))
        found = find_condition(made.status.conditions, "Trimmed")
        assert found is not None
        assert (found.status, found.reason) == ("True", "Trimmed")
        assert "v0, v1" in found.message
        assert condition_of(made, "Succeeded") == ("True", "Migrated")
        assert (made.status.progress.percent, made.status.completion_time) == (100, later(1))
        assert announced == [Announcement("Succeeded", "True", "Migrated", "Done.")]

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
        happen(made, Finish(True, "Migrated", "Done."))
        assert condition_of(made, "Trimmed") == trimmed

    def test_nothing_to_do(self) -> None:
        made = migration()
        happen(made, Finish(True, "AlreadyCurrent", "It is."))
        assert {condition_of(made, step) for step in (*STEPS, "Succeeded")} == {("True", "AlreadyCurrent")}

    def test_failed(self) -> None:
        made = at_work(percent=40)
        made.metadata.generation = 4
        announced = happen(made, Finish(False, "RetriesExhausted", "No more."))
        assert condition_of(made, "Succeeded") == ("False", "RetriesExhausted")
        assert (made.status.progress.percent, made.status.observed_generation) == (40, 4)
        assert announced[-1].warning

    @pytest.mark.parametrize("reason", ["DefinitionDeleted", "DefinitionTerminating"])
    def test_the_crd_went(self, reason: str) -> None:
        made = at_work()
        happen(made, Finish(False, reason, "Gone."))
        assert condition_of(made, "Resolved") == ("False", reason)
