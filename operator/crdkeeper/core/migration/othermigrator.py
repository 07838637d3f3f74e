"""Whether someone else rewrites the same resource: two would write each object twice, and trim in turns.

The migrator of kube-controller-manager works on one StorageVersionMigration of a resource at a time.
Meanwhile the CRD has the condition StorageMigrating; at the end the migrator sets it to False, and trims
(k8s.io/kubernetes pkg/controller/storageversionmigrator, migrationrunner.go). If a StorageVersionMigration is
deleted while it runs, the condition remains True permanently, so alone it counts only for a while.
kube-storage-version-migrator is older and installed separately; its StorageVersionMigrations are of the group
`migration.k8s.io`. It runs one at a time and marks no CRD (its pkg/controller/kubemigrator.go).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.core.migration.observation import IN_TREE, Observation

LEFTOVER_SECONDS = 300.0
"""How long the condition counts although no StorageVersionMigration is running."""
_SHOWN = 3
_MARKED = "The CRD's condition StorageMigrating is True, so another migrator is running"


def at_work_on(resource: GroupResource, migrations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the StorageVersionMigrations, of either group, that are running for a resource.

    One that waits for its turn counts, and a finished one counts until it has updated the CRD.
    """
    return sorted(
        each["metadata"]["name"]
        for each in migrations
        if _resource(each) == (resource.group, resource.resource) and not _is_over(each)
    )


def _resource(migration: Mapping[str, Any]) -> tuple[str, str]:
    resource = (migration.get("spec") or {}).get("resource") or {}
    return resource.get("group", ""), resource.get("resource", "")


def _is_over(migration: Mapping[str, Any]) -> bool:
    conditions = (migration.get("status") or {}).get("conditions") or ()
    true = {each["type"] for each in conditions if each["status"] == "True"}
    return bool(true & {"Succeeded", "Failed"}) and "Running" not in true


@dataclass(slots=True)
class OtherMigrator:
    """Determines, from successive observations, whether another migrator is running."""

    _alone_since: datetime | None = None
    """Since when the condition is True without a StorageVersionMigration that explains it."""

    def look(self, seen: Observation, now: datetime) -> str:
        """A message that says who is running and what to do about it; empty if nobody is."""
        marked = seen.definition is not None and seen.definition.storage_migrating
        names = seen.others.names
        if not marked or names:
            self._alone_since = None
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            return (
                f"StorageVersionMigration {', '.join(names[:_SHOWN])}{more} is migrating the same resource. "
                f"This migration continues when it ends or is deleted."
            )
        if not marked:
            return ""
        if IN_TREE in seen.others.unseen:
            return (
                f"{_MARKED}. This migration continues when that one ends. crdkeeper cannot see which "
                f"one it is: list storageversionmigrations.{IN_TREE} is not permitted."
            )
        self._alone_since = self._alone_since or now
        left = LEFTOVER_SECONDS - (now - self._alone_since).total_seconds()
        if left <= 0:
            return ""
        return (
            f"{_MARKED}, but there is no StorageVersionMigration of the resource. If one was deleted "
            f"while running, nothing sets the condition to False. This migration continues in {left:.0f} s."
        )
