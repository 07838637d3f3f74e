"""`crdkeeper retire PLURAL.GROUP VERSION`: a retirement in this process, without the operator."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from crdkeeper.api.meta import READY, find_condition
from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.api.versionretirement import REMOVED, VersionRetirement
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.migrate.display import Display, display_on
from crdkeeper.cli.migrate.narration import failure
from crdkeeper.cli.output.printing import Trouble, line, lines, print_json, print_yaml
from crdkeeper.cli.retire.auditlogs import AuditLogs
from crdkeeper.cli.retire.naming import (
    RetiredResource,
    named_definition,
    named_version,
    retirement_spec,
)
from crdkeeper.cli.retire.narration import audited_object, details
from crdkeeper.cli.signals import Signalled, until_signal
from crdkeeper.cluster.resources.kinds import OfAnotherRelease
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.migration.request import Request
from crdkeeper.core.retirement.auditlog import AuditTally
from crdkeeper.core.retirement.evidence import AuditedUses
from crdkeeper.operations.migration.standalone import Standalone, succeeded
from crdkeeper.operations.retirement.rights import rights_to_see
from crdkeeper.operations.retirement.run import is_outage
from crdkeeper.operations.retirement.standalone import StandaloneRetirement, unstored
from crdkeeper.operations.rights import explained

_NOT_YET = 3
_WAITING = frozenset(("QuietPeriod", "Counting", "Migrating"))
_TO_GO_ON = "What is done shows in the CRD; to go on, run the same command again."


@click.command(name="version", hidden=True)
@click.argument("resource", type=RetiredResource(), metavar="PLURAL.GROUP")
@click.argument("version", metavar="VERSION")
@click.option("--yes", "-y", is_flag=True, help="Take the steps that are due. [default: only show them]")
@click.option("--wait", is_flag=True, help="With --yes: wait until the quiet period is over.")
@click.option(
    "--quiet-period",
    default="168h",
    show_default=True,
    metavar="DURATION",
    help="How long nobody may have used the deprecated version before it is no longer served.",
)
@click.option(
    "--audit-log",
    "audit_logs",
    multiple=True,
    metavar="FILE",
    help="Show who sent requests at the version, by an API server's audit log: JSON lines; - is standard "
    "input. A client's request begins the quiet period again. May be repeated, such as for each API server.",
)
@click.option(
    "--settle-seconds",
    type=click.IntRange(0, 3600),
    metavar="N",
    help="How long the migration waits for all API servers to see a new storage version. Keep it above their "
    "--request-timeout.  [default: 65]",
)
@click.option(
    "--ignore-api-server-leases",
    is_flag=True,
    help="The migration does not wait until each API server has renewed its Lease since the storage version "
    "changed.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(("text", "json", "yaml")),
    default="text",
    show_default=True,
    help="Format of the result. json and yaml print a VersionRetirement with its status.",
)
@connection_options
def version(
    resource: GroupResource,
    version: str,
    *,
    yes: bool,
    wait: bool,
    quiet_period: str,
    audit_logs: tuple[str, ...],
    settle_seconds: int | None,
    ignore_api_server_leases: bool,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show who still uses a version of a CRD and which step is due, or take the steps that are due.

    The steps: the version is deprecated, unused for the quiet period, not served, no object is stored at it
    or names it, and it is removed from the CRD. Each is taken only after the one before is proved; each but
    the removal can be taken back by `crdkeeper retire undo`. The operator is not needed, and nothing is kept
    between two calls but the CRD: to go on, run the same command again.

    With --yes, the rights that all steps need are reviewed before the first change.

    Exit codes: 0 if the version is removed, or without --yes; 1 if something holds a step, somebody has taken
    a step back, a change was refused, a right is missing, the API server does not respond and --wait is not
    given, or the CRD has no such version (any more); 2 for incorrect usage; 3 if the quiet period is not
    over; 130 and 143 if stopped by Ctrl-C or SIGTERM.
    """
    if wait and not yes:
        raise click.UsageError("--wait requires --yes")
    audit = AuditLogs(audit_logs, AuditTally(resource.group, version, resource.resource))
    if wait and audit.has_pipes:
        raise click.UsageError("--wait reads audit logs again and again, and needs files")
    pace: dict[str, Any] = {} if settle_seconds is None else {"settle_seconds": settle_seconds}
    if ignore_api_server_leases:
        pace["api_server_leases"] = "Ignore"
    owner = unstored(
        retirement_spec(resource, version, quiet_period=quiet_period, mode="Execute", migration=pace)
    )
    audit.read_pipes()
    display = display_on(sys.stderr)
    client = Client(Connection(kubeconfig, context))

    async def migrate() -> str:
        return await _migrate(client, owner, display)

    async def work() -> None:
        async with client, explained(client, rights_to_see(resource)):
            named_version(await named_definition(client, resource), version)
            say, read = partial(display.go_on, "Retiring"), audit.read if audit_logs else None
            retirement = StandaloneRetirement(client, owner, say, migrate, read)
            if yes:
                await _take_steps(retirement, wait=wait)
            else:
                await retirement.plan()

    try:
        with display:
            run_async(until_signal(work()))
    except Signalled as signalled:
        line(f"Interrupted. {_TO_GO_ON}", err=True)
        sys.exit(signalled.exit_code)
    _print(owner, output, audit.uses)
    if yes:
        sys.exit(_exit_code(owner))


async def _take_steps(retirement: StandaloneRetirement, *, wait: bool) -> None:
    """Take those that are due. Raises Trouble at an outage of the API server that is not waited for."""
    try:
        await retirement.run(wait=wait)
    except (ApiError, Unreachable) as error:
        if not is_outage(error):
            raise
        raise Trouble(
            f"The API server does not respond: {error}",
            _TO_GO_ON,
            "With --wait, the command waits for the API server.",
        ) from error


async def _migrate(client: Client, owner: VersionRetirement, display: Display) -> str:
    """Rewrite all objects, and move their managedFields, as `crdkeeper migrate` does.

    Returns why that did not succeed; nothing if it did.
    """
    options = {
        "managed_fields": "Retarget",
        "verify": "Full",
        "trim": True,
        "settle_seconds": owner.spec.migration.settle_seconds,
        "api_server_leases": owner.spec.migration.api_server_leases,
    }
    work = Standalone(client, Request(owner.spec.resource, options), watch=display.show, say=display.say)
    try:
        await work.run()
    except OfAnotherRelease as error:
        return f"{error}."
    if work.migration is None or succeeded(work.migration):
        return ""
    return failure(work.migration, gone=work.gone, followed=work.followed)


def _print(owner: VersionRetirement, output: str, audit: AuditedUses | None) -> None:
    document = owner.to_object()
    if audit is not None:
        document["status"].setdefault("evidence", {})["auditLog"] = audited_object(audit)
    if output == "json":
        print_json(document)
    elif output == "yaml":
        print_yaml(document)
    else:
        lines(details(owner, audit))


def _exit_code(owner: VersionRetirement) -> int:
    removed = find_condition(owner.status.conditions, REMOVED)
    ready = find_condition(owner.status.conditions, READY)
    if removed is not None and removed.status == "True":
        return 0
    if ready is None:
        raise Trouble("nothing was decided")
    if ready.reason in _WAITING:
        sooner = ", or now with --wait" if ready.reason == "QuietPeriod" else ""
        line(f"Waiting ({ready.reason}). To go on, run the same command again later{sooner}.", err=True)
        return _NOT_YET
    line(f"Error: {ready.reason}: {ready.message}", err=True)
    return 1
