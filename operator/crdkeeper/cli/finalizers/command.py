"""`crdkeeper finalizers`: lists what finalizers hold up, and releases one by name, without the operator."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import click

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import CLI
from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cli.finalizers.overview import held_objects
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, line, lines, print_json, print_yaml
from crdkeeper.cli.output.table import age, table
from crdkeeper.cluster.probes.census import Pacer, Walk
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.definitions import get_definition
from crdkeeper.cluster.resources.discovery import list_resources
from crdkeeper.cluster.resources.events import definition_reference
from crdkeeper.cluster.resources.finalizers import Freeing
from crdkeeper.cluster.resources.kinds import list_policies
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, may_pass
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.finalizers.holding import Held
from crdkeeper.core.finalizers.listing import HeldList
from crdkeeper.core.finalizers.rule import Release, decide, parse_after, why_never
from crdkeeper.core.finalizers.tally import NamedFinalizer, read_rules
from crdkeeper.core.policy.reading import why_unread
from crdkeeper.core.policy.selection import governing
from crdkeeper.core.resourcenames import parse_resource, suggest
from crdkeeper.core.text import count, visible
from crdkeeper.operations.finalizers.releasing import MOST_FAILED, PER_SECOND, release
from crdkeeper.operations.rights import check_rights, explained, rights_to_read

_HEADERS: Final = ("OBJECT", "FINALIZER", "IN DELETION", "LAST WRITTEN", "BY", "POLICY")
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class _Found:
    definition: DefinitionFacts
    listed: HeldList
    now: datetime
    policy: str = ""
    rules: Sequence[NamedFinalizer] = ()


@click.command(short_help="Show which finalizers hold objects in deletion; release one by name.")
@click.argument("resource", metavar="PLURAL.GROUP")
@click.option("--namespace", "-n", default="", help="Only objects in this namespace. [default: all]")
@click.option("--release", "finalizer", metavar="NAME", help="Release this finalizer, after asking.")
@click.option(
    "--after",
    default="1h",
    show_default=True,
    metavar="DURATION",
    help="Release it only from objects that have been in deletion, and that nobody has written, for so long.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--output", "-o", type=click.Choice(("json", "yaml")), help="[default: a table]")
@click.option("--no-headers", is_flag=True, help="Do not print the table's header.")
@connection_options
def finalizers(
    resource: str,
    *,
    namespace: str,
    finalizer: str | None,
    after: str,
    yes: bool,
    output: str | None,
    no_headers: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show the objects of a CRD that finalizers hold in deletion: since when, and who wrote them last.

    POLICY says what the DefinitionPolicy that governs the CRD will do if it names the finalizer: release it
    now (due), or after some time.

    With --release, the finalizer is released from all objects that are listed with it, but for those that
    somebody still writes. A write that only removes something is not seen: no time in the object tells of
    it. Whatever its controller would have cleaned up stays. Finalizers that Kubernetes or crdkeeper itself
    serves are refused.

    With -o json and -o yaml, the list is a HeldObjectList (cli.crdkeeper.dev/v1alpha1). Fields may be added
    to it, but not removed.

    Exit codes: 0 for a list, or if all were released; 1 if something failed, or objects were left; 2 for
    incorrect usage.
    """
    try:
        wanted, quiet = parse_resource(resource), parse_after(after)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if output and finalizer:
        raise click.UsageError("--output is for the list, without --release")
    never = why_never(finalizer) if finalizer else ""
    if never:
        raise click.UsageError(never)
    connection = Connection(kubeconfig, context)
    found = run_async(_look(connection, wanted, namespace, finalizer or ""))
    if finalizer is None:
        _print(found, namespace, output, headers=not no_headers)
        return
    if not found.listed.total:
        name = found.definition.name
        line(f"No object of {name}{_within(namespace)} is in deletion with the finalizer {finalizer}.")
        option = f" -n {namespace}" if namespace else ""
        line(f"`crdkeeper finalizers {name}{option}` shows those that hold objects.", err=True)
        return
    due = _due(found, finalizer, quiet)
    if due and not yes:
        _ask(due, finalizer)
    left = run_async(_release(connection, found, due, finalizer, namespace))
    if left:
        sys.exit(1)


async def _look(connection: Connection, wanted: GroupResource, namespace: str, finalizer: str) -> _Found:
    async with Client(connection) as client:
        async with explained(client, rights_to_read([str(wanted)])):
            definition = await get_definition(client, str(wanted))
        if definition is None:
            meant = suggest(str(wanted), await list_resources(client))
            raise Trouble(f"no CRD {wanted}" + (f"; did you mean {meant}?" if meant else ""))
        policies: list[DefinitionPolicy] = []
        try:
            policies = await list_policies(client) or []
        except ApiError as error:
            line(f"Policies are not shown: {error.message}", err=True)
        now = client.now()
        # Also those to release it: nobody is asked to confirm what is not allowed.
        verbs = ("get", "list", "patch") if finalizer else ("list",)
        rights = [_right(each, definition, namespace) for each in verbs]
        await check_rights(client, rights)
        within = rights[0].namespace
        walk = Walk(definition, lambda: HeldList(now, namespace, finalizer), page=500, namespace=within)
        while not await walk.step(client):
            pass
        if walk.failure is not None:
            raise Trouble(f"the objects of {wanted} cannot be listed: {walk.failure.message}")
        policy = governing(policies, definition)
        if policy is None:
            return _Found(definition, walk.tally, now)
        rules, problems = read_rules(policy.spec.finalizers)
        unread = why_unread(policy)
        problems += [f"it cannot be read, and releases nothing: {unread}"] if unread else []
        lines((f"DefinitionPolicy {policy.metadata.name}: {each}" for each in problems), err=True)
        return _Found(definition, walk.tally, now, policy.metadata.name, rules)


