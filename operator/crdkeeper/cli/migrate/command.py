"""`crdkeeper migrate`: one migration in this process, for a laptop or a Kubernetes Job."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

from crdkeeper.api.storagemigration import GroupResource, StorageMigration
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.migrate.display import Display, display_on
from crdkeeper.cli.migrate.narration import failure, interruption, outcome, refused_table
from crdkeeper.cli.output.printing import Trouble, line, lines, print_json
from crdkeeper.cli.signals import Signalled, until_signal
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.migration.request import RETRY_ROUNDS, Request
from crdkeeper.core.resourcenames import parse_resource
from crdkeeper.operations.migration.standalone import Standalone, UnknownResource, succeeded


class _Resource(click.ParamType[GroupResource]):
    name = "resource"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> GroupResource:
        """`PLURAL.GROUP` as a GroupResource."""
        try:
            return parse_resource(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Rounds(click.ParamType[int | Literal["forever"]]):
    name = "rounds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Literal["forever"]:
        """A number, or `forever`."""
        if value == "forever":
            return "forever"
        if not str(value).isdigit():
            self.fail(f"{value!r} is not a number or `forever`.", param, ctx)
        return int(value)


@click.command(short_help="Migrate all objects of a resource to its storage version.")
@click.argument("resource", type=_Resource(), metavar="PLURAL.GROUP")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Try every write as a server-side dry run and list what would be refused. Writes nothing.",
)
@click.option(
    "--max-concurrency",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Maximum number of requests in flight, adapted to the server's latency.  [default: 64]",
)
@click.option(
    "--max-objects-per-second",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of objects written per second.",
)
@click.option(
    "--max-bytes-per-second",
    type=click.IntRange(1024),
    metavar="N",
    help="Maximum number of bytes written per second.",
)
@click.option(
    "--retry-limit",
    type=_Rounds(),
    metavar="N",
    help="Number of times to retry refused objects before giving up: 0 for none, or "
    f"`forever`.  [default: {RETRY_ROUNDS}]",
)
@click.option(
    "--no-trim", is_flag=True, help="Rewrite and verify only. Do not change status.storedVersions of the CRD."
)
@click.option(
    "--managed-fields",
    type=click.Choice(("keep", "retarget")),
    help="Whether to move managedFields of other versions to the storage version.  [default: keep]",
)
@click.option(
    "--verify",
    type=click.Choice(("remaining", "full")),
    help="What the second pass rewrites: objects not yet proved current, or all.  [default: remaining]",
)
@click.option(
    "--settle-seconds",
    type=click.IntRange(0, 3600),
    metavar="N",
    help="How long to wait for all API servers to see a new storage version. Keep it above their "
    "--request-timeout.  [default: 65]",
)
@click.option(
    "--ignore-api-server-leases",
    is_flag=True,
    help="Do not wait until each API server has renewed its Lease since the storage version changed.",
)
@click.option(
    "--name",
    help="Name of the StorageMigration that keeps the state.  [default: PLURAL.GROUP-cli]",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Format of the result. json prints the StorageMigration with its status.",
)
@connection_options
def migrate(
    resource: GroupResource,
    *,
    dry_run: bool,
    name: str | None,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
    **options: Any,
) -> None:
    """Rewrite all objects of a resource at its storage version, prove it, and trim status.storedVersions.

    The resource is PLURAL.GROUP, such as certificates.cert-manager.io, or PLURAL for the core group, such as
    secrets.

    The command does not need the operator. It saves its state in a StorageMigration, if that kind is
    installed: to resume after Ctrl-C, a kill or a restart of the pod, run the same command again. If the
    operator is already migrating the resource, the command follows that migration instead.

    Exit codes: 0 if the old versions were trimmed or there was nothing to do, 1 if the migration failed or
    objects were refused, 2 for incorrect usage, 130 and 143 if stopped by Ctrl-C or SIGTERM, with the state
    saved.
    """
    display = display_on(sys.stderr)
    client = Client(Connection(kubeconfig, context))
    request = Request(resource, _spec_fields(**options), name, dry_run)
    work = Standalone(client, request, watch=display.show, say=display.say)

    async def run() -> None:
        async with client:
            await until_signal(work.run())

    try:
        with display, _warnings_to(display):
            run_async(run())
    except UnknownResource as error:
        raise Trouble(str(error)) from error
    except Signalled as signalled:
        line(interruption(work.migration, stored=work.stored, followed=work.followed), err=True)
        sys.exit(signalled.exit_code)
    if work.migration is not None:
        sys.exit(_report(work, work.migration, output))


def _spec_fields(
    *,
    max_concurrency: int | None,
    max_objects_per_second: int | None,
    max_bytes_per_second: int | None,
    retry_limit: int | Literal["forever"] | None,
    no_trim: bool,
    managed_fields: str | None,
    verify: str | None,
    settle_seconds: int | None,
    ignore_api_server_leases: bool,
) -> dict[str, Any]:
    """The given options, as fields of a StorageMigration's spec."""
    limits = {
        "max_concurrency": max_concurrency,
        "max_objects_per_second": max_objects_per_second,
        "max_bytes_per_second": max_bytes_per_second,
    }
    fields = {
        "limits": _given(limits),
        # Always as in this call: the exit code says whether the old versions are trimmed.
        "trim": not no_trim,
        "managed_fields": managed_fields and managed_fields.capitalize(),
        "verify": verify and verify.capitalize(),
        "settle_seconds": settle_seconds,
        "api_server_leases": "Ignore" if ignore_api_server_leases else None,
    }
    retry = {} if retry_limit is None else {"limit": None if retry_limit == "forever" else retry_limit}
    return {**_given(fields), "retry": retry}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


@contextmanager
def _warnings_to(display: Display) -> Iterator[None]:
    """Print the engine's warnings as lines of the display, so that they do not tear the bar."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            display.say(record.getMessage())

    handler, logger = Handler(logging.WARNING), logging.getLogger("crdkeeper")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _report(work: Standalone, migration: StorageMigration, output: str) -> int:
    """Print how it ended: the result on stdout, the failure on stderr. Returns the exit code."""
    refused = sorted(work.refused, key=lambda each: (each.namespace, each.name))
    if output == "json":
        migration.status.quarantine.objects = refused
        print_json(migration.to_object())
    elif refused:
        lines(refused_table(refused, migration.status.progress.quarantined))
    if succeeded(migration):
        line(outcome(migration), err=output == "json")
        return 0
    line(f"Error: {failure(migration, gone=work.gone, followed=work.followed)}", err=True)
    return 1
