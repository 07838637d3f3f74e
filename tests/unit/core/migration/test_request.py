"""The meaning of a command's options for a new migration, and for a resumed one."""

from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.api.meta import CLI
from crdkeeper.api.storagemigration import GroupResource, StorageMigration, StorageMigrationSpec
from crdkeeper.core.migration.request import RETRY_ROUNDS, Request

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WIDGETS = GroupResource(group="example.com", resource="widgets")


def request(*, name: str | None = None, dry_run: bool = False, **options: Any) -> Request:
    """A request with options as fields of spec."""
    return Request(WIDGETS, options, name, dry_run)


def interrupted(limit: int | None = 3, **retry: Any) -> StorageMigration:
    """One with two rounds of retries, the next of them in the future."""
    spec = {"resource": WIDGETS, "managedBy": CLI, "retry": {"limit": limit, **retry}, "trim": False}
    made = StorageMigration.model_validate({"metadata": {"name": "m"}, "spec": spec})
    made.status.quarantine.rounds = 2
    made.status.quarantine.next_retry_time = NOW
    return made


def failed(limit: int | None = 3) -> StorageMigration:
    """The same, after its end."""
    made = interrupted(limit)
    made.status.completion_time = NOW
    return made


def test_a_migration_begins_with_the_defaults_but_for_its_retries() -> None:
    spec = request().spec()
    assert spec.retry.limit == RETRY_ROUNDS
    spec.retry.limit = None
    assert spec == StorageMigrationSpec(resource=WIDGETS, managed_by=CLI)


def test_options_are_merged_into_the_defaults() -> None:
    spec = request(limits={"max_objects_per_second": 5}, retry={"limit": None}, verify="Full").spec()
    assert (spec.limits.max_objects_per_second, spec.limits.max_concurrency) == (5, 64)
    assert (spec.retry.limit, spec.retry.backoff_seconds) == (None, 10)
    assert spec.verify == "Full"


def test_a_dry_run_is_a_plan() -> None:
    made = request(dry_run=True).unstored()
    assert (made.spec.mode, made.metadata.name) == ("Plan", "widgets.example.com-cli")
    assert request(name="mine").unstored().metadata.name == "mine"


def test_going_on_keeps_what_was_asked_for_first_but_for_what_is_asked_for_now() -> None:
    spec = request(trim=True).resumed(interrupted(backoffSeconds=7)).spec
    assert (spec.trim, spec.retry.backoff_seconds, spec.retry.limit) == (True, 7, 3)


def test_going_on_tries_what_was_refused_at_once() -> None:
    assert request().resumed(interrupted()).status.quarantine.next_retry_time is None


@pytest.mark.parametrize(
    ("limit", "options", "rounds"),
    [
        (3, {}, 5),
        (0, {}, 3),  # whoever starts it again wants an attempt
        (3, {"retry": {"limit": 1}}, 3),
        (3, {"retry": {"limit": None}}, None),
        (None, {}, None),
    ],
)
def test_one_that_used_up_its_retries_gets_as_many_again(
    limit: int | None, options: dict[str, Any], rounds: int | None
) -> None:
    assert request(**options).resumed(failed(limit)).spec.retry.limit == rounds


def test_what_is_gone_on_with_stays_as_it_was() -> None:
    made = failed()
    before = made.model_copy(deep=True)
    request(trim=True).resumed(made)
    assert made == before
