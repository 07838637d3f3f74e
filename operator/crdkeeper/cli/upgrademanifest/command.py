"""`crdkeeper upgrade-manifest`: CRDs of v1beta1 rewritten for v1, with the decisions left to a person."""

from dataclasses import dataclass, field, replace
from typing import Any

import click

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.cli.input.files import (
    Failed,
    LocatedDefinition,
    Skipped,
    check_standard_input,
    read,
    summary,
)
from crdkeeper.cli.output.printing import line, lines, print_json, print_yaml
from crdkeeper.core.text import count
from crdkeeper.core.upgrade.manifest import NotV1beta1, Upgraded, upgrade
from crdkeeper.core.upgrade.v1form import NEW_API_VERSION

_OPEN, _UNREADABLE = 1, 2


@dataclass(slots=True)
class _Result:
    manifests: list[dict[str, Any]] = field(default_factory=list)
    upgraded: list[tuple[LocatedDefinition, Upgraded]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """Place and reason of CRDs that are not upgraded, and of what cannot be read."""
    skipped: list[Skipped] = field(default_factory=list)
    failed: bool = False


@click.command("upgrade-manifest", short_help="Rewrite v1beta1 CRDs for v1.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER|-...")
@click.option(
    "--quiet", "-q", is_flag=True, help="Show only the decisions left to you, not the changes made."
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(("yaml", "json")),
    default="yaml",
    show_default=True,
    help="yaml: manifests on standard output, notes on standard error. json: all in one object.",
)
def upgrade_manifest(paths: tuple[str, ...], *, quiet: bool, output: str) -> None:
    """Rewrite apiextensions.k8s.io/v1beta1 CRDs for v1, the only version served since Kubernetes 1.22.

    The CRD keeps its meaning: what all versions shared is copied to each, and unknown fields that were
    preserved still are. Types that a structural schema requires are added where they are certain. Decisions
    left to you are listed with their line in the old file. Comments are not copied.

    Exit codes: 0 if nothing is left to do, 1 if you must decide something or the API server would still
    refuse a manifest, 2 if something could not be read.
    """
    check_standard_input(paths)
    result = _upgrade_all(paths)
    if output == "json":
        print_json(_to_object(result))
    else:
        _print(result, quiet=quiet)
    if result.failed or not result.manifests:
        raise SystemExit(_UNREADABLE)
    if any(each.decisions or each.violations for _, each in result.upgraded):
        raise SystemExit(_OPEN)


def _upgrade_all(paths: tuple[str, ...]) -> _Result:
    result = _Result()
    for each in read(paths):
        place = (
            f"{each.file}:{each.find(()).line if isinstance(each, LocatedDefinition) else each.position.line}"
        )
        if isinstance(each, Failed):
            result.failed = True
            result.left_out.append((place, f"unreadable: {each.message}"))
        elif isinstance(each, Skipped):
            result.skipped.append(replace(each, value=None))
        elif each.composite is not None:
            result.skipped.append(Skipped(each.file, each.find(()), "a CompositeResourceDefinition"))
        elif each.old is None and each.value.get("apiVersion") == NEW_API_VERSION:
            result.manifests.append(each.value)
            result.left_out.append((place, f"unchanged: already {NEW_API_VERSION}"))
        else:
            try:
                done = upgrade(each.written)
            except NotV1beta1 as error:
                result.failed = True
                result.left_out.append((place, f"unreadable: {error}"))
            else:
                result.manifests.append(done.definition)
                result.upgraded.append((each, done))
    return result


def _print(result: _Result, *, quiet: bool) -> None:
    if result.manifests:
        print_yaml(*result.manifests, width=110)
    for place, message in result.left_out:
        line(f"{place}: {message}", err=True)
    if result.skipped:
        line(summary(result.skipped), err=True)
    for definition, done in result.upgraded:
        for note in done.notes:
            if quiet and not note.topic.open:
                continue
            what = "decide" if note.topic.open else "changed"
            place = _place(definition, note.path)
            line(f"{place}: {what}[{note.topic.id}]: {note.path}: {note.message}", err=True)
            if note.topic.open:
                lines((f"    {note.topic.why}", f"    {note.topic.remedy}"), err=True)
        for violation in done.violations:
            what = f"still refused[{violation.rule.id}]: {violation.path}: {violation.message}"
            lines((f"{definition.file}: {what}", f"    {violation.rule.remedy}"), err=True)
    decisions = sum(len(done.decisions) for _, done in result.upgraded)
    refused = sum(bool(done.violations) for _, done in result.upgraded)
    line(
        f"{count(len(result.upgraded), 'CRD')} upgraded, {count(decisions, 'decision')} left to you"
        + (f", {count(refused, 'CRD')} that the API server would still refuse." if refused else "."),
        err=True,
    )


def _place(definition: LocatedDefinition, path: Path) -> str:
    position = definition.find_written(path.steps)
    return f"{definition.file}:{position.line}:{position.column}"


def _skipped(each: Skipped) -> tuple[str, str]:
    return f"{each.file}:{each.position.line}", f"skipped: {each.what}"


def _to_object(result: _Result) -> dict[str, Any]:
    notes = [(definition, note) for definition, done in result.upgraded for note in done.notes]
    listed = [
        {
            "file": definition.file,
            "line": definition.find_written(note.path.steps).line,
            "column": definition.find_written(note.path.steps).column,
            "id": note.topic.id,
            "field": str(note.path),
            "message": note.message,
            "why": note.topic.why,
            "remedy": note.topic.remedy,
        }
        for definition, note in notes
    ]
    return {
        "manifests": result.manifests,
        "changes": [each for each in listed if not each["remedy"]],
        "decisions": [each for each in listed if each["remedy"]],
        "refused": [
            {
                "file": definition.file,
                "id": each.rule.id,
                "field": str(each.path),
                "message": each.message,
                "remedy": each.rule.remedy,
            }
            for definition, done in result.upgraded
            for each in done.violations
        ],
        "leftOut": [
            {"place": place, "message": message}
            for place, message in (*result.left_out, *map(_skipped, result.skipped))
        ],
    }
