"""What the commands of `crdkeeper compose` share: the format of manifests, and lines about problems."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from crdkeeper.cli.input.files import Failed
from crdkeeper.cli.input.yamldocument import Position
from crdkeeper.cli.output.printing import line, print_json, print_yaml
from crdkeeper.core.composition.problem import CompositeProblem

_F = TypeVar("_F", bound=Callable[..., Any])


def format_option(command: _F) -> _F:
    """--output, of manifests on standard output."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(("yaml", "json")),
        default="yaml",
        show_default=True,
        help="The format.",
    )(command)


def print_manifests(manifests: Sequence[dict[str, Any]], output: str) -> None:
    """Print manifests as YAML documents or as one List in JSON."""
    if output == "json":
        print_json({"apiVersion": "v1", "kind": "List", "items": manifests})
    elif manifests:
        print_yaml(*manifests, width=110)


def place(file: str, position: Position) -> str:
    """FILE:LINE:COLUMN."""
    return f"{file}:{position.line}:{position.column}"


def print_problem(where: str, problem: CompositeProblem) -> None:
    """Print the first line about a problem to standard error."""
    severity = "error" if problem.refused else "warning"
    line(f"{where}: {severity}[{problem.rule.id}]: {problem.path}: {problem.message}", err=True)


def print_failures(failed: Iterable[Failed]) -> None:
    """Print what could not be read, a line each, to standard error."""
    for each in failed:
        line(f"{place(each.file, each.position)}: {each.message}", err=True)
