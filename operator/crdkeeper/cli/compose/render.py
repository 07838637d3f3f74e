"""`crdkeeper compose render`: the objects of a composite, without a cluster."""

from collections.abc import Sequence
from typing import Any, Final

import click

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.cli.compose.output import (
    MOST_PROBLEMS,
    format_option,
    place,
    print_failures,
    print_manifests,
    print_rest,
)
from crdkeeper.cli.compose.renderinput import RenderInput, read_input
from crdkeeper.cli.input.files import Skipped, WrittenObject, check_standard_input
from crdkeeper.cli.output.printing import line
from crdkeeper.core.templates.admission import admit_composite, admit_composition
from crdkeeper.core.templates.compilation import compile_composition
from crdkeeper.core.templates.compiled import CompilationResult, CompiledComposition
from crdkeeper.core.templates.kinds import TargetKind
from crdkeeper.core.templates.mappedstatus import mapped_status
from crdkeeper.core.templates.observed import ObservedInFiles
from crdkeeper.core.templates.problem import TemplateProblem
from crdkeeper.core.templates.rendered import Rendering, ResourceState
from crdkeeper.core.templates.rendering import render as rendering_of
from crdkeeper.core.text import count

_REFUSED, _UNREADABLE = 1, 2
_SAID: Final = {
    ResourceState.WAITING: "waits for ",
    ResourceState.PENDING: "includeWhen waits for ",
    ResourceState.EXCLUDED: "",
    ResourceState.FAILED: "",
}


@click.command(short_help="Print the objects that a composite stands for.")
@click.option(
    "--filename",
    "-f",
    "filenames",
    required=True,
    multiple=True,
    metavar="FILE|FOLDER|-",
    help="Has a Composition, the CompositeResourceDefinition (or its CRD), and composites. [may be repeated]",
)
@click.option(
    "--schemas",
    multiple=True,
    metavar="FILE|FOLDER",
    help="CRDs, and OpenAPI v3 documents of the API server, to check templates by. [may be repeated]",
)
@click.option(
    "--observed",
    multiple=True,
    metavar="FILE|FOLDER",
    help="Objects that exist, whose fields expressions can read. [may be repeated]",
)
@click.option("--status", is_flag=True, help="Print each composite with its status before its objects.")
@format_option
def render(
    filenames: tuple[str, ...],
    *,
    schemas: tuple[str, ...],
    observed: tuple[str, ...],
    status: bool,
    output: str,
) -> None:
    """Print the objects that composites stand for by a Composition, in the order in which they are applied.

    The Composition is checked as a whole, also without a composite. Errors, and what waits, is excluded or is
    not checked, go to standard error, with the line in the file.

    \b
    To check templates of built-in kinds, save the API server's schemas:
      kubectl get --raw /openapi/v3/apis/apps/v1 > apps.json

    Exit codes: 0 if all composites are rendered, though parts may wait; 1 if the Composition or a composite
    has an error; 2 if something could not be read.
    """
    check_standard_input((*filenames, *schemas, *observed))
    given = read_input(filenames, schemas, observed)
    print_failures(given.failed)
    if given.failed or given.composition is None:
        raise SystemExit(_UNREADABLE)
    for each in given.unused[:MOST_PROBLEMS]:
        line(
            f"{place(each.file, each.position)}: not used: no {given.kind}, and nothing else to read",
            err=True,
        )
    print_rest(len(given.unused) - MOST_PROBLEMS, "unused object")
    compiled = _compiled(given, given.composition)
    if compiled is None:
        raise SystemExit(_REFUSED)
    manifests: list[dict[str, Any]] = []
    refused = False
    for each in given.composites:
        rendering = _rendered(given, given.composition, compiled, each)
        if rendering is None:
            refused = True
            continue
        made, mapped = rendering
        refused = refused or made.failed
        if status:
            manifests.append({**each.value, "status": mapped})
        manifests += made.objects
    print_manifests(manifests, output)
    if not given.composites:
        line(f"No {given.kind} is given: the Composition is valid, and nothing is rendered.", err=True)
    if refused:
        raise SystemExit(_REFUSED)


def _compiled(given: RenderInput, written: WrittenObject) -> CompiledComposition | None:
    spec, problems = admit_composition(written.value)
    if spec is None:
        _print_problems(written, problems)
        return None
    result: CompilationResult = compile_composition(spec, given.target, given.kinds)
    _print_problems(written, result.problems)
    for each in result.unverified:
        line(f"{_at(written, each.path.steps)}: not checked: {each.path}: {each.reason}", err=True)
    if result.unverified:
        line("Give their CRDs, or OpenAPI documents of the API server, with --schemas.", err=True)
    return None if result.problems else result.composition


def _rendered(
    given: RenderInput, written: WrittenObject, compiled: CompiledComposition, composite: Skipped
) -> tuple[Rendering, dict[str, Any]] | None:
    """The rendering of a composite, and its status; None if the composite has an error."""
    target: TargetKind = given.target
    assert target.schema is not None
    value, problems = admit_composite(composite.value, target.schema)
    at = place(composite.file, composite.position)
    name = _name(composite.value)
    for each in problems[:MOST_PROBLEMS]:
        line(f"{at}: error: {name or f'a {given.kind}'}: {each}", err=True)
        _print_hint(each.hint)
    if problems:
        return None
    if name is None:
        line(f"{at}: error: a {given.kind}: metadata.name: must be set to render the composite", err=True)
        return None
    if target.namespaced and not value["metadata"].get("namespace"):
        value["metadata"]["namespace"] = "default"
    made = rendering_of(compiled, value, ObservedInFiles(external=given.observed))
    for resource in made.resources:
        if resource.state in _SAID:
            where = _at(written, resource.path.steps if resource.path is not None else ())
            severity = "error" if resource.state is ResourceState.FAILED else resource.state.value
            known = resource.state is ResourceState.FAILED and resource.column is not None
            column = f"column {resource.column}: " if known else ""
            text = f"{_SAID[resource.state]}{resource.why}"
            line(f"{where}: {severity}: {name}: {resource.name}: {column}{text}", err=True)
            _print_hint(resource.hint)
        elif resource.unready is not None:
            where = _at(written, (*resource.path.steps, "readyWhen") if resource.path is not None else ())
            line(f"{where}: not ready: {name}: {resource.name}: {resource.unready}", err=True)
    # Without the defaults of a status: the composer has not written it.
    value["status"] = composite.value.get("status", {})
    mapped = mapped_status(made, value, ObjectSchema.of(target.schema))
    for gap in mapped.gaps[:MOST_PROBLEMS]:
        line(f"{_at(written, gap.path.steps)}: no value: {name}: {gap.path}: {gap.text}", err=True)
    print_rest(len(mapped.gaps) - MOST_PROBLEMS, "missing value")
    return made, mapped.status


def _name(value: Any) -> str | None:
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return None if name is None else str(name)


def _at(written: WrittenObject, steps: tuple[str | int, ...]) -> str:
    return place(written.file, written.find(steps))


def _print_problems(written: WrittenObject, problems: Sequence[TemplateProblem]) -> None:
    for each in problems[:MOST_PROBLEMS]:
        line(f"{_at(written, each.path.steps)}: error: {each}", err=True)
        _print_hint(each.hint)
    print_rest(len(problems) - MOST_PROBLEMS, "problem")
    if problems:
        line(f"{count(len(problems), 'error')} in the Composition.", err=True)


def _print_hint(hint: str) -> None:
    if hint:
        line(f"    hint: {hint}", err=True)
