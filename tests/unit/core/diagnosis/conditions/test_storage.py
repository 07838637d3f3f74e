"""StorageCurrent: what storedVersions shows, and which StorageMigration is in progress."""

from typing import Any

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.diagnosis.conditions import storage
from crdkeeper.core.diagnosis.verdict import Reason
from crdkeeper.core.policy.labels import MIGRATION_LABEL, MODES
from tests.unit.builders import NAME, definition, later, migration, target, with_condition


def smig(
    name: str = "m",
    succeeded: str = "Unknown",
    *,
    done: bool = False,
    created: float = 0,
    lasted: float = 1,
    uid: str = "u1",
    **fields: Any,
) -> StorageMigration:
    """A migration of widgets.example.com with that Succeeded condition, begun for the CRD with that uid."""
    made = migration(name, **fields)
    made.metadata.creation_timestamp = later(created)
    made.status.target = target(uid=uid)
    if done:
        made.status.completion_time = later(created + lasted)
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
        # What was superseded, and what was about a former CRD of the name.
        (
            ("v1", "v2"),
            [smig("old", "False", done=True), smig("new", "True", done=True, created=5)],
            storage.OLD_VERSIONS_STORED,
            "Run",
        ),
        (
            ("v1", "v2"),
            [smig("long", "False", done=True, lasted=9), smig("short", "True", done=True, created=5)],
            storage.MIGRATION_FAILING,
            "describe smig long",
        ),
        (("v1", "v2"), [smig("m", "False", done=True, uid="u0")], storage.OLD_VERSIONS_STORED, "Run"),
        (("v1", "v2"), [smig(uid="u0")], storage.MIGRATING, "m is running"),
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


@pytest.mark.parametrize(
    ("stored", "unknown", "overruled", "reason", "reported"),
    [
        (("v2",), "", "", storage.CURRENT, "All objects"),
        (("v2",), "", "Policy p.", storage.CURRENT, "All objects"),
        (("v2",), "A typo.", "", storage.UNKNOWN_LABEL, "A typo. Set it to one of these, or take it off."),
        (("v1", "v2"), "A typo.", "", storage.OLD_VERSIONS_STORED, "is v2. A typo. Run"),
        (("v1", "v2"), "", "Policy p.", storage.OLD_VERSIONS_STORED, "is v2. Policy p. Run"),
        (("v1", "v2"), "", "", storage.OLD_VERSIONS_STORED, "is v2. Run"),
    ],
)
def test_labels(stored: tuple[str, ...], unknown: str, overruled: str, reason: Reason, reported: str) -> None:
    verdict = storage.judge(definition(stored=stored), [], unknown_label=unknown, overruled_label=overruled)
    assert verdict.reason is reason
    assert reported in verdict.message


def test_a_migration_at_work_matters_more_than_a_label() -> None:
    verdict = storage.judge(definition(stored=("v1", "v2")), [smig()], unknown_label="A typo.")
    assert verdict.reason is storage.MIGRATING


def test_the_remedy_lists_what_the_label_may_be() -> None:
    assert [each for each in (MIGRATION_LABEL, *MODES) if each not in storage.UNKNOWN_LABEL.remedy] == []


@pytest.mark.parametrize(
    ("migrations", "rewritten"),
    [
        ([], False),
        ([smig(created=10)], False),
        ([smig(created=7, done=True)], False),
        ([smig(created=8, done=True)], True),
        ([smig(created=7, done=True), smig("n", "False", created=20, done=True)], True),
        ([smig(created=15, done=True, mode="Plan")], False),
        ([smig(created=21, done=True)], False),
    ],
)
def test_a_rewrite_that_ended_in_some_time(migrations: list[StorageMigration], rewritten: bool) -> None:
    assert storage.were_rewritten(migrations, later(10), later(20)) is rewritten


def writing(
    progress: str = "7", *, concurrency: int = 4, done: bool = False, **fields: Any
) -> StorageMigration:
    """A migration that says it has so many requests in flight."""
    made = smig(done=done, **fields)
    made.metadata.resource_version = progress
    made.status.progress.concurrency = concurrency
    return made


@pytest.mark.parametrize(
    ("migrations", "expected"),
    [
        ([], False),
        ([writing()], True),
        ([writing(concurrency=0)], False),
        ([writing(done=True)], False),
        ([writing(mode="Plan")], False),
        ([smig(), writing()], True),
    ],
)
def test_a_rewrite_at_work(migrations: list[StorageMigration], expected: bool) -> None:
    assert bool(storage.being_rewritten(migrations)) is expected


def test_the_progress_of_a_rewrite() -> None:
    assert storage.being_rewritten([writing("7")]) == storage.being_rewritten([writing("7")])
    assert storage.being_rewritten([writing("7")]) != storage.being_rewritten([writing("8")])
