"""`crdkeeper compose import`: what defines composite APIs in other projects, rewritten as crdkeeper's."""

from dataclasses import dataclass, field
from typing import Any

import click

from crdkeeper.apiserver.schema.fieldpath import root
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
from crdkeeper.cli.input.files import Failed, ForeignComposite, check_standard_input, read
from crdkeeper.cli.output.printing import line
from crdkeeper.core.composer.update import judge_update
from crdkeeper.core.composer.wording import listed
from crdkeeper.core.composition.acceptance import accept, with_server_errors
from crdkeeper.core.composition.problem import CompositeProblem
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.importing import crossplane, kro, pipeline
from crdkeeper.core.importing.note import ImportNote, NotImportable
from crdkeeper.core.text import count

_OPEN, _UNREADABLE = 1, 2


@dataclass(slots=True)
class _Result:
    definitions: int = 0
    compositions: int = 0
    manifests: list[dict[str, Any]] = field(default_factory=list)
    notes: list[tuple[ForeignComposite, ImportNote]] = field(default_factory=list)
    problems: list[tuple[ForeignComposite, CompositeProblem]] = field(default_factory=list)
    unchecked: list[tuple[ForeignComposite, Unchecked]] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)


@click.command("import", short_help="Rewrite composite APIs of Crossplane and kro.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER|-...")
@format_option
def import_definitions(paths: tuple[str, ...], *, output: str) -> None:
    """Rewrite definitions and Compositions of Crossplane, and kro's ResourceGraphDefinitions, as crdkeeper's.

    A ResourceGraphDefinition becomes a CompositeResourceDefinition and a Composition. Of Crossplane's
    Compositions, patches and transforms are rewritten, and other functions are not. Manifests go to
    standard output. What has no counterpart or means something else goes to standard error, with the line in
    the old file: "decide" if it is for you to decide. Other objects are skipped. Comments are not copied.

    Exit codes: 0 if nothing is left to do, 1 if you must decide something or a new definition would be
    refused, 2 if something could not be read.
    """
    check_standard_input(paths)
    result = _import_all(paths)
    print_manifests(result.manifests, output)
    for old, note in result.notes[:MOST_PROBLEMS]:
        what = "decide" if note.remedy else "changed"
        line(f"{place(old.file, old.find(note.path.steps))}: {what}: {note.path}: {note.message}", err=True)
        if note.remedy:
            line(f"    {note.remedy}", err=True)
    print_rest(len(result.notes) - MOST_PROBLEMS, "note")
    for old, problem in result.problems[:MOST_PROBLEMS]:
        print_problem(place(old.file, old.find(problem.path.steps)), problem)
        line(f"    {problem.rule.remedy}", err=True)
    print_rest(len(result.problems) - MOST_PROBLEMS, "problem")
    print_unchecked(result.unchecked)
    print_failures(result.failed)
    decisions = sum(bool(note.remedy) for _, note in result.notes)
    errors = sum(problem.refused for _, problem in result.problems)
    imported = [count(result.compositions, "Composition")] if result.compositions else []
    if result.definitions or not imported:
        imported.insert(0, count(result.definitions, "definition"))
    line(
        f"{' and '.join(imported)} imported, {count(decisions, 'decision')} left to you, "
        f"{count(errors, 'error')}.",
        err=True,
    )
    if result.failed:
        raise SystemExit(_UNREADABLE)
    if decisions or errors:
        raise SystemExit(_OPEN)


def _import_all(paths: tuple[str, ...]) -> _Result:
    result = _Result()
    for each in read(paths):
        if isinstance(each, Failed):
            result.failed.append(each)
        elif isinstance(each, ForeignComposite):
            try:
                _import(each, result)
            except NotImportable as error:
                at = each.find(error.path.steps) if error.path is not None else each.position
                result.failed.append(Failed(each.file, at, str(error)))
    if not (result.manifests or result.failed):
        message = "contains no definition of Crossplane or kro"
        result.failed.append(Failed(", ".join(paths), Position(), message))
    return result


def _import(each: ForeignComposite, result: _Result) -> None:
    if each.value.get("kind") == pipeline.KIND:
        rewritten = pipeline.imported(each.value)
        result.compositions += 1
        result.manifests.append(rewritten.composition)
        result.notes += [(each, note) for note in rewritten.notes]
        return
    rewrite = kro.imported if each.value.get("kind") == kro.KIND else crossplane.imported
    found = rewrite(each.value)
    result.definitions += 1
    result.manifests.append(found.definition)
    if found.composition is not None:
        result.compositions += 1
        result.manifests.append(found.composition)
    result.notes += [(each, note) for note in found.notes]
    judged = with_server_errors(accept(found.definition))
    result.problems += [(each, problem) for problem in judged.problems]
    result.unchecked += [(each, left) for left in judged.unchecked]
    if judged.crd is not None and not judged.refused:
        result.notes += [(each, note) for note in _between_versions(judged.crd)]


def _between_versions(crd: dict[str, Any]) -> list[ImportNote]:
    """What the composer would refuse when it creates the CRD, unless something converts."""
    update = judge_update(crd, None, None)
    if not update.unconverted:
        return []
    fields = listed(
        [f"{each.place.version}: {each.place.field}: {each.message}" for each in update.unconverted]
    )
    return [
        ImportNote(
            root("spec").child("versions"),
            f"the composer refuses versions between which fields are lost: {fields}",
            f"Create a VersionConversion such as {update.proposal} Or set spec.breakingChanges to Allow.",
        )
    ]
