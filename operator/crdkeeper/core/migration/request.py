"""A migration that a person asks for by a command: its spec at the start, and when it is resumed.

The options of a command hold for its own run. The object's spec keeps what its first run was asked for: an
account that may run a migration need not be able to change one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.meta import CLI, ObjectMeta
from crdkeeper.api.storagemigration import (
    GroupResource,
    MigrationRetry,
    StorageMigration,
    StorageMigrationSpec,
)
from crdkeeper.core.migration.choice import default_name

RETRY_ROUNDS = 3
"""Rounds of retries unless asked otherwise: whoever runs a command wants to hear of what is refused."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. `options` are the fields of spec that were given, by their names in Python."""

    resource: GroupResource
    options: Mapping[str, Any]
    name: str | None = None
    dry_run: bool = False

    def spec(self) -> StorageMigrationSpec:
        """Of a migration that begins."""
        begun = StorageMigrationSpec(
            resource=self.resource,
            mode="Plan" if self.dry_run else "Execute",
            managed_by=CLI,
            retry=MigrationRetry(limit=RETRY_ROUNDS),
        )
        return self.applied_to(begun)

    def applied_to(self, spec: StorageMigrationSpec) -> StorageMigrationSpec:
        """A spec with the options that were given."""
        return StorageMigrationSpec.model_validate(_merged(spec.model_dump(), self.options))

    def unstored(self) -> StorageMigration:
        """The migration where it cannot or need not be kept in the cluster."""
        name = self.name or default_name(self.resource)
        return StorageMigration.model_validate({"metadata": ObjectMeta(name=name), "spec": self.spec()})

    def resumed(self, migration: StorageMigration) -> StorageMigration:
        """One that was interrupted or has failed, ready to be resumed.

        What was refused is tried at once, and in as many rounds again if they were used up: whoever runs
        the command again has fixed something, or hopes so.
        """
        spec, status = self.applied_to(migration.spec), migration.status.model_copy(deep=True)
        status.quarantine.next_retry_time = None
        if status.completion_time is not None and spec.retry.limit is not None:
            spec.retry.limit = status.quarantine.rounds + max(1, spec.retry.limit)
        resumed: StorageMigration = migration.model_copy(update={"spec": spec, "status": status})
        return resumed


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = _merged(old, value)
        else:
            result[key] = value
    return result
