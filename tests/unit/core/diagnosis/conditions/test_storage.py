"""StorageCurrent: what storedVersions shows, and which StorageMigration is in progress."""

from typing import Any

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.diagnosis.conditions import storage
from crdkeeper.core.diagnosis.verdict import Reason
from tests.unit.builders import NAME, definition, later, migration, with_condition


def smig(
    name: str = "m", succeeded: str = "Unknown", *, done: bool = False, created: float = 0, **fields: Any
) -> StorageMigration:
    """A migration of widgets.example.com with that Succeeded condition."""
    made = migration(name, **fields)
    made.metadata.creation_timestamp = later(created)
    if done:
        made.status.completion_time = later(created + 1)
    return with_condition(made, "Succeeded", succeeded, "ObjectsRefused")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stored", "migrations", "reason", "reported"),
    [
        (("v2",), [], storage.CURRENT, "v2"),
        ((), [], storage.NOT_RECORDED, "the versions in which objects are stored are unknown"),
        (("v1", "v2"), [], storage.OLD_VERSIONS_STORED, f"crdkeeper migrate {NAME}"),
        (("v1",), [], storage.OLD_VERSIONS_STORED, "stored in v1; the storage version is v2"),
        (("v1", "v2"), [smig()], storage.MIGRATING, "StorageMigration m is running"),
        (("v1", "v2"), [smig(suspend=True)], storage.MIGRATION_SUSPENDED, "m is suspended"),
        (("v1", "v2"), [smig(succeeded="False")], storage.MIGRATION_FAILING, "(ObjectsRefused)"),
        (("v1", "v2"), [smig(succeeded="False", done=True)], storage.MIGRATION_FAILING, "describe smig m"),
        (("v1", "v2"), [smig(succeeded="True", done=True)], storage.OLD_VERSIONS_STORED, "Run"),
        (("v1", "v2"), [smig(mode="Plan")], storage.OLD_VERSIONS_STORED, "Run"),
        (
            ("v1", "v2"),
            [smig("old", "False", done=True), smig("new", created=9)],
            storage.MIGRATING,
            "StorageMigration new is running",
        ),
        (
            ("v1", "v2"),
            [smig("a", created=5), smig("b", created=9), smig("c", created=7)],
            storage.MIGRATING,
            "StorageMigration b is running",
        ),
        (("v2",), [smig(succeeded="False")], storage.CURRENT, "v2"),
    ],
)
def test_verdict(
    stored: tuple[str, ...], migrations: list[StorageMigration], reason: Reason, reported: str
) -> None:
    verdict = storage.judge(definition(stored=stored), migrations)
    assert verdict.reason is reason
    assert reported in verdict.message


def test_a_migrations_progress_does_not_change_the_message() -> None:
    """Otherwise the report would be written as often as the migration's status."""
    one, other = smig(succeeded="False"), smig(succeeded="False")
    other.status.progress.rewritten = 99
    other.status.conditions[0].message = "99 objects refused."
    known = definition(stored=("v1", "v2"))
    assert storage.judge(known, [one]) == storage.judge(known, [other])
