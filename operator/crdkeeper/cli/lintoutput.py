"""How the findings of `crdkeeper lint` are printed: for people, for programs, and for code hosts (SARIF)."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import orjson

from crdkeeper import __version__
from crdkeeper.cli.lintinput import Failed, Skipped
from crdkeeper.cli.yamldocument import Position
from crdkeeper.core.schema.rules import Rule

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_DOCUMENTATION = "docs/lint.md"
_SHOWN = 400


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    UNCHECKED = "unchecked"
    """Only the API server can tell."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to say of one field of a CRD."""

    file: str
    position: Position
    severity: Severity
    rule: Rule
    definition: str
    field: str
    message: str

    def to_object(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {
            "file": self.file,
            "line": self.position.line,
            "column": self.position.column,
            "severity": self.severity.value,
            "id": self.rule.id,
            "definition": self.definition,
            "field": self.field,
            "message": self.message,
            "hint": self.rule.remedy,
        }


@dataclass(slots=True)
class Result:
    """All that a run found."""

    checked: int = 0
    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)

    def of(self, severity: Severity) -> list[Finding]:
        """The findings of that severity."""
        return [each for each in self.findings if each.severity is severity]

    @property
    def errors(self) -> list[Finding]:
        """What the API server refuses."""
        return self.of(Severity.ERROR)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _print_text(result: Result) -> None:
    for each in result.findings:
        if each.severity is Severity.UNCHECKED:
            continue
        place = f"{each.file}:{each.position.line}:{each.position.column}"
        message = each.message if len(each.message) <= _SHOWN else each.message[:_SHOWN] + "…"
        click.echo(f"{place}: {each.severity.value}[{each.rule.id}]: {each.field}: {message}")
        click.echo(f"    hint: {each.rule.remedy}")
    _print_notes(result)
    errors, warnings = len(result.errors), len(result.of(Severity.WARNING))
    click.echo(
        f"{_plural(result.checked, 'CRD')}: {_plural(errors, 'error')}, {_plural(warnings, 'warning')}.",
        err=True,
    )


def _print_notes(result: Result) -> None:
    for skip in result.skipped:
        click.echo(f"{skip.file}:{skip.position.line}: skipped: {skip.what}", err=True)
    for failure in result.failed:
        place = f"{failure.file}:{failure.position.line}:{failure.position.column}"
        click.echo(f"{place}: unreadable: {failure.message}", err=True)
    unchecked = result.of(Severity.UNCHECKED)
    if not unchecked:
        return
    what = ", ".join(f"{count:,} {id}" for id, count in _counts(unchecked).items())
    definitions = len({(each.file, each.definition) for each in unchecked})
    click.echo(
        f"Not checked, neither passed nor failed: {what}, in {_plural(definitions, 'CRD')} "
        "(-o json lists them; kubectl create --dry-run=server decides).",
        err=True,
    )


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    return dict(sorted(Counter(each.rule.id for each in findings).items()))


def _print_json(result: Result) -> None:
    unchecked = result.of(Severity.UNCHECKED)
    document = {
        "checked": result.checked,
        "findings": [each.to_object() for each in result.findings if each.severity is not Severity.UNCHECKED],
        "unchecked": {
            "counts": _counts(unchecked),
            "items": [each.to_object() for each in unchecked],
        },
        "skipped": [
            {"file": each.file, "line": each.position.line, "what": each.what} for each in result.skipped
        ],
        "unreadable": [
            {
                "file": each.file,
                "line": each.position.line,
                "column": each.position.column,
                "message": each.message,
            }
            for each in result.failed
        ],
    }
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.UNCHECKED: "note"}


def _print_sarif(result: Result) -> None:
    rules = {each.rule.id: each.rule for each in result.findings}
    run = {
        "tool": {
            "driver": {
                "name": "crdkeeper",
                "version": __version__,
                "rules": [_sarif_rule(rules[id]) for id in sorted(rules)],
            }
        },
        "results": [_sarif_result(each) for each in result.findings],
        "invocations": [
            {
                "executionSuccessful": not result.failed,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": each.message},
                        "locations": [_location(each.file, each.position)],
                    }
                    for each in result.failed
                ],
            }
        ],
    }
    document = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.why},
        "help": {"text": f"{rule.remedy} See {_DOCUMENTATION}#{rule.id}."},
    }


def _sarif_result(finding: Finding) -> dict[str, Any]:
    return {
        "ruleId": finding.rule.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.field}: {finding.message}\n{finding.rule.remedy}"},
        "locations": [_location(finding.file, finding.position)],
    }


def _location(file: str, position: Position) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(Path(file).as_posix())},
            "region": {"startLine": position.line, "startColumn": position.column},
        }
    }


PRINTERS: dict[str, Callable[[Result], None]] = {
    "text": _print_text,
    "json": _print_json,
    "sarif": _print_sarif,
}
