"""Gathers all that the next decision needs, by consistent reads."""

from crdkeeper.api.storagemigration import (
    GroupResource,
    MigrationTarget,
    StorageMigration,
    StorageMigrationSpec,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.access import missing_rights
from crdkeeper.cluster.resources.apiservers import list_leases
from crdkeeper.cluster.resources.definitions import get_definition, get_revision
from crdkeeper.cluster.resources.discovery import discover
from crdkeeper.cluster.resources.storageversionmigrations import list_storage_version_migrations
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.migration.observation import IN_TREE, OUT_OF_TREE, Observation, Others, definition_target
from crdkeeper.core.migration.othermigrator import at_work_on
from crdkeeper.operations.migration.rights import rights_to_rewrite


async def observe(client: Client, spec: StorageMigrationSpec, *, rights: bool, leases: bool) -> Observation:
    """Read the state of the resource and, on request, our permissions and the API servers.

    Raises ApiError or Unreachable.
    """
    try:
        definition = await get_definition(client, str(spec.resource)) if spec.resource.group else None
        target = await _target(client, spec, definition)
        if target is None:
            return Observation(None, definition)
        needed = rights_to_rewrite(spec, custom=definition is not None) if rights else []
        missing = await missing_rights(client, needed)
    except ApiError as error:
        if error.code == 403:
            return Observation(None, missing_rights=[error.message])
        raise
    return Observation(
        target,
        definition,
        missing_rights=[*map(str, missing)],
        leases=await list_leases(client) if leases else None,
        others=await other_migrations(client, spec.resource) if spec.mode == "Execute" else Others(),
    )


async def other_migrations(client: Client, resource: GroupResource) -> Others:
    """The StorageVersionMigrations of the resource that are running. Raises ApiError or Unreachable."""
    names, unseen = list[str](), list[str]()
    for group in (IN_TREE, OUT_OF_TREE):
        found = await list_storage_version_migrations(client, group)
        if found is None:
            unseen.append(group)
        else:
            names += [f"{name} ({group})" for name in at_work_on(resource, found)]
    return Others(names, unseen)


async def another_began(client: Client, resource: GroupResource) -> bool:
    """Whether another migrator works on the resource; False if the API server does not tell now."""
    try:
        others = await other_migrations(client, resource)
        if others.names or IN_TREE not in others.unseen or not resource.group:
            return bool(others.names)
        definition = await get_definition(client, str(resource))
        return definition is not None and definition.storage_migrating
    except (ApiError, Unreachable):
        return False  # the next check comes soon, and before anything new begins


async def target_changed(client: Client, migration: StorageMigration) -> bool:
    """Whether the CRD is not as it was pinned; False if the API server does not tell now."""
    target, resource = migration.status.target, migration.spec.resource
    if target is None or target.uid is None:
        return False
    try:
        return await get_revision(client, str(resource)) != (target.uid, target.generation)
    except (ApiError, Unreachable):
        return False  # a pass itself runs into the same problem, and the trim checks again


async def _target(
    client: Client, spec: StorageMigrationSpec, definition: DefinitionFacts | None
) -> MigrationTarget | None:
    if definition is not None:
        return definition_target(definition)
    return await discover(client, spec.resource)
