"""The results of `crdkeeper lint`: findings with their places."""

from dataclasses import dataclass, field
from typing import Any

from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.cli.input.files import Failed, Skipped
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.lint.severity import Severity


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding about one field of a CRD."""

    file: str
    """Empty for a CRD of a live cluster."""
    position: Position
    severity: Severity
    rule: Rule
    definition: str
    field: str
    message: str
    behind: bool = False
    """Whether the API server reports it only once other errors of the CRD are fixed."""
    versions: tuple[str, ...] = ()
    """All versions in which it was found, if several."""
    fields: tuple[str, ...] = ()
    """All fields that it is about, without version, if several."""
    path: str = ""
    """The field without version."""
    elsewhere: str = ""
    """Where else it was found, for people."""
    mistake: str = ""
    """What it has in common with findings of another message that one mistake causes."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All fields that it is about, without version."""
        return self.fields or (self.path or self.field,)

    @property
    def place(self) -> str:
        """The line in the file, or the CRD in the cluster."""
        if not self.file:
            return self.definition
        return f"{self.file}:{self.position.line}:{self.position.column}"

    def to_object(self) -> dict[str, Any]:
        """The finding as JSON."""
        at = (
            {"file": self.file, "line": self.position.line, "column": self.position.column}
            if self.file
            else {}
        )
        return {
            **at,
            "severity": self.severity.value,
            "id": self.rule.id,
            "definition": self.definition,
            "field": self.field,
            "message": self.message,
            **({"versions": list(self.versions)} if self.versions else {}),
            **({"fields": list(self.fields)} if self.fields else {}),
            **({"behind": True} if self.behind else {}),
            "hint": self.rule.remedy,
        }


@dataclass(frozen=True, slots=True)
class Ignored:
    """A finding that its author has reviewed and accepted."""

    finding: LintFinding
    reason: str

    def to_object(self) -> dict[str, Any]:
        """The finding as JSON, with the reason."""
        return {**self.finding.to_object(), "reason": self.reason}


@dataclass(slots=True)
class LintResult:
    """The results of a run."""

    checked: int = 0
    findings: list[LintFinding] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """What the cluster lacks: CRDs that were named, or any."""
    known: list[LintFinding] = field(default_factory=list)
    """Findings in the baseline, which are not reported."""
    stale: list[tuple[str, str, str]] = field(default_factory=list)
    """Entries of the baseline for which nothing was found: the CRD, the rule and the field."""
    unreported: list[LintFinding] = field(default_factory=list)
    """Findings that are hidden or not selected."""
    keeps_unreported: bool = False
    """Whether to collect `unreported`, which a baseline needs."""
    definitions: set[str] = field(default_factory=set)
    """The names of the CRDs that were checked."""
    hidden: int = 0
    """How many findings of severity info are not reported."""

    def of(self, severity: Severity) -> list[LintFinding]:
        """The findings of that severity."""
        return [each for each in self.findings if each.severity is severity]

    @property
    def errors(self) -> list[LintFinding]:
        """What the API server rejects, or what cannot work."""
        return self.of(Severity.ERROR)
