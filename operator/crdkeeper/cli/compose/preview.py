"""`crdkeeper compose preview`: what a Composition would change in live composites, by dry runs."""

from pathlib import Path

import click

from crdkeeper.cli.compose.output import MOST_PROBLEMS, place, print_failures, print_rest
from crdkeeper.cli.compose.previewoutput import PreviewOutput
from crdkeeper.cli.input.files import Failed, WrittenObject, check_standard_input, read
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, line
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.templates.admission import admit_composition, is_composition, stored_composition
from crdkeeper.core.templates.problem import TemplateProblem
from crdkeeper.core.text import count

_DIFFERENT, _FAILED = 1, 2


class _NotTried(Trouble):
    exit_code = _FAILED


@click.command(short_help="Show what a Composition would change.")
@click.option(
    "--filename", "-f", required=True, metavar="FILE|-", help="Has the Composition, as it is to be applied."
)
@click.option(
    "--composite",
    "composites",
    multiple=True,
    metavar="[NAMESPACE/]NAME",
    help="Only this one; without a namespace in that of the context. [may be repeated]",
)
@click.option("--selector", "-l", default="", help="Only composites with these labels, as in kubectl.")
@click.option(
    "--limit", type=click.IntRange(1), default=None, help="At most so many composites. [default: all]"
)
@click.option(
    "--output", "-o", type=click.Choice(("text", "json", "yaml")), default="text", show_default=True
)
@connection_options
def preview(
    filename: str,
    *,
    composites: tuple[str, ...],
    selector: str,
    limit: int | None,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show what a Composition would change in all composites that would run by it, before you apply it.

    Each composite is worked on as the composer would, with the field manager of the composer and your rights;
    each write is a server-side dry run, so that nothing is stored. What needs a value of an object that does
    not exist yet is shown as waiting. Values of Secrets are not shown, nor those of objects into which the
    Composition may copy them.

    With -o json and -o yaml, the result is a CompositionPreview (cli.crdkeeper.dev/v1alpha1). Fields may be
    added to it, but not removed.

    Exit codes, as of kubectl diff: 0 if nothing would change, 1 if something would, 2 if the Composition is
    not valid, something would be refused, or not everything could be tried.
    """
    if composites and (selector or limit):
        raise click.UsageError("--composite names composites; --selector and --limit choose among all")
    check_standard_input([filename])
    written = _read(filename)
    spec, problems = admit_composition(written.value)
    if spec is None:
        _print_problems(written, problems)
        raise SystemExit(_FAILED)
    # Imported only here: the other commands need no controllers.
    from crdkeeper.cli.compose.previewrun import Asked, run_preview
    from crdkeeper.cluster.transport.connection import Connection
    from crdkeeper.controllers.composite.previewing import Rejected

    asked = Asked(stored_composition(written.value), spec, composites, selector, limit or 0, output)
    try:
        done = run_async(run_preview(Connection(kubeconfig, context), asked))
    except Trouble as error:
        raise _NotTried(*error.lines) from error
    if isinstance(done, Rejected):
        _print_problems(written, list(done.result.problems))
        if not done.result.problems:
            line(f"{place(written.file, written.find(()))}: error: {done.verdict.message}", err=True)
        raise SystemExit(_FAILED)
    _end(done)


def _end(done: PreviewOutput) -> None:
    if done.failed:
        raise SystemExit(_FAILED)
    if done.differs:
        raise SystemExit(_DIFFERENT)


def _read(filename: str) -> WrittenObject:
    found: list[WrittenObject] = []
    failed: list[Failed] = []
    for each in read([filename]):
        if isinstance(each, Failed):
            failed.append(each)
        elif isinstance(each, WrittenObject) and is_composition(each.value):
            found.append(each)
    if not failed and len(found) != 1:
        said = "contains no Composition" if not found else "has several Compositions: preview one at a time"
        failed.append(Failed(filename, Position(), said))
    name = None
    if len(found) == 1:
        metadata = found[0].value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str) or not name:
            failed.append(Failed(filename, found[0].position, "metadata.name: must be set"))
    print_failures(failed)
    if failed:
        raise SystemExit(_FAILED)
    return found[0]


def _print_problems(written: WrittenObject, problems: list[TemplateProblem]) -> None:
    for each in problems[:MOST_PROBLEMS]:
        line(f"{place(written.file, written.find(each.path.steps))}: error: {each}", err=True)
        if each.hint:
            line(f"    hint: {each.hint}", err=True)
    print_rest(len(problems) - MOST_PROBLEMS, "problem")
    if problems:
        line(f"{count(len(problems), 'error')} in the Composition.", err=True)
