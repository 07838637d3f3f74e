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
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, within
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent
from crdkeeper.controllers.compositeresourcedefinition.refusing import Trouble
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composer.plan import Gathered
from crdkeeper.core.composer.storage import outdated_versions, wanted_migration

_log = logging.getLogger(__name__)


def known_migrations(
    state: ClusterState, definition: CompositeResourceDefinition, live: Mapping[str, Any] | None
) -> Sequence[StorageMigration]:
    """The StorageMigrations of a CRD that may need one, as far as this process has seen them."""
    if not outdated_versions(live) or definition.metadata.deletion_timestamp is not None:
        return ()
    return state.migrations_of(definition.metadata.name)


class Migrations:
    """Creates the StorageMigrations of definitions."""

    def __init__(self, client: Client, dues: Dues) -> None:
        self._client = client
        self._dues = dues

    async def create(self, gathered: Gathered) -> tuple[Gathered, Trouble | None]:
        """Create the StorageMigration that a definition needs, if any.

        Returns what is known then, and the error if none could be created.
        """
        definition, live, seen = gathered.definition, gathered.live, gathered.facts.migrations or ()
        wanted = wanted_migration(definition, live, seen)
        if wanted is None:
            return gathered, None
        name, key = definition.metadata.name, wanted["metadata"]["name"]
        try:
            existing = await self._dues.send(
                name, Sent.CREATE_MIGRATION, key, lambda: self._create(definition, live)
            )
        except ApiError as error:
            return _with(gathered, seen, error.message), error
        except Unreachable as error:
            return _with(gathered, seen, str(error)), error
        return _with(gathered, existing), None

    async def _create(
        self, definition: CompositeResourceDefinition, live: Mapping[str, Any] | None
    ) -> Sequence[StorageMigration] | None:
        """The StorageMigrations of the CRD, with the new one or with that of somebody else.

        None if they are not installed, or may not be listed. Raises ApiError and Unreachable.
        """
        name = definition.metadata.name
        # Others may exist that this process has not seen yet.
        found = await self._listed(name)
        wanted = wanted_migration(definition, live, found) if found is not None else None
        if found is None or wanted is None:
            return found
        try:
            sent = create_migration(self._client, wanted, manager=FIELD_MANAGER)
            made = await within(WRITE_SECONDS, sent)
        except ApiError as error:
            found = await self._listed(name) if error.code == 409 else None
            if found is None or wanted_migration(definition, live, found) is not None:
                raise
            return found
        _log.info("CompositeResourceDefinition %s: created StorageMigration %s", name, made.metadata.name)
        return [*found, made]

    async def _listed(self, name: str) -> Sequence[StorageMigration] | None:
        try:
            return await list_migrations_of(self._client, name)
        except ApiError as error:
            if error.code == 403:
                return None
            raise


def _with(gathered: Gathered, migrations: Sequence[StorageMigration] | None, failure: str = "") -> Gathered:
    facts = replace(gathered.facts, migrations=migrations, migration_failure=failure)
    return replace(gathered, facts=facts)
