"""Gather all that the next decision needs, by consistent reads."""

from crdkeeper.api.storagemigration import MigrationTarget, StorageMigrationSpec
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.access import Right, missing_rights
from crdkeeper.cluster.apiservers import list_leases
from crdkeeper.cluster.client import ApiError, Client
from crdkeeper.cluster.definitions import get_definition
from crdkeeper.cluster.discovery import discover
from crdkeeper.core.migration.observation import Observation, definition_target

_EXTENSIONS = "apiextensions.k8s.io"


async def observe(client: Client, spec: StorageMigrationSpec, *, rights: bool, leases: bool) -> Observation:
    """Look at the resource, and if asked for at our rights and the API servers.

    Raises ApiError or Unreachable.
    """
    try:
        definition = await get_definition(client, str(spec.resource)) if spec.resource.group else None
        target = await _target(client, spec, definition)
    except ApiError as error:
        if error.code == 403:
            return Observation(None, missing_rights=[error.message])
        raise
    if target is None:
        return Observation(None, definition)
    return Observation(
        target,
        definition,
        missing_rights=await missing_rights(client, _needed(spec, target, definition)) if rights else (),
        leases=await list_leases(client) if leases else None,
    )


async def _target(
    client: Client, spec: StorageMigrationSpec, definition: DefinitionFacts | None
) -> MigrationTarget | None:
    if definition is not None:
        return definition_target(definition)
    return await discover(client, spec.resource)


def _needed(
    spec: StorageMigrationSpec, target: MigrationTarget, definition: DefinitionFacts | None
) -> list[Right]:
    needed = [Right(verb, spec.resource.group, spec.resource.resource) for verb in ("get", "list", "patch")]
    if spec.trim and spec.mode == "Execute" and definition is not None:
        needed.append(Right("patch", _EXTENSIONS, "customresourcedefinitions", "status", definition.name))
    return needed
