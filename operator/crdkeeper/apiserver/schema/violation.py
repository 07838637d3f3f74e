"""What is said of a field: a violation in the API server's words, or what was left unchecked.

The server's words are kept because they are what users meet in logs and search for.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.apiserver.golang.text import displayed, json_text, quote
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.rules import Rule

OMITTED: Final = object()
"""In place of a bad value that the server prints as a dump of its own data structures."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One error of one field."""

    rule: Rule
    path: Path
    kind: str
    """The first words of the server's message: `Required value`, `Invalid value`, `Forbidden`…"""
    value: str | None
    """The bad value as the server prints it; None where the kind shows none."""
    detail: str

    @property
    def message(self) -> str:
        """The server's message without the path."""
        return ": ".join(part for part in (self.kind, self.value, self.detail) if part)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that only the API server can make, or that is not covered here: neither passed nor failed."""

    rule: Rule
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Warned:
    """Accepted by the server, but hardly what the author meant."""

    rule: Rule
    path: Path
    message: str


@dataclass(slots=True)
class Report:
    """All that is said of one CRD, in the order of the checks."""

    violations: list[Violation] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    behind: list[Violation] = field(default_factory=list)
    """What the server says only once the violations are fixed."""

    def required(self, rule: Rule, path: Path, detail: str = "") -> None:
        """A field is missing."""
        self.violations.append(Violation(rule, path, "Required value", None, detail))

    def invalid(self, rule: Rule, path: Path, value: Any, detail: str) -> None:
        """A field has a bad value."""
        shown = None if value is OMITTED else displayed(value)
        self.violations.append(Violation(rule, path, "Invalid value", shown, detail))

    def invalid_as_json(self, rule: Rule, path: Path, value: Any, detail: str) -> None:
        """A field has a bad value, of a type that the server prints as JSON also where it is a text."""
        self.violations.append(Violation(rule, path, "Invalid value", json_text(value), detail))

    def forbidden(self, rule: Rule, path: Path, detail: str) -> None:
        """A field must not be there."""
        self.violations.append(Violation(rule, path, "Forbidden", None, detail))

    def not_supported(
        self, rule: Rule, path: Path, value: str, accepted: tuple[str, ...], *, as_json: bool = False
    ) -> None:
        """A field's value is none of those that exist."""
        detail = "supported values: " + ", ".join(map(quote, accepted))
        shown = json_text(value) if as_json else quote(value)
        self.violations.append(Violation(rule, path, "Unsupported value", shown, detail))

    def duplicate(self, rule: Rule, path: Path, value: Any) -> None:
        """A value is there twice."""
        self.violations.append(Violation(rule, path, "Duplicate value", displayed(value), ""))

    def too_many(self, rule: Rule, path: Path, count: int, limit: int) -> None:
        """A list is too long."""
        self.violations.append(
            Violation(rule, path, "Too many", str(count), f"must have at most {limit} items")
        )

    def too_long(self, rule: Rule, path: Path, limit: int) -> None:
        """A text is too long."""
        self.violations.append(Violation(rule, path, "Too long", None, f"may not be more than {limit} bytes"))

    def conflict(self, rule: Rule, path: Path, detail: str) -> None:
        """The object at the server is another one than the request means."""
        self.violations.append(Violation(rule, path, "Conflict", None, detail))

    def leave(self, rule: Rule, path: Path, reason: str) -> None:
        """A check is left to the API server."""
        self.unchecked.append(Unchecked(rule, path, reason))

    def warn(self, rule: Rule, path: Path, message: str) -> None:
        """Something is accepted, but hardly meant."""
        self.warnings.append(Warned(rule, path, message))
