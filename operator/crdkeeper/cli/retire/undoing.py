"""`crdkeeper retire undo`: serves a version again, as long as the CRD still has it."""

import json
import shlex
from pathlib import Path
from typing import Any, Final

import click

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, line
from crdkeeper.cli.retire.naming import (
    RetiredResource,
    named_definition,
    named_version,
    retirement_spec,
)
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.retirements import list_retirements, suspend_retirement
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.retirement.changes import own_warning
from crdkeeper.core.retirement.changes import undo as undone
from crdkeeper.operations.retirement.rights import rights_to_undo
from crdkeeper.operations.retirement.standalone import has_changed, undo_retirement
from crdkeeper.operations.rights import DEFINITIONS, check_rights, explained

_UNDONE: Final = {"served": "served again", "deprecated": "no longer deprecated"}
"""By field of the version: what it is once that is set back."""


@click.command()
@click.argument("resource", type=RetiredResource(), metavar="PLURAL.GROUP")
@click.argument("version", metavar="VERSION")
@click.option("--yes", "-y", is_flag=True, help="Change the CRD. [default: only show the change]")
@connection_options
def undo(
    resource: GroupResource, version: str, *, yes: bool, kubeconfig: Path | None, context: str | None
) -> None:
    """Serve a version again, and no longer deprecate it. Possible until it is removed from the CRD.

    Objects that were migrated stay as they are: the API server converts what it serves. VersionRetirements of
    the version with mode Execute are suspended first. A version with a deprecationWarning stays deprecated:
    no retirement sets one.

    Exit codes: 0 if it is done or nothing is to do; 1 if the change was refused, or the CRD has no such
    version (any more).
    """
    retirement_spec(resource, version)  # what it refuses names no version
    run_async(_told(Connection(kubeconfig, context), resource, version, yes=yes))


async def _told(connection: Connection, resource: GroupResource, version: str, *, yes: bool) -> None:
    async with Client(connection) as client, explained(client, rights_to_undo(resource)):
        await _undo(client, resource, version, yes=yes)


async def _undo(client: Client, resource: GroupResource, version: str, *, yes: bool) -> None:
    crd = await _found(client, resource, version)
    if yes:
        await check_rights(client, [Right("patch", *DEFINITIONS, name=str(resource))])
        if await _suspend(client, resource, version):
            # It may have taken a step just before.
            crd = await _found(client, resource, version)
    operations, warning = undone(crd, version), own_warning(crd, version)
    if not operations:
        line(f"{version} of {resource} is served{'' if warning else ' and not deprecated'}: nothing to do.")
        if not yes:
            line(
                "With --yes, VersionRetirements of the version with mode Execute are suspended all the same."
            )
    elif not yes:
        name, patch = shlex.quote(str(resource)), shlex.quote(json.dumps(operations))
        line("Nothing was changed. To take all steps back, run the command again with --yes; it does this:")
        line(f"  kubectl patch crd {name} --type=json -p {patch}")
    else:
        await _take_back(client, resource, version, crd)
        fields = {each["path"].rpartition("/")[2] for each in operations}
        done = [what for field, what in _UNDONE.items() if field in fields]
        line(f"{version} of {resource} is {', and '.join(done)}.")
    if warning:
        line(f"It stays deprecated, because no retirement has set its deprecationWarning: {warning}")


async def _found(client: Client, resource: GroupResource, version: str) -> dict[str, Any]:
    crd = await named_definition(client, resource)
    named_version(crd, version, "If it was removed, only the CRD's manifest can bring it back.")
    return crd


async def _take_back(client: Client, resource: GroupResource, version: str, crd: dict[str, Any]) -> None:
    try:
        await undo_retirement(client, crd, version)
    except ApiError as error:
        if await has_changed(client, crd, error):
            raise Trouble(f"{resource} was changed in the meantime; run the command again.") from error
        raise


async def _suspend(client: Client, resource: GroupResource, version: str) -> bool:
    """Suspend the operator's retirements of the version: otherwise it might repeat what is taken back.

    Returns whether there were some that were not.
    """
    some = False
    for each in await list_retirements(client) or ():
        of_version = (each.spec.resource, each.spec.version) == (resource, version)
        if of_version and each.spec.mode == "Execute" and not each.spec.suspend:
            await suspend_retirement(client, each.metadata.name)
            line(f"VersionRetirement {each.metadata.name} is suspended.")
            some = True
    return some
