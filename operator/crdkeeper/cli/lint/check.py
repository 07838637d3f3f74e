"""Checks one CRD for `crdkeeper lint`: the API server's rules, the conventions, and what is to be ignored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation, decode
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, Step
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.cli.input.files import Definition
from crdkeeper.cli.input.ignore import Suppressions, of_annotation
from crdkeeper.cli.input.yamldocument import Position
from crdkeeper.cli.lint.config import Configuration
from crdkeeper.cli.lint.findings import Finding, Ignored, Result, Severity
from crdkeeper.core.lint import registry
from crdkeeper.core.lint.annotation import ANNOTATION
from crdkeeper.core.lint.check import check_conventions
from crdkeeper.core.lint.found import Found


@dataclass(frozen=True, slots=True)
class _Server:
    """Something that the API server's rules say, at its path."""

    path: Path

    @property
    def field(self) -> str:
        return str(self.path)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.path.steps

    @property
    def owner(self) -> tuple[Step, ...]:
        return self.path.steps


@dataclass(frozen=True, slots=True)
class _Raw:
    """A finding before the configuration and the suppressions are applied."""

    severity: Severity
    rule: rules.Rule
    message: str
    where: _Server | Found
    final: bool = False
    """Whether it is the API server's, and so not to be argued with."""


def check_definition(
    definition: Definition,
    configuration: Configuration,
    result: Result,
    *,
    everything: bool,
) -> None:
    """Adds what is to be said of one CRD; `everything` shows also what is only info."""
    result.checked += 1
    value = definition.value
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or "")
    marked = of_annotation(metadata, definition.find(("metadata", "annotations", ANNOTATION)))
    sources = (definition.comments, marked)
    shown_all = everything or configuration.all
    for raw in _findings(definition):
        severity = _configured(raw, configuration)
        ignored = _ignored(raw, definition, sources)
        if severity is None or (severity is Severity.INFO and not _is_shown(raw, configuration, shown_all)):
            result.hidden += severity is not None and ignored is None
            continue
        at = definition.find(raw.where.steps)
        finding = Finding(definition.file, at, severity, raw.rule, name, raw.where.field, raw.message)
        if ignored is not None:
            result.ignored.append(Ignored(finding, ignored))
        else:
            result.findings.append(finding)
    report_suppressions(marked, definition.file, name, configuration, result)
    duplicates, definition.document.duplicates = definition.document.duplicates, []
    for key, position in duplicates:
        message = f'key "{key}" is already set in the mapping'
        result.findings.append(
            Finding(definition.file, position, Severity.WARNING, rules.DUPLICATE_KEY, name, key, message)
        )


def report_suppressions(
    suppressions: Suppressions, file: str, name: str, configuration: Configuration, result: Result
) -> None:
    """Adds what is wrong with suppressions, once all findings that they are about are known."""

    def add(convention: registry.Convention, position: Position, message: str) -> None:
        severity = configuration.severities.get(convention.id, Severity(convention.severity))
        if severity is not None:
            result.findings.append(Finding(file, position, severity, convention, name, "", message))

    for position, message in suppressions.faults:
        add(registry.IGNORE_INVALID, position, message)
    for each in suppressions.unused:
        why = "the API server refuses it anyway" if each.refused else "there is no such finding here"
        add(registry.IGNORE_UNUSED, each.position, f"{each.id} is ignored, but {why}")


def _findings(definition: Definition) -> Iterator[_Raw]:
    document = definition.value if definition.is_manifest else _as_written(definition.value)
    report = check_creation(document)
    for violation in report.violations:
        at = _Server(violation.path)
        yield _Raw(Severity.ERROR, violation.rule, violation.message, at, final=True)
    for warning in report.warnings:
        yield _Raw(Severity.WARNING, warning.rule, warning.message, _Server(warning.path))
    for left in report.unchecked:
        yield _Raw(Severity.UNCHECKED, left.rule, left.reason, _Server(left.path), final=True)
    crd = decode(document, Report())
    if crd is None:
        return
    for found in check_conventions(crd, definition.value if definition.is_manifest else None):
        yield _Raw(Severity(found.severity), found.convention, found.message, found)


_SERVERS_OWN = frozenset(
    (
        *("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"),
        *("finalizers", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"),
    )
)


def _as_written(value: Mapping[str, Any]) -> dict[str, Any]:
    """A CRD of a cluster without what the API server has added."""
    metadata = value.get("metadata") or {}
    written = {key: each for key, each in metadata.items() if key not in _SERVERS_OWN}
    return {**{key: each for key, each in value.items() if key != "status"}, "metadata": written}


def _configured(raw: _Raw, configuration: Configuration) -> Severity | None:
    if raw.final:
        return raw.severity
    return configuration.severities.get(raw.rule.id, raw.severity)


def _is_shown(raw: _Raw, configuration: Configuration, everything: bool) -> bool:
    return everything or configuration.severities.get(raw.rule.id) is Severity.INFO


def _ignored(raw: _Raw, definition: Definition, sources: tuple[Suppressions, ...]) -> str | None:
    """The reason why a finding is to be ignored, if it is."""
    for source in sources:
        if raw.rule.id not in source.by_id:
            continue
        lines = {definition.find(raw.where.steps).line, definition.find(raw.where.owner).line}
        found = source.find(raw.rule.id, raw.where.field, lines)
        if found is None:
            continue
        if raw.final:
            found.refused = True
            continue
        found.used = True
        return found.reason
    return None
