"""A StorageMigration's status as its run alone writes it.

Leadership is no fence: a replica that was paused, or whose request was held up on its way, may write after
another one took over. So each write is bound to the resourceVersion that the one before has left.
"""

from crdkeeper.api.storagemigration import StorageMigration, StorageMigrationStatus
from crdkeeper.cluster.resources.kinds import get_migration, put_status
from crdkeeper.cluster.transport.client import ApiError, Client


class StatusRecord:
    """The status of one migration on record. Make it from the object as it was read, before any change."""

    def __init__(self, client: Client, migration: StorageMigration) -> None:
        self._client = client
        self._resource_version = migration.metadata.resource_version
        status = migration.status.model_copy(deep=True)
        self._ours = [status, status]
        """What is on record, and what we sent last: an answer can be lost."""

    async def save(self, migration: StorageMigration) -> bool:
        """Apply the whole status. False if the object is gone or somebody else has put a status on record.

        Raises ApiError or Unreachable.
        """
        self._ours[1] = StorageMigrationStatus.model_validate(migration.status.to_object())
        while True:
            try:
                answer = await put_status(self._client, migration, resource_version=self._resource_version)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
                if not await self._catch_up(migration):
                    return False
            else:
                stored = StorageMigration.model_validate(answer)
                self._ours[0], self._resource_version = stored.status, stored.metadata.resource_version
                return True

    async def _catch_up(self, migration: StorageMigration) -> bool:
        """Take the object's new version; False if more than the rest of it has changed."""
        now = await get_migration(self._client, migration.metadata.name)
        if now is None or now.metadata.uid != migration.metadata.uid or now.status not in self._ours:
            return False
        self._resource_version = now.metadata.resource_version
        return True
