"""Creates the values for unit tests, complete and valid, so that a test states only what matters."""

from datetime import UTC, datetime, timedelta
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import ConditionStatus, find_condition, set_condition
from crdkeeper.api.storagemigration import (
    MigrationProgress,
    MigrationSweep,
    MigrationTarget,
    RefusedObject,
    StorageMigration,
    StorageMigrationSpec,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.core.migration.observation import ApiServerLease, Observation, definition_target
from crdkeeper.core.migration.occurrences import Occurrence
from crdkeeper.core.migration.record import Announcement, record

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAME = "widgets.example.com"


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def crd(
    *,
    storage: str = "v2",
    served: tuple[str, ...] = ("v1", "v2"),
    stored: tuple[str, ...] = ("v1", "v2"),
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """A CRD with the versions v1 and v2 as the API server returns it."""
    established = {"type": "Established", "status": "True"}
    return {
        "metadata": {"name": NAME, "uid": "u1", "resourceVersion": "100", "generation": 2, **metadata},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": each, "served": each in served, "storage": each == storage} for each in ("v1", "v2")
            ],
        },
        "status": {"conditions": [established], "storedVersions": list(stored), **(status or {})},
    }


def definition(**changes: Any) -> DefinitionFacts:
    return definition_facts(crd(**changes))


def target(**changes: Any) -> MigrationTarget:
    """The pinned target for `definition()`."""
    found = definition_target(definition())
    assert found is not None
    return found.model_copy(update=changes)


def lease(name: str = "apiserver-1", version: int = 101, expires_in: float = 3600) -> ApiServerLease:
    return ApiServerLease(name, str(version), later(expires_in))


def seen(*leases: ApiServerLease, **changes: Any) -> Observation:
    """An observation of the CRD with these changes, and of these Leases."""
    facts = definition(**changes)
    return Observation(definition_target(facts), facts, leases=leases)


def spec(**fields: Any) -> StorageMigrationSpec:
    resource = {"group": "example.com", "resource": "widgets"}
    return StorageMigrationSpec.model_validate({"resource": resource, **fields})


def migration(name: str = "m", *, generation: int = 1, **fields: Any) -> StorageMigration:
    """A new migration; `fields` are of its spec."""
    metadata = {"name": name, "uid": f"uid-of-{name}", "generation": generation}
    return StorageMigration.model_validate({"metadata": metadata, "spec": spec(**fields).to_object()})


def at_work(
    type_: str = "Rewrite", *, scanned: int = 0, named: list[RefusedObject] | None = None, **progress: int
) -> StorageMigration:
    """A migration with a pass in progress."""
    made = migration()
    made.status.target = target()
    made.status.settled_resource_version = "500"
    made.status.sweep = MigrationSweep.model_validate({"type": type_, "scanned": scanned})
    made.status.progress = MigrationProgress.model_validate(progress)
    made.status.quarantine.objects = named or []
    return made


def happen(made: StorageMigration, *occurrences: Occurrence, now: datetime = NOW) -> list[Announcement]:
    """Record occurrences, one after the other; returns the announcements of the last one."""
    announcements: list[Announcement] = []
    for each in occurrences:
        recorded = record(made, each, now)
        made.status, announcements = recorded.status, list(recorded.announcements)
    return announcements


def refused(name: str = "w1", namespace: str = "default", **fields: Any) -> RefusedObject:
    content = {"code": 422, "reason": "Invalid", "message": "It is not valid."}
    return RefusedObject.model_validate({**content, "namespace": namespace, "name": name, **fields})


def with_condition(
    made: StorageMigration, type_: str, status: ConditionStatus, reason: str
) -> StorageMigration:
    set_condition(made.status.conditions, type_, status, reason, "So it is.", generation=1, now=NOW)
    return made


def condition_of(made: StorageMigration, type_: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    found = find_condition(made.status.conditions, type_)
    assert found is not None, f"there is no condition {type_}"
    return found.status, found.reason


def policy(
    name: str = "p", *, mode: str = "Automatic", created: float | None = 0, **fields: Any
) -> DefinitionPolicy:
    """A policy that selects all CRDs; `fields` are those of its spec."""
    metadata: dict[str, Any] = {"name": name}
    if created is not None:
        metadata["creationTimestamp"] = later(created).isoformat()
    migrates = {"mode": mode, "template": {"settleSeconds": 7}}
    return DefinitionPolicy.model_validate(
        {"metadata": metadata, "spec": {"storageMigration": migrates, **fields}}
    )
