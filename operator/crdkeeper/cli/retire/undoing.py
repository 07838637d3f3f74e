"""`crdkeeper retire undo`: serves a version again, as long as the CRD still has it."""

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.api.versionretirement import VersionRetirement
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
from crdkeeper.core.text import shortened
from crdkeeper.operations.retirement.rights import rights_to_undo
from crdkeeper.operations.retirement.standalone import has_changed, undo_retirement
from crdkeeper.operations.rights import DEFINITIONS, check_rights, explained

_UNDONE: Final = {"served": "served again", "deprecated": "no longer deprecated"}
"""By field of the version: what it is once that is set back."""
_PATIENCE_SECONDS: Final = 10
"""How long to wait for an operator, which may not run."""
_LOOK_SECONDS: Final = 0.5
_UNANSWERED: Final = (
    f"No operator has taken note of the suspension within {_PATIENCE_SECONDS} seconds. If one runs, "
    "it may still take a step: run the command again then."
)


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
    the version with mode Execute are suspended first, and the operator has up to 10 seconds to take note of
    that. A version with a deprecationWarning stays deprecated: no retirement sets one.

    Exit codes: 0 if it is done or nothing is to do; 1 if the change was refused, the CRD has no such version
    (any more), or a VersionRetirement is of another release and cannot be read, so that nobody knows whether
    to suspend it.
    """
    retirement_spec(resource, version)  # what it refuses names no version
    run_async(_told(Connection(kubeconfig, context), resource, version, yes=yes))


async def _told(connection: Connection, resource: GroupResource, version: str, *, yes: bool) -> None:
    async with Client(connection) as client, explained(client, rights_to_undo(resource)):
        await _undo(client, resource, version, yes=yes)


async def _undo(client: Client, resource: GroupResource, version: str, *, yes: bool) -> None:
    crd = await _found(client, resource, version)
    if yes:
        executing = await _executing(client, resource, version)
        if undone(crd, version) or not all(each.spec.suspend for each in executing):
            await check_rights(client, [Right("patch", *DEFINITIONS, name=str(resource))])
        if executing:
            await _suspend(client, executing)
            # They may have taken a step just before.
            crd = await _found(client, resource, version)
    operations, warning = undone(crd, version), own_warning(crd, version)
    if not operations:
        line(f"{version} of {resource} is served{'' if warning else ' and not deprecated'}: nothing to do.")
        if not yes:
            for each in await _executing(client, resource, version):
                if not each.spec.suspend:
                    line(f"With --yes, VersionRetirement {each.metadata.name} is suspended all the same.")
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


async def _executing(client: Client, resource: GroupResource, version: str) -> list[VersionRetirement]:
    """The operator's retirements of the version that change the CRD unless suspended.

    Raises Trouble for any that cannot be read.
    """
    unread: set[str] = set()
    found = await list_retirements(client, unread) or ()
    if unread:
        raise Trouble(
            "VersionRetirements of another release cannot be read, and so not be suspended: "
            f"{shortened(sorted(unread))}",
            f"Use crdkeeper of that release. Or have none of them retire {version} of {resource}, and make "
            "the change yourself that this command shows without --yes.",
        )
    return [
        each
        for each in found
        if (each.spec.resource, each.spec.version, each.spec.mode) == (resource, version, "Execute")
        and each.metadata.deletion_timestamp is None
    ]


async def _suspend(client: Client, executing: Sequence[VersionRetirement]) -> None:
    """Suspend them: otherwise the operator might repeat what is taken back.

    Waits until it has seen that, also of those that somebody has just suspended: until then it may be taking
    a step.
    """
    generations: dict[str | None, int] = {}
    for each in executing:
        suspended = each
        if not each.spec.suspend:
            suspended = await suspend_retirement(client, each.metadata.name)
            line(f"VersionRetirement {each.metadata.name} is suspended.")
        if suspended.status.observed_generation < suspended.metadata.generation:
            generations[suspended.metadata.uid] = suspended.metadata.generation
    clock = asyncio.get_running_loop().time
    end = clock() + _PATIENCE_SECONDS
    while generations and not await _are_seen(client, generations):
        if clock() >= end:
            line(_UNANSWERED, err=True)
            break
        await asyncio.sleep(_LOOK_SECONDS)


async def _are_seen(client: Client, generations: Mapping[str | None, int]) -> bool:
    """Whether the operator has seen these generations, by uid, of all that are still there."""
    return all(
        each.status.observed_generation >= generations[each.metadata.uid]
        for each in await list_retirements(client, set()) or ()
        if each.metadata.uid in generations
    )
