"""Checks one CRD for `crdkeeper lint`: its findings with their lines, by configuration and comments."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.cli.input.files import LocatedDefinition
from crdkeeper.cli.input.ignore import Suppressions
from crdkeeper.cli.lint.config import Configuration
from crdkeeper.cli.lint.findings import Ignored, LintFinding, LintResult
from crdkeeper.cli.lint.selection import Level
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.lint.annotation import unused
from crdkeeper.core.lint.authored import authored, of_composite
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions.columns import OF_SAMPLES
from crdkeeper.core.lint.conventions.definition import NAMES_CONFLICT
from crdkeeper.core.lint.conventions.suppressions import IGNORE_INVALID, IGNORE_UNUSED
from crdkeeper.core.lint.found import AtPath, Found, Steps
from crdkeeper.core.lint.linter import lint, lint_samples
from crdkeeper.core.lint.merging import merge
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.upgrade.v1form import REMOVED

_OF_OTHER_DOCUMENTS: Final = OF_SAMPLES | {NAMES_CONFLICT.id}
"""What is found only if a run reads other documents as well, so that no comment about it is superfluous."""


def check_definition(
    definition: LocatedDefinition,
    configuration: Configuration,
    result: LintResult,
    *,
    everything: bool,
    more: Iterable[Found] = (),
) -> None:
    """Add the findings for one CRD, and `more`; `everything` also shows those of severity info."""
    result.checked += 1
    result.definitions.add(_name(definition))
    problems = definition.composite.problems if definition.composite is not None else ()
    found = lint(
        definition.value,
        live=not definition.is_manifest,
        forbidden=configuration.forbid,
        more=[*of_composite(problems), *more, *_duplicates(definition)],
    )
    if definition.old is not None:
        found = [_removed_version(), *map(_behind, found)]
    if definition.composite is not None:
        found = authored(definition.origin, found)
    add_found(found, definition, configuration, result, everything=everything)


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A place with its position: of two equal keys a document has one, and documents are not kept."""

    field: str
    position: Position
    version: str = ""
    steps: Steps = ()

    @property
    def path(self) -> str:
        """The field; it has no version."""
        return self.field


def _duplicates(definition: LocatedDefinition) -> Iterator[Found]:
    """The keys that occur twice, once for all CRDs of a document."""
    duplicates, definition.document.duplicates = definition.document.duplicates, []
    for key, position in duplicates:
        message = f'key "{key}" is already set in the mapping'
        yield Found(rules.DUPLICATE_KEY, KnownPlace(key, position), (), message, Severity.WARNING)


def _position(found: Found, steps: Steps, definition: LocatedDefinition) -> Position:
    """The place of a finding in the file; `steps` lead there."""
    return found.where.position if isinstance(found.where, KnownPlace) else definition.find(steps)


def _removed_version() -> Found:
    at = AtPath(root("apiVersion"))
    return Found(rules.API_VERSION, at, (), REMOVED, Severity.ERROR, final=True)


def _behind(found: Found) -> Found:
    """The API server rejects a manifest of v1beta1 before it reads any field."""
    return found._replace(behind=True) if found.final and found.severity is Severity.ERROR else found


def check_samples(
    definition: LocatedDefinition,
    objects: Sequence[Mapping[str, Any]],
    configuration: Configuration,
    result: LintResult,
    *,
    everything: bool,
    steps: int,
) -> None:
    """Add findings about the cells of a CRD's columns for objects of its kind; `steps`: see lint_samples."""
    found = lint_samples(definition.value, objects, steps)
    add_found(found, definition, configuration, result, everything=everything)


def _name(definition: LocatedDefinition) -> str:
    metadata = definition.value.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def add_found(
    several: Sequence[Found],
    definition: LocatedDefinition,
    configuration: Configuration,
    result: LintResult,
    *,
    everything: bool,
) -> None:
    """Add findings, unless they are ignored or hidden."""
    name = _name(definition)
    everything = everything or configuration.all
    # Comments belong to lines, and each version has its own; equal findings are merged after that.
    for found in merge(_with_comment(each, definition) for each in several):
        severity = _configured(found, configuration)
        shown = severity is not None and _is_shown(found, severity, configuration, everything=everything)
        if not shown:
            selected = configuration.rules.level(found.rule.id) > Level.NOTHING
            result.hidden += severity is not None and selected and not found.ignored
            # A large CRD has tens of thousands of these; naming and locating them would take seconds.
            if not result.keeps_unreported:
                continue
        finding = LintFinding(
            definition.file,
            _position(found, found.steps, definition),
            severity or found.severity,
            found.rule,
            name,
            found.field,
            found.message,
            found.behind,
            found.versions,
            found.fields,
            found.path,
            found.elsewhere,
            found.mistake,
        )
        if not shown:
            result.unreported.append(finding)
        elif found.ignored:
            result.ignored.append(Ignored(finding, found.ignored))
        else:
            result.findings.append(finding)


def report_suppressions(
    suppressions: Suppressions, file: str, configuration: Configuration, result: LintResult
) -> None:
    """Add the errors in a file's comments, once all findings that they are about are known."""

    def add(convention: Convention, position: Position, message: str) -> None:
        severity = configuration.severities.get(convention.id, convention.severity)
        if severity is not None and configuration.rules.shows(convention.id, severity, everything=True):
            result.findings.append(LintFinding(file, position, severity, convention, "", "", message))

    for position, message in suppressions.faults:
        add(IGNORE_INVALID, position, message)
    for each in suppressions.unused:
        if each.id not in _OF_OTHER_DOCUMENTS:
            add(IGNORE_UNUSED, each.position, unused(each.id, refused=each.refused))


def _configured(found: Found, configuration: Configuration) -> Severity | None:
    if found.final:
        return found.severity
    return configuration.severities.get(found.rule.id, found.severity)


def _is_shown(found: Found, severity: Severity, configuration: Configuration, *, everything: bool) -> bool:
    if found.final:
        return True
    # Requested by the configuration.
    wanted = everything or configuration.severities.get(found.rule.id) is Severity.INFO
    return configuration.rules.shows(found.rule.id, severity, everything=wanted)


def _with_comment(found: Found, definition: LocatedDefinition) -> Found:
    ignored = _ignored(found, definition)
    return found._replace(ignored=ignored) if ignored != found.ignored else found


def _ignored(found: Found, definition: LocatedDefinition) -> str:
    """The reason why a finding is ignored; empty if it is not."""
    comments = definition.comments
    if found.rule.id in comments.ids:
        lines = {_position(found, each, definition).line for each in (found.steps, found.owner)}
        comment = comments.find(found.rule.id, lines)
        if comment is not None and found.final:
            comment.refused = True
        elif comment is not None:
            comment.used = True
            return comment.reason
    return found.ignored
