"""Flux, Argo CD and Helm judge a migration like its users do (kstatus)."""

import pytest

from crdkeeper.core.migration.occurrences import RunBegan
from crdkeeper.core.migration.protocol import Finish, Hold
from tests.kstatus import status_of
from tests.unit.builders import condition_of, happen, migration


def test_one_that_nobody_has_seen_is_in_progress() -> None:
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
def test_it_follows_the_summary(finish: Finish | None, status: str) -> None:
    made = migration()
    happen(made, RunBegan())
    if finish is not None:
        happen(made, finish)
    assert status_of(made.to_object()) == status


def test_what_a_person_must_mend_has_failed_until_it_is_mended() -> None:
    made = migration()
    happen(made, RunBegan())
    happen(made, Hold("Permitted", "Forbidden", "No.", 10.0, failing=True))
    assert status_of(made.to_object()) == "Failed"
    happen(made, Hold("Settled", "Settling", "Wait.", 10.0))
    assert status_of(made.to_object()) == "InProgress"


def test_what_is_tried_again_is_in_progress() -> None:
    made = migration()
    happen(made, RunBegan())
    happen(made, Hold("Rewritten", "ObjectsRefused", "Refused.", 10.0, failing=True))
    assert condition_of(made, "Ready") == ("False", "ObjectsRefused")
    assert status_of(made.to_object()) == "InProgress"


def test_a_changed_spec_is_in_progress() -> None:
    made = migration()
    happen(made, RunBegan())
    happen(made, Finish(True, "Migrated", "Done."))
    made.metadata.generation += 1
    assert status_of(made.to_object()) == "InProgress"
