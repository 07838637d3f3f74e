"""`crdkeeper status`: CRDs or built-in resources, how they are stored, and the state of their migrations."""

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Generic, TypeVar

import click

from crdkeeper.api.meta import ApiModel
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, line, lines, print_json, print_yaml
from crdkeeper.cli.output.table import table
from crdkeeper.cli.status.builtins import HEADERS as BUILTIN_HEADERS
from crdkeeper.cli.status.builtins import WIDE_HEADERS as WIDE_BUILTIN_HEADERS
from crdkeeper.cli.status.builtins import (
    BuiltinOverview,
    BuiltinOverviewList,
    builtin_overview,
    builtin_row,
)
from crdkeeper.cli.status.overview import (
    HEADERS,
    WIDE_HEADERS,
    DefinitionOverview,
    DefinitionOverviewList,
    finding_lines,
    overview,
    row,
)
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.builtins import discover_stored, list_builtin_versions
from crdkeeper.cluster.resources.definitions import get_definition, list_definitions
from crdkeeper.cluster.resources.discovery import list_resources
from crdkeeper.cluster.resources.kinds import (
    list_builtin_policies,
    list_false_conditions,
    list_migrations_of,
    list_policies,
)
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.diagnosis.conditions import scaling, statuswriters
from crdkeeper.core.policy.reading import why_unread
from crdkeeper.core.resourcenames import suggest
from crdkeeper.core.text import shortened
from crdkeeper.operations.rights import explained, rights_to_read

_T = TypeVar("_T")
_SHOWN_TYPES: Final = (scaling.CONDITION.type, statuswriters.CONDITION.type)
"""Conditions of reports that affect no Ready, so that nobody would look for them."""


@dataclass(slots=True)
class _Findings(Generic[_T]):
    """What was found; `remarks` says what is not shown, `missing` which names do not exist."""

    records: list[_T]
    now: datetime
    remarks: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@click.command(short_help="Show the stored versions of CRDs and their migrations.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--selector", "-l", default="", help="Show only CRDs with these labels, as in kubectl.")
