"""A migration that a person requests by a command: its initial spec, and the spec when it is resumed.

The options of a command apply to its own run. The object's spec keeps the options of its first run: an
account that may run a migration need not be allowed to change one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.meta import CLI, ObjectMeta
from crdkeeper.api.storagemigration import (
    GroupResource,
    MigrationRetry,
    StorageMigration,
    StorageMigrationSpec,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.migration.choice import Choice, Over, choose, choose_shared, default_name
from crdkeeper.core.migration.sharding import Shard

RETRY_ROUNDS = 3
"""Default number of retry rounds: the user of a command wants to know what is refused."""


@dataclass(frozen=True, slots=True)
class Request:
    """The request. `options` are the given fields of spec, by their Python names."""

    resource: GroupResource
    options: Mapping[str, Any]
    name: str | None = None
    dry_run: bool = False
    shard: Shard | None = None
    """Which one of several processes this is that share the migration, if there are several."""

    def spec(self) -> StorageMigrationSpec:
        """The spec of a new migration."""
        begun = StorageMigrationSpec(
            resource=self.resource,
            mode="Plan" if self.dry_run else "Execute",
            managed_by=CLI,
            retry=MigrationRetry(limit=RETRY_ROUNDS),
        )
        return self.applied_to(begun)

    def applied_to(self, spec: StorageMigrationSpec) -> StorageMigrationSpec:
        """A spec with the given options."""
        return StorageMigrationSpec.model_validate(_merged(spec.model_dump(), self.options))

    def unstored(self) -> StorageMigration:
        """The migration if it cannot or need not be stored in the cluster."""
        name = self.name or default_name(self.resource)
        return StorageMigration.model_validate({"metadata": ObjectMeta(name=name), "spec": self.spec()})

    def choice(
        self,
        definition: DefinitionFacts | None,
        existing: Sequence[StorageMigration],
        unread: Collection[str],
    ) -> Choice | Over:
        """What to do about it where these migrations exist, and those of these names, which nobody can read.

        Raises NameTaken.
        """
        full = self.spec().verify == "Full"
        if self.shard is not None and self.name is not None:
            return choose_shared(self.resource, definition, existing, unread, name=self.name, full=full)
        return choose(self.resource, definition, existing, unread, name=self.name, full=full)

    def resumed(self, migration: StorageMigration) -> StorageMigration:
        """An interrupted or failed migration, ready to be resumed.

        Refused objects are retried immediately, and with the same number of rounds again if these were used
        up: whoever repeats the command has fixed something, or hopes so.
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
