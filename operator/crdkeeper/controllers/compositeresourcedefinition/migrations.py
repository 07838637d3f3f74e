"""The StorageMigrations of a definition: read, and created when composites are stored in an old version."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kinds import create_migration, list_migrations_of
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent
from crdkeeper.controllers.compositeresourcedefinition.refusing import Trouble
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composer.plan import Gathered
from crdkeeper.core.composer.storage import outdated_versions, wanted_migration

_log = logging.getLogger(__name__)


async def known_migrations(
    client: Client,
    state: ClusterState,
    definition: CompositeResourceDefinition,
    live: Mapping[str, Any] | None,
) -> Sequence[StorageMigration] | None:
    """The StorageMigrations of a CRD that may need one; None if they are not installed, or may not be listed.

    Raises ApiError and Unreachable.
    """
    if not outdated_versions(live) or definition.metadata.deletion_timestamp is not None:
        return ()
    name = definition.metadata.name
    seen = [each for each in state.of(StorageMigration).values() if str(each.spec.resource) == name]
    if seen and wanted_migration(definition, live, seen) is None:
        return seen
    try:
        # Before one is created: others may exist that this process has not seen yet.
        return await list_migrations_of(client, name)
    except ApiError as error:
        if error.code == 403:
            return None
        raise


class Migrations:
    """Creates the StorageMigrations of definitions."""

    def __init__(self, client: Client, dues: Dues) -> None:
        self._client = client
        self._dues = dues

    async def create(self, gathered: Gathered) -> tuple[Gathered, Trouble | None]:
        """Create the StorageMigration that a definition needs, if any.

        Returns what is known then, and the error if none could be created.
        """
        definition, live, existing = gathered.definition, gathered.live, gathered.facts.migrations
        wanted = wanted_migration(definition, live, existing) if existing is not None else None
        if existing is None or wanted is None:
            return gathered, None
        name, key = definition.metadata.name, wanted["metadata"]["name"]
        try:
            created = await self._dues.send(
                name, Sent.CREATE_MIGRATION, key, lambda: self._create(definition, live, wanted)
            )
        except ApiError as error:
            return _with(gathered, existing, error.message), error
        except Unreachable as error:
            return _with(gathered, existing, str(error)), error
        return _with(gathered, [*existing, *created]), None

    async def _create(
        self, definition: CompositeResourceDefinition, live: Mapping[str, Any] | None, wanted: dict[str, Any]
    ) -> Sequence[StorageMigration]:
        """The new StorageMigration, or those that somebody else has created. Raises ApiError, Unreachable."""
        name = definition.metadata.name
        try:
            made = await create_migration(self._client, wanted, manager=FIELD_MANAGER)
        except ApiError as error:
            found = await list_migrations_of(self._client, name) if error.code == 409 else None
            if found is None or wanted_migration(definition, live, found) is not None:
                raise
            return found
        _log.info("CompositeResourceDefinition %s: created StorageMigration %s", name, made.metadata.name)
        return [made]


def _with(gathered: Gathered, migrations: Sequence[StorageMigration], failure: str = "") -> Gathered:
    facts = replace(gathered.facts, migrations=migrations, migration_failure=failure)
    return replace(gathered, facts=facts)
