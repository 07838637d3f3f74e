"""`crdkeeper migrate`: migrations in this process, for a laptop or a Kubernetes Job."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

from crdkeeper.api.storagemigration import SHARDS_MOST, GroupResource, MigrationLimits
from crdkeeper.cli.input.options import connection_options, process_identity, run_async
from crdkeeper.cli.migrate.display import Display, display_on
from crdkeeper.cli.migrate.report import has_failed, report, report_interruption
from crdkeeper.cli.output.printing import line, lines
from crdkeeper.cli.signals import Signalled, until_signal
from crdkeeper.cluster.resources.definitions import list_definitions
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.migration.request import RETRY_ROUNDS, Request
from crdkeeper.core.migration.selection import select
from crdkeeper.core.migration.sharding import Shard
from crdkeeper.core.resourcenames import parse_resource
from crdkeeper.operations.migration.together import Attempt, Together
from crdkeeper.operations.rights import explained, rights_to_read


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


@click.command(short_help="Migrate all objects of resources to their storage versions.")
@click.argument("resources", type=_Resource(), nargs=-1, metavar="[PLURAL.GROUP]...")
@click.option(
    "--all-outdated",
    is_flag=True,
    help="Migrate each CRD with stored versions other than the storage version; with -l, of those selected.",
)
@click.option("--selector", "-l", default="", help="Migrate the CRDs with these labels, as in kubectl.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Try every write as a server-side dry run and list what would be refused. Writes nothing.",
)
@click.option(
    "--min-concurrency",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Number of requests in flight that the server's latency leaves.  [default: 1]",
)
@click.option(
    "--max-concurrency",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Maximum number of requests in flight, adapted to what they bring and the server's latency.  "
    "[default: 64]",
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
    "--shards",
    type=click.IntRange(1, SHARDS_MOST),
    metavar="N",
    help="Share the migration with other processes: the objects are divided into N parts. Needs --name: the "
    "same for all processes of a run, and new for each run. Limits are those of all together.",
)
@click.option(
    "--shard",
    type=click.IntRange(0, SHARDS_MOST - 1),
    metavar="I",
    help="The part that this process begins with, from 0.  [default: $JOB_COMPLETION_INDEX]",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Format of the result. json prints the StorageMigration with its status, or a list of several.",
)
@connection_options
def migrate(
    resources: tuple[GroupResource, ...],
    *,
    all_outdated: bool,
    selector: str,
    dry_run: bool,
    name: str | None,
    shards: int | None,
    shard: int | None,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
    **options: Any,
) -> None:
    """Rewrite all objects of resources at their storage versions, prove it, and trim status.storedVersions.

    A resource is PLURAL.GROUP, such as certificates.cert-manager.io, or PLURAL for the core group, such as
    secrets. Instead of resources, -l and --all-outdated choose CRDs, in the order of their names.

    Several resources wait for all API servers at the same time, and are written one after the other, so the
    limits are those of all together. If one fails, the others continue.

    With --shards, several processes share the migration of one resource. Each rewrites a part of the objects,
    takes over the parts of those that died or did not start, and ends when the whole migration has ended. One
    of them verifies and trims.

    The command does not need the operator. It saves its state in a StorageMigration for each resource, if
    that kind is installed: to resume after Ctrl-C, a kill or a restart of the pod, run the same command
    again. If the operator is already migrating a resource, the command follows that migration instead.

    Exit codes: 0 if the old versions were trimmed or there was nothing to do, 1 if a migration failed,
    objects were refused, or an outdated CRD was left out because it is not served, 2 for
    incorrect usage, 130 and 143 if stopped by Ctrl-C or SIGTERM, with the state saved; if
    the API server does not respond within 3 seconds, the command says what it had saved before.
    """
    chosen = all_outdated or bool(selector.strip())
    if bool(resources) == chosen:
        raise click.UsageError("specify either resources (PLURAL.GROUP), or -l SELECTOR and --all-outdated")
    several = chosen or len(set(map(str, resources))) > 1
    if several and name is not None:
        raise click.UsageError("--name is for one resource: each has a StorageMigration of its own")
    fields = _spec_fields(**options)
    which = _shard(shard, shards, name, fields, one=not several and not dry_run)
    command = _Command(several)

    async def run() -> None:
        async with Client(Connection(kubeconfig, context)) as client:
            wanted = resources or await command.choose(client, selector, outdated=all_outdated)
            once = {str(each): each for each in wanted}.values()
            await command.run(client, [Request(each, fields, name, dry_run, which) for each in once])

    try:
        run_async(until_signal(run()))
    except Signalled as signalled:
        report_interruption(command.attempts, output, several=several)
        sys.exit(signalled.exit_code)
    code = report(command.attempts, output, several=several)
    sys.exit(code or int(command.unserved))


class _Command:
    """The migrations of one call, shown while they run."""

    def __init__(self, several: bool) -> None:
        self._several = several
        self._together: Together | None = None
        self.unserved = False
        """Whether an outdated CRD was left out."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The state of each; empty before there are any."""
        return self._together.attempts if self._together is not None else ()

    async def choose(self, client: Client, selector: str, *, outdated: bool) -> list[GroupResource]:
        """The resources of the CRDs that -l and --all-outdated choose."""
        async with explained(client, rights_to_read(())):
            definitions = await list_definitions(client, selector)
        found = select(definitions, outdated=outdated)
        lines(found.remarks, err=True)
        if not found.resources:
            line(f"No {'outdated ' if outdated else ''}CRDs found.", err=True)
        self.unserved = found.unserved
        return found.resources

    async def run(self, client: Client, requests: Sequence[Request]) -> None:
        """Run them all to their ends."""
        names = [str(each.resource) for each in requests]
        identity = process_identity()
        sharer = identity if any(each.shard is not None for each in requests) else ""
        display = display_on(sys.stderr, names if self._several else (), sharer)
        self._together = Together(
            client,
            requests,
            watch=display.show,
            say=lambda request, text: display.say(text, str(request.resource)),
            over=lambda attempt: display.over(str(attempt.work.request.resource), failed=has_failed(attempt)),
            identity=identity,
        )
        if requests:
            with display, _warnings_to(display):
                await self._together.run()


def _shard(
    index: int | None, count: int | None, name: str | None, fields: Mapping[str, Any], *, one: bool
) -> Shard | None:
    """The process's place among those of its run. Raises UsageError."""
    if count is None:
        if index is not None:
            raise click.UsageError("--shard needs --shards")
        return None
    if name is None or not one:
        raise click.UsageError("--shards needs --name, and is for one resource without --dry-run")
    if count > fields.get("limits", {}).get("max_concurrency", count):
        raise click.UsageError("--max-concurrency is the limit of all shards together: at least one for each")
    if index is None:
        index = _job_index()
    if index >= count:
        raise click.UsageError(f"--shard is {index}, but with --shards {count} the last one is {count - 1}")
    return Shard(index, count)


def _job_index() -> int:
    """The index that an Indexed Job gives to its pods."""
    text = os.environ.get("JOB_COMPLETION_INDEX", "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise click.UsageError("--shards needs --shard, or $JOB_COMPLETION_INDEX with a number")
    return int(text)


def _spec_fields(
    *,
    min_concurrency: int | None,
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
    """The given options, as fields of a StorageMigration's spec. Raises UsageError."""
    most = MigrationLimits().max_concurrency if max_concurrency is None else max_concurrency
    if min_concurrency is not None and min_concurrency > most:
        raise click.UsageError(
            f"--min-concurrency is {min_concurrency}, above --max-concurrency, which is {most}"
        )
    limits = {
        "min_concurrency": min_concurrency,
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
