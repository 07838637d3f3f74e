"""`crdkeeper lint`: what the API server would say of CRDs, offline, at the line where it is said."""

import click

from crdkeeper.cli.lintinput import STDIN, Definition, Failed, Skipped, read
from crdkeeper.cli.lintoutput import PRINTERS, Finding, Result, Severity
from crdkeeper.cli.yamldocument import Position
from crdkeeper.core.definition.create import check_creation
from crdkeeper.core.schema import rules
from crdkeeper.core.schema.fieldpath import Path

_FINDINGS, _UNREADABLE = 1, 2


@click.command(short_help="Check CRDs in files as the API server does.")
@click.argument("paths", nargs=-1, metavar="[FILE|FOLDER|-]...")
@click.option(
    "--filename",
    "-f",
    "filenames",
    multiple=True,
    metavar="FILE|FOLDER|-",
    help="A file, a folder with all YAML and JSON files below it, or - for standard input.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(tuple(PRINTERS)),
    default="text",
    show_default=True,
    help="The format.",
)
def lint(paths: tuple[str, ...], *, filenames: tuple[str, ...], output: str) -> None:
    """Check CRDs in files as the API server does when it creates them.

    Each error is in the API server's words, at its line, and says what to do. What cannot be decided offline,
    such as whether an expression compiles, is counted as not checked.

    Exits with 0 if there are no errors, 1 if there are, 2 if something could not be read.
    """
    names = (*filenames, *paths)
    if not names:
        raise click.UsageError("name files or folders, or - for standard input")
    if names.count(STDIN) > 1:
        raise click.UsageError("standard input can only be read once")
    result = check(names)
    PRINTERS[output](result)
    if result.failed or not result.checked:
        raise SystemExit(_UNREADABLE)
    if result.errors:
        raise SystemExit(_FINDINGS)


def check(names: tuple[str, ...]) -> Result:
    """Reads and checks everything."""
    result = Result()
    for each in read(names):
        if isinstance(each, Definition):
            _check(each, result)
        elif isinstance(each, Skipped):
            result.skipped.append(each)
        else:
            result.failed.append(each)
    if not result.checked and not result.failed:
        what = ", ".join(names)
        result.failed.append(Failed(what, Position(), "no CustomResourceDefinition in it"))
    result.findings.sort(key=lambda each: (each.file, each.position.line, each.position.column, each.field))
    return result


def _check(definition: Definition, result: Result) -> None:
    report = check_creation(definition.value)
    result.checked += 1
    metadata = definition.value.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""

    def add(severity: Severity, rule: rules.Rule, path: Path, message: str) -> None:
        at = definition.find(path.steps)
        result.findings.append(Finding(definition.file, at, severity, rule, name, str(path), message))

    for violation in report.violations:
        add(Severity.ERROR, violation.rule, violation.path, violation.message)
    for warning in report.warnings:
        add(Severity.WARNING, warning.rule, warning.path, warning.message)
    for left in report.unchecked:
        add(Severity.UNCHECKED, left.rule, left.path, left.reason)
    duplicates, definition.document.duplicates = definition.document.duplicates, []
    for key, position in duplicates:
        message = f'key "{key}" is already set in the mapping'
        result.findings.append(
            Finding(definition.file, position, Severity.WARNING, rules.DUPLICATE_KEY, name, key, message)
        )
