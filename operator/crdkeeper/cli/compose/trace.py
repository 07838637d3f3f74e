"""`crdkeeper compose trace`: what a composite stands for, as a tree with what each object waits for."""

from pathlib import Path
from typing import Final

import click

from crdkeeper.cli.compose.tracetext import dot_lines, tree_lines
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, lines, print_json, print_yaml, terminal_width
from crdkeeper.core.composites.tree import TracedComposite

_NOT_READY, _UNKNOWN = 1, 2
_API_VERSION: Final = "cli.crdkeeper.dev/v1alpha1"


class _Unknown(Trouble):
    exit_code = _UNKNOWN


@click.command(short_help="Show the objects of a composite as a tree.")
@click.argument("kind", metavar="KIND")
@click.argument("name", required=False, metavar="NAME")
@click.option("--namespace", "-n", help="The composite's namespace. [default: that of the context]")
@click.option("--output", "-o", type=click.Choice(("json", "yaml", "dot")), help="[default: a tree]")
@connection_options
def trace(
    kind: str,
    name: str | None,
    *,
    namespace: str | None,
    output: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show a composite with its conditions, resources and objects, and why each is not ready.

    KIND is what kubectl takes: a plural, singular or short name, or PLURAL.GROUP; KIND/NAME works, too.
    Objects that are composites themselves are followed. Nothing is written. What you may not read is shown
    as unknown.

    With -o json and -o yaml, the result is a CompositeTrace (cli.crdkeeper.dev/v1alpha1). Fields may be added
    to it, but not removed. -o dot is for Graphviz.

    Exit codes: 0 if the composite, and those in it, are ready; 1 if not, or if it is being deleted; 2 if
    there is no such composite, or something could not be read.
    """
    if name is None:
        kind, _, name = kind.partition("/")
    if not kind or not name or "/" in name or "/" in kind:
        raise click.UsageError("name a composite: KIND NAME, or KIND/NAME")
    # Imported only here: the other commands need no controllers.
    from crdkeeper.cli.compose.finding import find_and_trace
    from crdkeeper.cluster.transport.connection import Connection

    try:
        found = run_async(find_and_trace(Connection(kubeconfig, context), kind, namespace, name))
    except Trouble as error:
        raise _Unknown(*error.lines) from error
    _print(found, output)
    if not found.complete:
        raise SystemExit(_UNKNOWN)
    if not found.ready:
        raise SystemExit(_NOT_READY)


def _print(found: TracedComposite, output: str | None) -> None:
    if output in ("json", "yaml"):
        document = {"apiVersion": _API_VERSION, "kind": "CompositeTrace", "composite": found.to_object()}
        if output == "json":
            print_json(document)
        else:
            print_yaml(document)
    elif output == "dot":
        lines(dot_lines(found))
    else:
        lines(tree_lines(found, terminal_width()))
