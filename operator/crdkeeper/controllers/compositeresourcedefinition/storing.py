"""The StorageMigrations of a definition: read, and created when composites are stored in an old version."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kinds import create_migration, list_migrations
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.composer.plan import Gathered
from crdkeeper.core.composer.storage import outdated_versions, wanted_migration

_log = logging.getLogger(__name__)


async def known_migrations(
    client: Client, live: Mapping[str, Any] | None
) -> Sequence[StorageMigration] | None:
    """All StorageMigrations, if the CRD may need one; None if they are not installed, or may not be listed.

    Raises ApiError and Unreachable.
    """
    if not outdated_versions(live):
        return ()
    try:
        return await list_migrations(client)
    except ApiError as error:
        if error.code == 403:
            return None
        raise


async def with_migration(client: Client, gathered: Gathered) -> Gathered:
    """Create the StorageMigration that a definition needs, if any. Returns what is known then.

    Raises ApiError and Unreachable.
    """
    definition, live, existing = gathered.definition, gathered.live, gathered.facts.migrations
    wanted = wanted_migration(definition, live, existing) if existing is not None else None
    if existing is None or wanted is None:
        return gathered
    found: Sequence[StorageMigration] | None
    try:
        created = await create_migration(client, wanted, manager=FIELD_MANAGER)
    except ApiError as error:
        if error.code not in (403, 409):
            raise
        found = await known_migrations(client, live) if error.code == 409 else None
    else:
        name = created.metadata.name
        _log.info(
            "CompositeResourceDefinition %s: created StorageMigration %s", definition.metadata.name, name
        )
        found = [*existing, created]
    return replace(gathered, facts=replace(gathered.facts, migrations=found))
