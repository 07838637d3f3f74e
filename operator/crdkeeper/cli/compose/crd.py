"""`crdkeeper compose crd`: the CRDs for CompositeResourceDefinitions, without a cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import click

from crdkeeper.apiserver.schema.violation import Unchecked
from crdkeeper.cli.compose.output import (
    MOST_PROBLEMS,
    format_option,
    place,
    print_failures,
    print_manifests,
    print_problem,
    print_rest,
    print_unchecked,
)
from crdkeeper.cli.input.files import Failed, LocatedDefinition, check_standard_input, read
from crdkeeper.cli.output.printing import line
from crdkeeper.core.composition.acceptance import Acceptance, with_server_errors
from crdkeeper.core.composition.problem import CompositeProblem
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.lint.annotation import apply_annotation
from crdkeeper.core.lint.authored import of_composite

_REFUSED, _UNREADABLE = 1, 2


@dataclass(slots=True)
class _Result:
    manifests: list[dict[str, Any]] = field(default_factory=list)
    problems: list[tuple[LocatedDefinition, CompositeProblem]] = field(default_factory=list)
    unchecked: list[tuple[LocatedDefinition, Unchecked]] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    refused: bool = False


@click.command(short_help="Print the CRD of a CompositeResourceDefinition.")
@click.option(
    "--filename",
    "-f",
    "filenames",
    required=True,
    multiple=True,
    metavar="FILE|FOLDER|-",
    help="A file, a folder (all YAML and JSON files below it), or - for standard input. [may be repeated]",
)
@format_option
def crd(filenames: tuple[str, ...], *, output: str) -> None:
    """Print the CRDs that CompositeResourceDefinitions in files stand for. Other objects are skipped.

    A definition that would be refused is not printed. Its errors, as well as warnings and what only the API
    server can check, go to standard error, with the line in the file. Warnings can be ignored as in
    `crdkeeper lint`.

    Exit codes: 0 if all CRDs are printed, 1 if a definition is refused, 2 if something could not be read.
    """
    check_standard_input(filenames)
    result = _make(filenames)
    print_manifests(result.manifests, output)
    for definition, problem in result.problems[:MOST_PROBLEMS]:
        print_problem(place(definition.file, definition.find(problem.path.steps)), problem)
        line(f"    why: {problem.rule.why}", err=True)
        line(f"    hint: {problem.rule.remedy}", err=True)
    print_rest(len(result.problems) - MOST_PROBLEMS, "problem")
    print_unchecked(result.unchecked)
    print_failures(result.failed)
    if result.failed:
        raise SystemExit(_UNREADABLE)
    if result.refused:
        raise SystemExit(_REFUSED)


def _make(filenames: tuple[str, ...]) -> _Result:
    result = _Result()
    found = False
    for each in read(filenames):
        if isinstance(each, Failed):
            result.failed.append(each)
        elif isinstance(each, LocatedDefinition) and each.composite is not None:
            found = True
            judged = with_server_errors(each.composite)
            result.problems += [(each, problem) for problem in _counting(each, judged)]
            result.unchecked += [(each, left) for left in judged.unchecked]
            if judged.refused:
                result.refused = True
            elif judged.crd is not None:
                result.manifests.append(judged.crd)
    if not (found or result.failed):
        message = "contains no CompositeResourceDefinition"
        result.failed.append(Failed(", ".join(filenames), Position(), message))
    return result


def _counting(definition: LocatedDefinition, judged: Acceptance) -> Iterator[CompositeProblem]:
    """The problems, without warnings that the annotation or a comment says to ignore."""
    marked = apply_annotation(definition.value["metadata"], of_composite(judged.problems))
    # What is wrong with the annotation itself comes after them, and is for `crdkeeper lint` to say.
    for problem, found in zip(judged.problems, marked[: len(judged.problems)], strict=True):
        if problem.refused or not (found.ignored or _has_comment(definition, problem)):
            yield problem


def _has_comment(definition: LocatedDefinition, problem: CompositeProblem) -> bool:
    if problem.rule.id not in definition.comments.ids:
        return False
    return definition.comments.find(problem.rule.id, [definition.find(problem.path.steps).line]) is not None
