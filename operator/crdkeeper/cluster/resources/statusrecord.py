"""A StorageMigration's status, written only by its run.

Leadership does not fence off writes: a replica that was paused, or whose request was delayed, may write after
another one took over. So each write requires the resourceVersion that the previous write returned. Only
`status.shards` is written by others, too, and not here.
"""

from collections import deque

from crdkeeper.api.storagemigration import StorageMigration, StorageMigrationStatus
from crdkeeper.cluster.resources.kinds import OfAnotherRelease, get_migration, put_status
from crdkeeper.cluster.transport.client import ApiError, Client

_ATTEMPTS = 10
"""Processes that share a migration write to the same object several times a second."""
_KEPT = 256
"""Statuses to remember, of a minute, that may have been stored although no answer confirmed it."""


class StatusRecord:
    """The stored status of one migration. Create it from the object as read, before any change."""

    def __init__(self, client: Client, migration: StorageMigration) -> None:
        self._client = client
        self._resource_version = migration.metadata.resource_version
        self._on_record = _without_shards(migration.status).model_copy(deep=True)
        self._sent: deque[StorageMigrationStatus] = deque(maxlen=_KEPT)
        """What was sent since then: an answer can get lost."""

    async def save(self, migration: StorageMigration) -> bool:
        """Apply the whole status. False if the object is gone or someone else has written a status.

        So it is also if another release has written the object, and this one cannot read it any more.
        Raises ApiError, also if others write to the object all the time, or Unreachable.
        """
        status = _without_shards(migration.status)
        self._sent.append(StorageMigrationStatus.model_validate(status.to_object()))
        applied = migration.model_copy(update={"status": status})
        for attempt in range(_ATTEMPTS):
            try:
                answer = await put_status(self._client, applied, resource_version=self._resource_version)
            except ApiError as error:
                if error.code not in (404, 409) or attempt == _ATTEMPTS - 1:
                    raise
                if not await self._catch_up(migration):
                    return False
            else:
                stored = StorageMigration.model_validate(answer)
                self._on_record = _without_shards(stored.status)
                self._resource_version = stored.metadata.resource_version
                self._sent.clear()
                return True
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _catch_up(self, migration: StorageMigration) -> bool:
        """Take over the object's new version; False if anyone else has changed its status, or may have."""
        try:
            now = await get_migration(self._client, migration.metadata.name)
        except OfAnotherRelease:
            return False
        if now is None or now.metadata.uid != migration.metadata.uid:
            return False
        status = _without_shards(now.status)
        if status != self._on_record and status not in self._sent:
            return False
        self._resource_version = now.metadata.resource_version
        return True


def _without_shards(status: StorageMigrationStatus) -> StorageMigrationStatus:
    return status.model_copy(update={"shards": None})
