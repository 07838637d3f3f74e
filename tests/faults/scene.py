"""How the fault tests determine a migration's progress and correctness: from etcd."""

from collections.abc import Mapping

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.harness import Admin, CustomKind

PHASES = ("settling", "settled", "Rewrite", "Verify", "proved", "over")
"""The stages of a migration, in order: see `phase`."""


def rewritten(admin: Admin, kind: CustomKind) -> int:
    """Objects that are stored at the storage version."""
    return admin.stored(kind).get(kind.storage_version, 0)


def write_counts(admin: Admin, kind: CustomKind) -> dict[str, int]:
    """How often each object was written since it was created, by its key in etcd."""
    return admin.etcd.write_counts(f"/registry/{kind.group}/{kind.plural}/")


def assert_each_written_once(admin: Admin, kind: CustomKind, *, since: Mapping[str, int]) -> None:
    """All these objects exist and were written once since: no process repeated the work of another."""
    now = write_counts(admin, kind)
    assert {key: count - since.get(key, 0) for key, count in now.items()} == dict.fromkeys(since, 1)


async def assert_all_stored_at(admin: Admin, kind: CustomKind, count: int) -> None:
    """The end of a migration in etcd: all objects at the storage version, and no other version recorded."""
    assert admin.stored(kind) == {kind.storage_version: count}
    assert await admin.stored_versions_of(kind) == [kind.storage_version]


def phase(migration: StorageMigration) -> str:
    """A migration's progress, by what a new operator finds recorded."""
    status = migration.status
    if status.completion_time is not None:
        return "over"
    if status.settled_resource_version is None:
        return "settling"
    if status.sweep is None:
        return "settled"
    if status.sweep.type == "Verify" and status.sweep.done:
        return "proved"
    return status.sweep.type


def message_of(migration: StorageMigration, type_: str) -> str:
    """The message of a condition; empty without one."""
    found = find_condition(migration.status.conditions, type_)
    return found.message if found is not None else ""
