"""`crdkeeper retire status`: the VersionRetirements of the cluster."""

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

import click

from crdkeeper.api.meta import GROUP
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, line, lines, print_json, print_yaml
from crdkeeper.cli.output.table import table
from crdkeeper.cli.retire.narration import HEADERS, details, row
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.kinds import OfAnotherRelease
from crdkeeper.cluster.resources.retirements import list_retirements
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.text import shortened
from crdkeeper.operations.rights import explained


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--output", "-o", type=click.Choice(("json", "yaml")), help="[default: a table; with names, everything]"
)
@click.option("--no-headers", is_flag=True, help="Do not print the table's header.")
@connection_options
def status(
    names: tuple[str, ...],
    *,
    output: str | None,
    no_headers: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show the VersionRetirements: all of them in a table, or everything about those named.

    That includes the change that is due, as a part of the manifest and as a patch. NAME is
    that of the VersionRetirement, or of its CRD.
    """
    unread: set[str] = set()
    found, now = run_async(_read(Connection(kubeconfig, context), unread))
    chosen = [each for each in found if not names or _is_named(each, names)]
    if output is not None:
        documents = [each.to_object() for each in chosen]
        if output == "json":
            print_json({"apiVersion": "v1", "kind": "List", "items": documents})
        else:
            print_yaml(*documents)
    elif names:
        for number, each in enumerate(chosen):
            lines([""] if number else [])
            lines(details(each))
    elif chosen:
        lines(table(HEADERS, [row(each, now) for each in chosen], with_headers=not no_headers))
    elif not unread:
        line("No VersionRetirements found.", err=True)
    # Of which CRD they are is not known.
    if others := sorted(unread.difference(names)):
        line(f"VersionRetirements of another release are not shown: {shortened(others)}", err=True)
    missing = [each for each in names if not any(_is_named(one, (each,)) for one in chosen)]
    if missing:
        raise Trouble(*(_why_missing(each, unread) for each in missing))


def _is_named(retirement: VersionRetirement, names: Sequence[str]) -> bool:
    return retirement.metadata.name in names or str(retirement.spec.resource) in names


def _why_missing(name: str, unread: Collection[str]) -> str:
    if name in unread:
        return str(OfAnotherRelease("VersionRetirement", name))
    return f"no VersionRetirement {name}"


async def _read(connection: Connection, unread: set[str]) -> tuple[list[VersionRetirement], datetime]:
    """Those that can be read, and the API server's time; the names of the others are added to `unread`."""
    needed = [Right("list", GROUP, VersionRetirement.plural)]
    async with Client(connection) as client, explained(client, needed):
        found = await list_retirements(client, unread)
        if found is None:
            raise Trouble(
                "The kind VersionRetirement is not installed. `crdkeeper retire PLURAL.GROUP VERSION` works "
                "without it."
            )
        return sorted(found, key=lambda each: each.metadata.name), client.now()
