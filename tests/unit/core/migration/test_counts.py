"""The counts in a status: of the pass in progress, and of earlier ones, even by a process that was killed."""

import pytest

from crdkeeper.api.storagemigration import QUARANTINE_SHOWN, MigrationProgress, StorageMigration
from crdkeeper.core.migration.counts import Baseline, SweepTally, add_retry, add_tally, format_duration
from tests.unit.builders import at_work, migration, refused


def progressed(made: StorageMigration, tally: SweepTally, rate: float = 0.0) -> MigrationProgress:
    add_tally(made.status, tally, Baseline.of(made.status), rate=rate, concurrency=8)
    return made.status.progress


class TestAPass:
    def test_counts_add_to_what_was_on_record(self) -> None:
        made = at_work(scanned=100, rewritten=80, gone=5, total=100)
        progress = progressed(
            made, SweepTally(scanned=50, rewritten=30, current=18, gone=1, total=150, refused_count=1)
        )
        assert (progress.rewritten, progress.gone, progress.quarantined) == (110, 6, 1)
        assert progress.total == 250
        assert progress.current == 150 - 110 - 6 - 1
        assert progress.percent == 60

    def test_what_a_killed_run_rewrote_is_found_current(self) -> None:
        # Scanned dates from the checkpoint; rewritten had reached 40 when the last status was saved.
        made = at_work(scanned=10, rewritten=40, total=100)
        assert progressed(made, SweepTally(scanned=30, current=30, total=90)).current == 0
        assert progressed(made, SweepTally(scanned=90, current=90, total=90)).current >= 0

    @pytest.mark.parametrize(("scanned", "percent"), [(0, 0), (1, 1), (50, 50), (100, 99)])
    def test_a_hundred_percent_is_for_the_end(self, scanned: int, percent: int) -> None:
        assert progressed(at_work(), SweepTally(scanned=scanned, total=100)).percent == percent

    def test_no_object_at_all(self) -> None:
        assert progressed(at_work(), SweepTally()).percent == 0

    def test_a_second_pass_does_not_begin_at_zero_percent(self) -> None:
        made = at_work("Verify", percent=99, current=3)
        progress = progressed(made, SweepTally(scanned=1, unexpected=1, total=100))
        assert (progress.percent, progress.current) == (99, 3)
        assert made.status.sweep is not None
        assert made.status.sweep.unexpected == 1

    @pytest.mark.parametrize(
        ("rate", "remaining"), [(0.0, ""), (1.0, "1m30s"), (30.0, "3s")], ids=["unknown", "slow", "fast"]
    )
    def test_rate_and_remaining_time(self, rate: float, remaining: str) -> None:
        progress = progressed(at_work(), SweepTally(scanned=10, total=100), rate)
        assert (progress.objects_per_second, progress.concurrency) == (round(rate), 8)
        assert progress.remaining == remaining

    def test_refused_objects_are_named(self) -> None:
        made = at_work()
        progressed(
            made, SweepTally(scanned=2, total=2, refused=[refused("a"), refused("b")], refused_count=2)
        )
        assert [each.name for each in made.status.quarantine.objects] == ["a", "b"]
        assert made.status.progress.quarantined == 2

    def test_one_that_is_refused_again_after_a_restart_counts_once(self) -> None:
        made = at_work(named=[refused("a")], quarantined=1)
        progressed(
            made, SweepTally(scanned=2, total=2, refused=[refused("a"), refused("b")], refused_count=2)
        )
        assert [each.name for each in made.status.quarantine.objects] == ["a", "b"]
        assert made.status.progress.quarantined == 2

    def test_names_are_told_apart_by_namespace(self) -> None:
        made = at_work(named=[refused("a", "one")], quarantined=1)
        progressed(made, SweepTally(scanned=1, refused=[refused("a", "two")], refused_count=1))
        assert made.status.progress.quarantined == 2

    def test_status_names_some_and_counts_all(self) -> None:
        made = at_work()
        many = [refused(f"w{number}") for number in range(QUARANTINE_SHOWN + 5)]
        progressed(made, SweepTally(scanned=2000, refused=many, refused_count=2000))
        assert len(made.status.quarantine.objects) == QUARANTINE_SHOWN
        assert made.status.progress.quarantined == 2000

    def test_saving_twice_counts_once(self) -> None:
        made = at_work(rewritten=1)
        before, tally = Baseline.of(made.status), SweepTally(scanned=3, rewritten=3)
        for _ in range(2):
            add_tally(made.status, tally, before, rate=0.0, concurrency=1)
        assert made.status.progress.rewritten == 4

    def test_without_one_there_is_nothing_to_count(self) -> None:
        made = migration()
        before = made.status.model_copy(deep=True)
        progressed(made, SweepTally(scanned=1), 1.0)
        assert made.status == before


class TestARoundOfRetries:
    def test_it_leaves_some(self) -> None:
        made = at_work(named=[refused("a"), refused("b"), refused("c")], quarantined=3, rewritten=1)
        add_retry(made.status, [refused("b")], SweepTally(rewritten=1, gone=1))
        assert [each.name for each in made.status.quarantine.objects] == ["b"]
        progress = made.status.progress
        assert (progress.rewritten, progress.gone, progress.quarantined) == (2, 1, 1)

    def test_no_object_is_counted_twice(self) -> None:
        made = at_work(named=[refused("a")], quarantined=1, rewritten=100, total=100)
        add_retry(made.status, [], SweepTally(current=1))
        assert (made.status.progress.rewritten, made.status.progress.current) == (100, 0)


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
