"""`crdkeeper rehearse`: what a new CRD would do to existing objects."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.apiserver.objects.effort import SharedAllowance
from crdkeeper.cli.convert.rules import BadInput
from crdkeeper.cli.input.files import check_standard_input
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import line, lines, lines_of, show
from crdkeeper.cli.rehearse.objects import RulePair, read_current, read_definitions, read_folder
from crdkeeper.cli.rehearse.output import PRINTERS
from crdkeeper.cli.signals import Signalled, until_signal
from crdkeeper.core.rehearsal.offline import OfflineRehearsal, rehearse_offline
from crdkeeper.core.rehearsal.report import RehearsalReport, RehearsalVerdict

_HARMFUL, _UNCERTAIN = 1, 2
_MANY = 500
_AUTO = "auto"


@click.command(short_help="Show what a new CRD would do to existing objects.")
@click.option(
    "--filename",
    "-f",
    "filenames",
    required=True,
    multiple=True,
    metavar="FILE|FOLDER|-",
    help="The new CRDs.",
)
@click.option(
    "--objects",
    multiple=True,
    metavar="FILE|FOLDER",
    help="Rehearse offline, with these objects instead of the cluster's. [may be repeated]",
)
@click.option("--from", "old_file", metavar="FILE", help="With --objects: the current CRD.")
@click.option(
    "--rules",
    metavar="FILE",
    help="The VersionConversion that the webhook will use. [default: the cluster's]",
)
@click.option(
    "--old-rules",
    metavar="FILE",
    help="The VersionConversion that the webhook uses now. [default: the cluster's]",
)
@click.option(
    "--shadow",
    type=click.Choice((_AUTO, "always", "never")),
    default=_AUTO,
    show_default=True,
    help="Which objects to send, as a dry run, to a copy of the new CRD: those where the prediction is not "
    "certain, all as proof, or none.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(tuple(PRINTERS)),
    default="text",
    show_default=True,
    help="The format.",
)
@connection_options
def rehearse(
    filenames: tuple[str, ...],
    *,
    objects: tuple[str, ...],
    old_file: str | None,
    rules: str | None,
    old_rules: str | None,
    shadow: str,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show what a new CRD would do to existing objects, before you apply it.

    The API server tries the new CRD by a dry run. For every object in the cluster, reads and writes at each
    version are predicted. Objects for which this is not certain are sent, as a dry run, to a copy of the new
    CRD in a separate API group. Your objects are not written; the copy is removed.

    Exit codes: 0 if nothing would be lost or refused, 1 if something would be, 2 if the input is invalid, a
    CRD could not be rehearsed or the outcome is uncertain for some objects.
    """
    if old_file is not None and not objects:
        raise click.UsageError("--from requires --objects; otherwise the current CRD is the cluster's")
    if old_rules is not None and objects and old_file is None:
        raise click.UsageError("--old-rules requires --from with --objects")
    if objects and shadow != _AUTO:
        raise click.UsageError("--shadow requires a cluster, and --objects rehearses without one")
    check_standard_input([*filenames, *objects, old_file, rules, old_rules])
    definitions = read_definitions(filenames)
    given = RulePair.read(rules, old_rules, definitions)
    reports: Sequence[RehearsalReport]
    failures: Sequence[BadInput] = ()
    if objects:
        reports = _offline(definitions, objects, old_file, given)
    else:
        reports, failures = _live(definitions, given, shadow, kubeconfig, context)
    if reports or not failures:
        PRINTERS[output](reports)
    for failure in failures:
        show(failure)
    verdicts = {each.verdict for each in reports}
    if verdicts & {RehearsalVerdict.HARMFUL, RehearsalVerdict.REJECTED}:
        raise SystemExit(_HARMFUL)
    if failures or RehearsalVerdict.UNCERTAIN in verdicts:
        raise SystemExit(_UNCERTAIN)


def _offline(
    definitions: Sequence[Any], objects: Iterable[str], old_file: str | None, rules: RulePair
) -> list[RehearsalReport]:
    names = [each["metadata"]["name"] for each in definitions]
    current = read_current(old_file, names) if old_file is not None else {}
    allowance = SharedAllowance()
    rehearsals = []
    for name, each in zip(names, definitions, strict=True):
        old = current.get(name)
        try:
            rehearsal = OfflineRehearsal(
                each,
                old,
                conversion=rules.new.compiled(name, each),
                old_conversion=rules.old.compiled(name, old) if old is not None else None,
                allowance=allowance,
            )
        except UnreadableDefinition as error:
            raise BadInput(f"{name}: {error}") from None
        rehearsals.append(rehearsal)
    reports = rehearse_offline(rehearsals, read_folder(objects))
    if not any(each.rejections or each.tally.objects for each in reports):
        raise BadInput(f"--objects: no object of {', '.join(each.name for each in reports)}")
    return reports


def _live(
    definitions: Sequence[Any], rules: RulePair, shadow: str, kubeconfig: Path | None, context: str | None
) -> tuple[Sequence[RehearsalReport], Sequence[BadInput]]:
    """The reports, and what prevented the rehearsal of other CRDs."""
    # Imported only here: a rehearsal of files needs no Kubernetes client.
    from crdkeeper.cli.rehearse.live import rehearse_all
    from crdkeeper.operations.rehearsal.proof import ShadowUse

    use = ShadowUse(shadow)
    left: list[str] = []
    work = rehearse_all(definitions, rules, use, kubeconfig, context, _progress(), left.append)
    try:
        done = run_async(until_signal(work))
        return done.reports, done.failures
    except Signalled as signalled:
        lines(["Stopped.", *left] if left else ["Stopped. Nothing was left in the cluster."], err=True)
        raise SystemExit(signalled.exit_code) from None
    except click.ClickException as error:
        raise BadInput(*lines_of(error), *left) from error


def _progress() -> Callable[[int], None]:
    """Report the progress at regular numbers of objects."""
    total = shown = 0

    def progress(done: int) -> None:
        nonlocal total, shown
        total += done
        if total - shown >= _MANY:
            shown = total
            line(f"{total:,} objects …", err=True)

    return progress
