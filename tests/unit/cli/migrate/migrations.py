"""StorageMigrations in the states that users see."""

from datetime import UTC, datetime
from typing import Any

from crdkeeper.api.meta import CLI, ConditionStatus, set_condition
from crdkeeper.api.storagemigration import (
    MigrationSweep,
    MigrationTarget,
    RefusedObject,
    StorageMigration,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def migration(name: str = "widgets.example.com-cli", **spec: Any) -> StorageMigration:
    """A new one for widgets."""
    resource = {"group": "example.com", "resource": "widgets"}
    made = StorageMigration.model_validate(
        {"metadata": {"name": name}, "spec": {"resource": resource, "managedBy": CLI, **spec}}
    )
    made.status.target = MigrationTarget(
        uid="u1",
        generation=2,
        storage_version="v2",
        endpoint_version="v2",
        stored_versions=["v1", "v2"],
        kind="Widget",
        namespaced=True,
    )
    return made


def with_condition(
    made: StorageMigration, type_: str, status: ConditionStatus, reason: str, message: str = "So it is."
) -> StorageMigration:
    """The same with a condition set."""
    set_condition(made.status.conditions, type_, status, reason, message, generation=1, now=NOW)
    return made


def rewriting(done: int = 40, total: int = 1000) -> StorageMigration:
    """One that rewrites, with that many objects done."""
    made = with_condition(migration(), "Succeeded", "Unknown", "Rewriting")
    made.status.sweep = MigrationSweep(type="Rewrite", scanned=0)
    progress = made.status.progress
    progress.total, progress.rewritten, progress.percent = total, done, 100 * done // total
    progress.objects_per_second, progress.concurrency, progress.remaining = 301, 16, "3s"
    return made


def refused(name: str = "w1", **fields: Any) -> RefusedObject:
    """One refused object."""
    content = {"namespace": "default", "code": 422, "reason": "Invalid", "message": "It is\nnot valid."}
    return RefusedObject.model_validate({**content, "name": name, **fields})


def ended(reason: str, *, success: bool, message: str = "It has ended.", **spec: Any) -> StorageMigration:
    """One that has ended."""
    made = with_condition(migration(**spec), "Succeeded", "True" if success else "False", reason, message)
    made.status.completion_time = NOW
    return made
