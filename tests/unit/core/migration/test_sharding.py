"""Which part an object is in, what is to be worked on, and what the parts add up to."""

from datetime import UTC, datetime

import pytest

from crdkeeper.api.meta import Condition
from crdkeeper.api.storagemigration import (
    MigrationPart,
    MigrationSweep,
    RefusedObject,
    StorageMigration,
)
from crdkeeper.core.migration.sharding import (
    DEAD_SECONDS,
    Liveness,
    Shard,
    begun,
    division,
    examples,
    name_of_pass,
    next_part,
    part_of,
    pass_at_work,
    stopped_by,
    summed,
)

WORK = "0.0.42"


@pytest.mark.parametrize(
    ("namespace", "name", "parts"),
    [
        ("default", "a", (0, 2, 46)),
        ("default", "b", (0, 1, 50)),
        ("", "a", (1, 0, 61)),
        ("ä", "ö", (0, 2, 32)),
    ],
)
def test_the_function_never_changes(namespace: str, name: str, parts: tuple[int, int, int]) -> None:
    """Written down: processes of different releases must agree."""
    assert tuple(part_of(namespace, name, count) for count in (2, 3, 64)) == parts


def migration(
    reason: str = "Rewriting", *, suspend: bool = False, sweep: MigrationSweep | None = None
) -> StorageMigration:
    found = StorageMigration.model_validate(
        {
            "metadata": {"name": "shared"},
            "spec": {"resource": {"group": "g.example.com", "resource": "crontabs"}, "suspend": suspend},
            "status": {
                "target": {"endpointVersion": "v2", "kind": "CronTab", "namespaced": True},
                "settledResourceVersion": "42",
                "shards": {"parts": [{}]},
            },
        }
    )
    found.status.sweep = sweep or MigrationSweep(type="Rewrite")
    found.status.conditions = [
        Condition(
            type="Rewritten",
            status="Unknown",
            last_transition_time=datetime(2026, 1, 1, tzinfo=UTC),
            reason=reason,
            message="",
        )
    ]
    return found


def test_only_a_pass_that_rewrites_is_shared() -> None:
    assert pass_at_work(migration()) == WORK
    assert pass_at_work(migration(suspend=True)) is None
    assert pass_at_work(migration("AnotherMigrator")) is None
    assert pass_at_work(migration(sweep=MigrationSweep(type="Verify"))) is None
    assert pass_at_work(migration(sweep=MigrationSweep(type="Rewrite", done=True))) is None


def test_other_evidence_or_another_round_is_another_pass() -> None:
    names = {name_of_pass((made := migration()).status)}
    made.status.restarts = 1
    names.add(name_of_pass(made.status))
    made.status.quarantine.rounds = 1
    names.add(name_of_pass(made.status))
    made.status.settled_resource_version = "43"
    names.add(name_of_pass(made.status))
    assert len(names) == 4


def test_a_shard_takes_its_own_part_first_and_then_what_is_left() -> None:
    parts = [MigrationPart(), MigrationPart(sweep=WORK, done=True), MigrationPart(sweep="0.0.1", done=True)]
    assert next_part(parts, WORK, Shard(2, 3), [True] * 3) == 2
    assert next_part(parts, WORK, Shard(1, 3), [True] * 3) == 2
    assert next_part(parts, WORK, Shard(1, 3), [True, True, False]) == 0
    assert next_part(parts, WORK, Shard(1, 3), [False, True, False]) is None
    # An index beyond the number of parts, which another process has chosen.
    assert next_part(parts, WORK, Shard(7, 9), [True] * 3) == 2


def test_a_holder_that_does_not_move_is_dead_by_our_own_clock() -> None:
    liveness, part = Liveness(), MigrationPart(holder="a", term=1, beat=9)
    assert liveness.is_free("0", MigrationPart(), 0.0)
    assert not liveness.is_free("0", part, 100.0)
    assert not liveness.is_free("0", part, 100.0 + DEAD_SECONDS)
    assert liveness.is_free("0", part, 100.1 + DEAD_SECONDS)
    assert not liveness.is_free("0", part.model_copy(update={"beat": 10}), 101.0 + DEAD_SECONDS)


def test_who_takes_over_goes_on_in_the_same_pass_and_begins_anew_in_another() -> None:
    part = MigrationPart(holder="a", term=4, beat=7, sweep=WORK, continue_token="t", scanned=5, trouble="x")
    same, other = begun(part, WORK, "b"), begun(part, "0.1.42", "b")
    assert (same.holder, same.term, same.continue_token, same.scanned, same.trouble) == ("b", 5, "t", 5, "")
    assert (other.holder, other.term, other.continue_token, other.scanned) == ("b", 5, None, 0)
    assert (other.sweep, part.term) == ("0.1.42", 4)


def test_the_sum_has_only_the_counts_of_the_pass() -> None:
    refused = RefusedObject(name="x", code=422, reason="Invalid", message="no")
    parts = [
        MigrationPart(sweep=WORK, done=True, scanned=10, rewritten=6, gone=1, total=30),
        MigrationPart(sweep=WORK, scanned=0, rewritten=4, refused=1, examples=[refused], total=31),
        MigrationPart(sweep="0.0.1", done=True, scanned=99, rewritten=99, total=99),
    ]
    tally, done = summed(parts, WORK)
    assert (tally.scanned, tally.rewritten, tally.gone, tally.total, done) == (15, 10, 1, 31, False)
    assert (tally.refused_count, list(tally.refused)) == (1, [refused])
    assert not summed([*parts[:1], MigrationPart(sweep="0.0.1", done=True)], WORK)[1]
    assert summed(parts[:1], WORK)[1]


def test_a_pass_stops_only_if_every_part_left_was_given_up_in_it() -> None:
    given_up = MigrationPart(sweep=WORK, term=2, trouble="no answer")
    done = MigrationPart(sweep=WORK, term=1, done=True)
    assert stopped_by([given_up, done], WORK, [1, 0]) == "no answer"
    assert stopped_by([given_up, done], WORK, [2, 0]) == ""
    assert stopped_by([given_up, MigrationPart()], WORK, [1, 0]) == ""
    assert stopped_by([given_up.model_copy(update={"holder": "a"})], WORK, [1]) == ""
    assert stopped_by([done], WORK, [0]) == ""


def test_examples_of_a_part_are_few_and_short() -> None:
    """Each write of any part stores them again."""
    long = RefusedObject(
        name="n" * 253, code=422, reason="r" * 999, denied_by="d" * 999, field="f" * 999, message="ä" * 500
    )
    kept = examples([], [long] * 10)
    assert len(kept) == 3
    assert all(len(each.to_object()["message"].encode()) <= 200 for each in kept)
    assert len(str(kept[0].to_object()).encode()) < 1200
    short = RefusedObject(namespace="ns", name="a", code=403, reason="Forbidden", message="denied")
    assert examples(kept[:2], [short, long]) == [*kept[:2], short]
    assert examples(kept, [short]) == kept


def test_the_division_counts_the_latest_pass_only() -> None:
    shared = migration()
    assert shared.status.shards is not None
    shared.status.shards.parts = [
        MigrationPart(sweep=WORK, done=True),
        MigrationPart(sweep=WORK, holder="a"),
        MigrationPart(sweep=WORK),
        MigrationPart(sweep="0.0.1", done=True, holder="b"),
    ]
    found = division(shared.status)
    assert found is not None
    assert (found.count, found.done, found.at_work) == (4, 1, 1)
    shared.status.shards = None
    assert division(shared.status) is None