@click.option(
    "--outdated",
    is_flag=True,
    help="Show only what needs a migration: CRDs with stored versions other than the storage version.",
)
@click.option("--builtins", is_flag=True, help="Show built-in resources instead of CRDs.")
@click.option("--output", "-o", type=click.Choice(("wide", "json", "yaml")), help="[default: a table]")
@click.option("--no-headers", is_flag=True, help="Do not print the table's header.")
@connection_options
def status(
    names: tuple[str, ...],
    *,
    selector: str,
    outdated: bool,
    builtins: bool,
    output: str | None,
    no_headers: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show the stored versions of CRDs and the state of their migrations: of all CRDs, or of those named.

    STORED lists the versions in which objects may be stored. If it lists more than the storage version, the
    CRD needs a migration. MIGRATION is the latest one, or `needed`. PROGRESS shows percent, objects per
    second and estimated time left. To migrate, use `crdkeeper migrate` or a StorageMigration. With -o wide,
    PARTS shows how many parts are done of a migration that several processes share.

    On standard error, it says where the operator's reports found autoscalers that cannot scale
    (ScalingReady), or a status that is written in the wrong way (StatusWritersReady).

    With --builtins, it shows built-in resources: STORAGE is the version at which objects are written, HASH
    the storageVersionHash that shows it, MIGRATED how long ago a migration last succeeded, and DUE whether
    objects may be stored otherwise. A BuiltinPolicy migrates them.

    With -o json and -o yaml, the result is a DefinitionOverviewList (cli.crdkeeper.dev/v1alpha1), or a
    BuiltinOverviewList. Fields may be added to them, but not removed.
    """
    if names and selector:
        raise click.UsageError("specify CRDs by name or by labels, not both")
    if builtins and selector:
        raise click.UsageError("built-in resources have no labels")
    connection, wide = Connection(kubeconfig, context), output == "wide"
    headers: Sequence[str]
    if builtins:
        builtin = run_async(_gather_builtins(connection, names))
        due = [each for each in builtin.records if each.due == "yes" or not outdated]
        headers = WIDE_BUILTIN_HEADERS if wide else BUILTIN_HEADERS
        rows = [builtin_row(each, builtin.now, wide=wide) for each in due]
        _show(
            builtin,
            BuiltinOverviewList(items=due),
            headers,
            rows,
            output,
            no_headers=no_headers,
            nothing="No built-in resources are known to be due."
            if outdated
            else "No built-in resources found.",
        )
    else:
        found = run_async(_gather(connection, names, selector))
        records = [each for each in found.records if each.outdated_versions or not outdated]
        headers = WIDE_HEADERS if wide else HEADERS
        rows = [row(each, found.now, wide=wide) for each in records]
        told = finding_lines(records) if output in (None, "wide") else ()
        _show(
            found,
            DefinitionOverviewList(items=records),
            headers,
            rows,
            output,
            no_headers=no_headers,
            nothing="No outdated CRDs found." if outdated else "No CRDs found.",
        )
        lines(told, err=True)


def _show(
    found: _Findings[_T],
    document: ApiModel,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    output: str | None,
    *,
    no_headers: bool,
    nothing: str,
) -> None:
    """Print what was found, and then what is not shown. Raises Trouble if something does not exist."""
    if rows or not found.missing:
        _print(document, headers, rows, output, no_headers=no_headers, nothing=nothing)
    for each in sorted(found.remarks):
        line(each, err=True)
    if found.missing:
        raise Trouble("; ".join(found.missing))


async def _gather_builtins(connection: Connection, names: Sequence[str]) -> _Findings[BuiltinOverview]:
    needed = [Right("list", "apiregistration.k8s.io", "apiservices")]
    async with Client(connection) as client, explained(client, needed):
        remarks: list[str] = []
        unread: set[str] = set()
        unread_policies: set[str] = set()
        stored, migrations, policies = await asyncio.gather(
            discover_stored(client, await list_builtin_versions(client)),
            _if_permitted(list_migrations_of(client, unread=unread), [], "Migrations", remarks),
            _if_permitted(list_builtin_policies(client, unread_policies), [], "Policies", remarks),
        )
        remarks += _not_shown("StorageMigrations", unread) + _not_shown("BuiltinPolicies", unread_policies)
        shown = [each for each in stored if not names or each.name in names]
        absent = sorted(set(names) - {each.name for each in shown})
        served = await list_resources(client) if absent else ()
        missing = []
        for name in absent:
            meant = suggest(name, served)
            hint = f"; did you mean {meant}?" if any(each.name == meant for each in stored) else ""
            missing.append(f"no built-in resource {name} that can be migrated{hint}")
        return _Findings(builtin_overview(shown, migrations, policies), client.now(), remarks, missing)


async def _gather(
    connection: Connection, names: Sequence[str], selector: str
) -> _Findings[DefinitionOverview]:
    async with Client(connection) as client:
        remarks: list[str] = []
        unread: set[str] = set()
        definitions, migrations, policies, false = await asyncio.gather(
            _definitions(client, names, selector),
            _if_permitted(list_migrations_of(client, unread=unread), [], "Migrations", remarks),
            _if_permitted(list_policies(client), [], "Policies", remarks),
            _if_permitted(list_false_conditions(client, _SHOWN_TYPES, names), {}, "Reports", remarks),
        )
        remarks += _not_shown("StorageMigrations", unread)
        for each in policies:
            if why := why_unread(each):
                remarks.append(
                    f"DefinitionPolicy {each.metadata.name} cannot be read, and does nothing: {why}"
                )
        found = _Findings(overview(definitions, migrations, policies, false), client.now(), remarks)
        absent = sorted(set(names) - {each.name for each in definitions})
        served = await list_resources(client) if absent else ()
        for name in absent:
            meant = suggest(name, served)
            hint = ""
            if meant is not None:
                # Whether it is would take another right, and a request for each group.
                hint = f"; if it is built in and can be migrated: crdkeeper status --builtins {meant}"
                if await get_definition(client, meant):
                    hint = f"; did you mean {meant}?"
            found.missing.append(f"no CRD {name}{hint}")
        return found


async def _definitions(client: Client, names: Sequence[str], selector: str) -> list[DefinitionFacts]:
    async with explained(client, rights_to_read(names)):
        if not names:
            return await list_definitions(client, selector)
        found = await asyncio.gather(*(get_definition(client, each) for each in dict.fromkeys(names)))
        return [each for each in found if each is not None]


async def _if_permitted(listing: Awaitable[_T | None], nothing: _T, what: str, remarks: list[str]) -> _T:
    """`nothing` if the kind is not installed; and with a remark if our account may not list it."""
    try:
        found = await listing
        return nothing if found is None else found
    except ApiError as error:
        if error.code != 403:
            raise
        remarks.append(f"{what} are not shown: {error.message}")
        return nothing


def _not_shown(what: str, unread: Collection[str]) -> list[str]:
    """The remark about objects that this release cannot read, if there are any."""
    if not unread:
        return []
    return [f"{what} of another release are not shown: {shortened(sorted(unread))}"]


def _print(
    document: ApiModel,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    output: str | None,
    *,
    no_headers: bool,
    nothing: str,
) -> None:
    if output == "json":
        print_json(document.to_object())
    elif output == "yaml":
        print_yaml(document.to_object())
    elif rows:
        lines(table(headers, rows, with_headers=not no_headers))
    else:
        line(nothing, err=True)
