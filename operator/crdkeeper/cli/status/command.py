"""`crdkeeper status`: all CRDs with their stored versions, and the state of their migrations."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, line, lines, print_json, print_yaml
from crdkeeper.cli.output.table import table
from crdkeeper.cli.status.overview import (
    HEADERS,
    WIDE_HEADERS,
    DefinitionOverview,
    DefinitionOverviewList,
    overview,
    row,
)
from crdkeeper.cluster.resources.definitions import get_definition, list_definitions
from crdkeeper.cluster.resources.discovery import list_resources
from crdkeeper.cluster.resources.kinds import list_migrations, list_policies
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.resourcenames import suggest

_T = TypeVar("_T")


@dataclass(slots=True)
class _Findings:
    """What was found; `remarks` says what is not shown, `missing` which names do not exist."""

    records: list[DefinitionOverview]
    now: datetime
    remarks: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@click.command(short_help="Show the stored versions of CRDs and their migrations.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--selector", "-l", default="", help="Show only CRDs with these labels, as in kubectl.")
@click.option(
    "--outdated", is_flag=True, help="Show only CRDs with stored versions other than the storage version."
)
@click.option("--output", "-o", type=click.Choice(("wide", "json", "yaml")), help="[default: a table]")
@click.option("--no-headers", is_flag=True, help="Do not print the table's header.")
@connection_options
def status(
    names: tuple[str, ...],
    *,
    selector: str,
    outdated: bool,
    output: str | None,
    no_headers: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show the stored versions of CRDs and the state of their migrations: of all CRDs, or of those named.

    STORED lists the versions in which objects may be stored. If it lists more than the storage version, the
    CRD needs a migration. MIGRATION is the latest one, or `needed`. PROGRESS shows percent, objects per
    second and estimated time left. To migrate, use `crdkeeper migrate` or a StorageMigration.

    With -o json and -o yaml, the result is a DefinitionOverviewList (cli.crdkeeper.dev/v1alpha1). Fields may
    be added to it, but not removed.
    """
    if names and selector:
        raise click.UsageError("specify CRDs by name or by labels, not both")
    found = run_async(_gather(Connection(kubeconfig, context), names, selector))
    records = [each for each in found.records if each.outdated_versions or not outdated]
    if records or not found.missing:
        _print(records, found.now, output, no_headers=no_headers)
    for each in sorted(found.remarks):
        line(each, err=True)
    if found.missing:
        raise Trouble("; ".join(found.missing))


async def _gather(connection: Connection, names: Sequence[str], selector: str) -> _Findings:
    async with Client(connection) as client:
        remarks: list[str] = []
        definitions, migrations, policies = await asyncio.gather(
            _definitions(client, names, selector),
            _if_permitted(list_migrations(client), "Migrations", remarks),
            _if_permitted(list_policies(client), "Policies", remarks),
        )
        found = _Findings(overview(definitions, migrations, policies), client.now(), remarks)
        absent = sorted(set(names) - {each.name for each in definitions})
        served = await list_resources(client) if absent else ()
        for name in absent:
            meant = suggest(name, served)
            hint = f"; did you mean {meant}?" if meant and await get_definition(client, meant) else ""
            found.missing.append(f"no CRD {name}{hint}")
        return found


async def _definitions(client: Client, names: Sequence[str], selector: str) -> list[DefinitionFacts]:
    if not names:
        return await list_definitions(client, selector)
    found = await asyncio.gather(*(get_definition(client, each) for each in dict.fromkeys(names)))
    return [each for each in found if each is not None]


async def _if_permitted(listing: Awaitable[list[_T] | None], what: str, remarks: list[str]) -> list[_T]:
    """Empty, with a remark, if the kind is not installed, or if our account may not list it."""
    try:
        return await listing or []
    except ApiError as error:
        if error.code != 403:
            raise
        remarks.append(f"{what} are not shown: {error.message}")
        return []


def _print(
    records: Sequence[DefinitionOverview], now: datetime, output: str | None, *, no_headers: bool
) -> None:
    if output in ("json", "yaml"):
        document: dict[str, Any] = DefinitionOverviewList(items=list(records)).to_object()
        if output == "json":
            print_json(document)
        else:
            print_yaml(document)
        return
    if not records:
        line("No CRDs found.", err=True)
        return
    wide = output == "wide"
    headers = WIDE_HEADERS if wide else HEADERS
    lines(table(headers, [row(each, now, wide=wide) for each in records], with_headers=not no_headers))
