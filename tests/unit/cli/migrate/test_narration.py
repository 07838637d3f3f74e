"""What `crdkeeper migrate` says about a migration."""

from io import StringIO

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.migrate.display import PlainDisplay
from crdkeeper.cli.migrate.narration import (
    failure,
    interruption,
    news,
    outcome,
    phase,
    progress_line,
    refused_table,
)
from tests.unit.cli.migrate.migrations import ended, migration, refused, rewriting, with_condition


def test_progress_counts_objects_and_not_only_whole_pages() -> None:
    assert progress_line(rewriting(40, 1000)) == (
        "Rewriting: 40 of 1,000 (4%), 301/s, 16 in flight, 0 refused, 3s left"
    )


def test_the_second_pass_counts_what_it_has_seen() -> None:
    seen = with_condition(rewriting(1000, 1000), "Succeeded", "Unknown", "Verifying")
    assert seen.status.sweep is not None
    seen.status.sweep.type, seen.status.sweep.scanned = "Verify", 500
    assert (phase(seen).done, phase(seen).total) == (500, 1000)


def test_a_wait_has_a_message_instead_of_counts() -> None:
    waiting = with_condition(rewriting(), "Succeeded", "Unknown", "Settling", "Waiting 60 s more.")
    assert phase(waiting).message == "Waiting 60 s more."
    assert progress_line(waiting) == ""
    assert progress_line(migration()) == ""


def test_a_pass_that_is_over_has_no_progress() -> None:
    over = rewriting(1000, 1000)
    assert over.status.sweep is not None
    over.status.sweep.done = True
    assert progress_line(over) == ""


def test_news_are_conditions_whose_status_or_reason_changed() -> None:
    before = with_condition(migration(), "Settled", "False", "Settling", "Waiting 60 s more.")
    known = list(before.status.conditions)
    assert news(known, before) == []
    with_condition(before, "Settled", "False", "Settling", "Waiting 58 s more.")
    assert news(known, before) == []
    with_condition(before, "Settled", "True", "Settled", "65 s have passed.")
    assert news(known, before) == ["Settled=True Settled: 65 s have passed."]


def test_news_tell_nothing_twice_and_leave_out_what_tells_nothing() -> None:
    now = with_condition(migration(), "Permitted", "True", "Allowed")
    with_condition(now, "Rewritten", "False", "ObjectsRefused", "1 object refused.")
    with_condition(now, "Verified", "Unknown", "Pending")
    with_condition(now, "Succeeded", "False", "ObjectsRefused", "1 object refused.")
    assert news([], now) == ["Rewritten=False ObjectsRefused: 1 object refused."]


def test_the_summary_is_told_only_where_no_step_tells_the_same() -> None:
    now = with_condition(migration(), "Succeeded", "Unknown", "Suspended", "Suspended by spec.suspend.")
    with_condition(now, "Suspended", "True", "Suspended", "Suspended by spec.suspend.")
    assert news([], now) == ["Suspended=True Suspended: Suspended by spec.suspend."]
    only = with_condition(migration(), "Succeeded", "Unknown", "Planning", "Tried.")
    assert news([], only) == ["Succeeded=Unknown Planning: Tried."]


def test_the_end_is_left_to_the_report() -> None:
    assert news([], ended("Migrated", success=True)) == []


def test_a_pipe_gets_no_progress_line_more_often_than_every_few_seconds() -> None:
    stream = StringIO()
    with PlainDisplay(stream) as display:
        for done in range(40, 60):
            display.show(rewriting(done))
        display.show(with_condition(rewriting(60), "Rewritten", "True", "AllWritten", "All written."))
    assert stream.getvalue().splitlines() == [
        "Rewriting: 40 of 1,000 (4%), 301/s, 16 in flight, 0 refused, 3s left",
        "Rewritten=True AllWritten: All written.",
    ]