def _print(found: _Found, namespace: str, output: str | None, *, headers: bool) -> None:
    if output is not None:
        name = found.definition.name
        document = held_objects(name, found.listed, found.policy, found.rules, found.now).to_object()
        if output == "json":
            print_json(document)
        else:
            print_yaml(document)
        return
    if not found.listed.total:
        line(f"No object of {found.definition.name}{_within(namespace)} is held in deletion.", err=True)
        return
    rows = [_row(found, each, name) for each in found.listed.objects for name in each.finalizers]
    lines(table(_HEADERS, rows, with_headers=headers))
    more = found.listed.total - len(found.listed.objects)
    if more:
        line(f"… and {count(more, 'more object')}", err=True)


def _within(namespace: str) -> str:
    return f" in namespace {namespace}" if namespace else ""


def _row(found: _Found, each: Held, name: str) -> tuple[str, ...]:
    written = _ago(found, each.written) if each.written is not None else ""
    return str(each), name, _ago(found, each.since), written, each.writer, _policy(found, each, name)


def _policy(found: _Found, each: Held, name: str) -> str:
    rule = next((rule for rule in found.rules if rule.name == name), None)
    if rule is None:
        return ""
    decision = decide(each, rule.after, found.now)
    if decision.release is Release.DUE:
        time = "due"
    else:
        why = ", still written" if decision.release is Release.WRITTEN else ""
        time = f"in {age((decision.due - found.now).total_seconds())}{why}"
    conditions = " if `when` is true" if rule.when else ""
    return f"{found.policy}: {time}{conditions}{'' if rule.automatic else ' (Plan)'}"


def _ago(found: _Found, moment: datetime) -> str:
    return age((found.now - moment).total_seconds())


def _due(found: _Found, finalizer: str, quiet: timedelta) -> list[Held]:
    """Those to release it from; says why not from the others."""
    due, kept = list[Held](), list[str]()
    for each in found.listed.objects:
        decision = decide(each, quiet, found.now)
        match decision.release:
            case Release.DUE:
                due.append(each)
            case Release.WAITING:
                kept.append(f"{each}: kept, in deletion only for {_ago(found, each.since)}")
            case Release.WRITTEN:
                last = each.written or each.since
                kept.append(f"{each}: kept, written {_ago(found, last)} ago by {each.writer}")
    _some(kept, lambda more: f"… and {count(more, 'more object')} kept")
    return due


def _ask(due: Sequence[Held], finalizer: str) -> None:
    _some(list(map(str, due)), lambda more: f"… and {count(more, 'more object')}")
    if not sys.stdin.isatty():
        raise Trouble("nobody is there to ask: use --yes")
    line("What the controller of this finalizer would have cleaned up stays.", err=True)
    if not click.confirm(f"Release {visible(finalizer)} from {count(len(due), 'object')}?", err=True):
        raise Trouble("nothing was released")


def _some(texts: Sequence[str], rest: Callable[[int], str]) -> None:
    lines(texts[:_SHOWN], err=True)
    if len(texts) > _SHOWN:
        line(rest(len(texts) - _SHOWN), err=True)


async def _release(
    connection: Connection, found: _Found, due: Sequence[Held], finalizer: str, namespace: str
) -> int:
    """Release it; returns how many still have it. Says how far it came, also if something ends it."""
    definition, released, gone, failed, pacer = found.definition, 0, 0, 0, Pacer(PER_SECOND)
    async with Client(connection) as client:
        try:
            for each in due:
                await pacer.turn()
                try:
                    freed = await release(
                        client,
                        definition,
                        each,
                        finalizer,
                        on_behalf="a user of crdkeeper finalizers",
                        otherwise=definition_reference(definition.name, definition.uid),
                        by=CLI,
                        instance="crdkeeper-finalizers",
                    )
                except (ApiError, Unreachable) as error:
                    # Slow webhooks look like this, too, and must not keep the other objects.
                    failed += 1
                    if not may_pass(error) or failed == MOST_FAILED:
                        raise
                    line(f"{each}: failed: {error}", err=True)
                    if isinstance(error, ApiError):
                        await asyncio.sleep(error.retry_after or 0.0)
                    continue
                failed = 0
                match freed.freeing:
                    case Freeing.RELEASED:
                        released += 1
                    case Freeing.GONE:
                        gone += 1
                        line(f"{each}: already gone", err=True)
                    case Freeing.CHANGED:
                        line(f"{each}: kept, somebody has just written it", err=True)
                    case Freeing.REFUSED:
                        line(f"{each}: refused: {freed.message}", err=True)
                    case Freeing.FORBIDDEN:
                        await check_rights(client, [_right("patch", definition, namespace)])
                        raise Trouble(freed.message)
        finally:
            left = found.listed.total - released - gone
            line(f"Released {finalizer} from {count(released, 'object')}; {left:,} left.")
    return left


def _right(verb: str, definition: DefinitionFacts, namespace: str) -> Right:
    """To the objects. Who may list those of one namespace may not list those of all."""
    within = namespace if definition.namespaced else ""
    return Right(verb, definition.group, definition.plural, namespace=within)
