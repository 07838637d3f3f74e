"""What the commands of `crdkeeper compose` share: the format of manifests, and lines about problems."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import click

from crdkeeper.apiserver.schema.violation import Unchecked
from crdkeeper.cli.input.files import Failed, LocatedDefinition, WrittenObject
from crdkeeper.cli.output.printing import line, print_json, print_yaml
from crdkeeper.core.composition.problem import CompositeProblem
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.text import count

MOST_PROBLEMS: Final = 500
"""That are printed of one run."""
_MOST_UNCHECKED: Final = 20

_F = TypeVar("_F", bound=Callable[..., Any])
_Located = LocatedDefinition | WrittenObject


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


def print_unchecked(unchecked: Sequence[tuple[_Located, Unchecked]]) -> None:
    """Print to standard error which checks only the API server can make, in which CRDs."""
    for each, left in unchecked[:_MOST_UNCHECKED]:
        at = place(each.file, each.find(left.path.steps))
        line(f"{at}: not checked[{left.rule.id}]: {left.path}: {left.reason}", err=True)
    print_rest(len(unchecked) - _MOST_UNCHECKED, "check")
    if unchecked:
        line(
            "What is not checked neither passed nor failed: kubectl create --dry-run=server decides.",
            err=True,
        )


def print_rest(number: int, what: str) -> None:
    """Print how many are not listed; nothing if the number is not positive."""
    if number > 0:
        line(f"and {count(number, f'more {what}')}", err=True)


def print_failures(failed: Iterable[Failed]) -> None:
    """Print what could not be read, a line each, to standard error."""
    for each in failed:
        line(f"{place(each.file, each.position)}: {each.message}", err=True)