def test_what_was_known_before_the_start_is_no_news() -> None:
    stream = StringIO()
    with PlainDisplay(stream) as display:
        display.show(with_condition(migration(), "Permitted", "False", "Forbidden"))
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            with_condition(
                ended("Migrated", success=True, message="9 objects proved."),
                "Trimmed",
                "True",
                "Trimmed",
                "No v1.",
            ),
            "widgets.example.com: 9 objects proved. No v1.",
        ),
        (
            with_condition(
                ended("Migrated", success=True, message="9 objects proved."),
                "Trimmed",
                "False",
                "NotRequested",
                "Left alone.",
            ),
            "widgets.example.com: 9 objects proved. Left alone.",
        ),
        (
            with_condition(
                ended("AlreadyCurrent", success=True, message="v2 only."), "Trimmed", "True", "AlreadyCurrent"
            ),
            "widgets.example.com: Nothing to do: v2 only.",
        ),
    ],
)
def test_a_success_in_one_line(made: StorageMigration, text: str) -> None:
    assert outcome(made) == text


def failed(reason: str, **spec: str) -> StorageMigration:
    """One that failed with 3 of 1,000 objects refused in 2 rounds of retries."""
    made = ended(reason, success=False, **spec)
    made.status.progress.total, made.status.progress.quarantined = 1000, 3
    made.status.quarantine.rounds = 2
    return made


def test_a_failure_says_what_to_do() -> None:
    mine = failure(failed("RetriesExhausted"), gone=False, followed=False)
    assert mine.startswith("widgets.example.com: 3 objects refused, also in 2 rounds of retries.")
    assert mine.endswith("Fix the causes; then run the same command again to retry only these objects.")
    theirs = failure(failed("ObjectsRefused"), gone=False, followed=True)
    assert theirs.endswith("Fix the causes; the migration keeps retrying.")
    plan = failure(failed("WouldBeRefused", mode="Plan"), gone=False, followed=False)
    assert "3 of 1,000 objects would be refused. Nothing was written." in plan


def test_other_failures_are_told_as_their_condition_does() -> None:
    made = ended("DefinitionDeleted", success=False, message="The CRD was deleted.")
    assert (
        failure(made, gone=False, followed=False)
        == "widgets.example.com: DefinitionDeleted: The CRD was deleted."
    )
    assert "was deleted; nothing more was done" in failure(rewriting(), gone=True, followed=False)


@pytest.mark.parametrize(
    ("made", "saved", "followed", "words"),
    [
        (None, None, False, "before anything was done"),
        (
            rewriting(),
            rewriting(),
            False,
            "at 40 of 1,000 objects (Rewriting); saved in StorageMigration widgets",
        ),
        (
            rewriting(),
            rewriting(30),
            False,
            "at 40 of 1,000 objects (Rewriting), which may not be saved: StorageMigration "
            "widgets.example.com-cli is known to be saved at 30 of 1,000 objects (Rewriting). "
            "To resume, run the same command again.",
        ),
        (
            rewriting(),
            with_condition(migration(), "Succeeded", "Unknown", "Settling"),
            False,
            "is known to be saved (Settling). To resume, run",
        ),
        (rewriting(), None, False, "To start over"),
        (rewriting(), rewriting(), True, "Stopped watching"),
        (migration(mode="Plan"), None, False, "Nothing was written."),
    ],
)
def test_an_interruption_says_how_to_go_on(
    made: StorageMigration | None, saved: StorageMigration | None, followed: bool, words: str
) -> None:
    assert words in interruption(made, saved=saved.status if saved else None, followed=followed)


def test_refused_objects_are_listed_one_a_line() -> None:
    objects = [
        refused("w1", denied_by="webhook deny.example.com", field="spec.size"),
        refused("w2", namespace=""),
    ]
    assert refused_table([("widgets.example.com", each) for each in objects], 2) == [
        "OBJECT       CODE   DENIED BY                  FIELD       MESSAGE",
        "default/w1   422    webhook deny.example.com   spec.size   It is not valid.",
        "w2           422    -                          -           It is not valid.",
    ]
    assert (
        refused_table([("widgets.example.com", each) for each in objects], 12)[-1]
        == "… and 10 more objects, not listed by name"
    )
