"""The result of checking a field: a violation with the API server's message, or an unchecked rule.

The server's messages are kept because users find them in logs and search for them.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.apiserver.golang.text import json_text, quote
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.quotes import Quotes
from crdkeeper.apiserver.schema.rules import Rule

OMITTED: Final = object()
"""Replaces an invalid value that the server prints as a dump of its own data structures."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One error of one field."""

    rule: Rule
    path: Path
    kind: str
    """The first words of the server's message: `Required value`, `Invalid value`, `Forbidden`…"""
    value: str | None
    """The invalid value as the server prints it; None if the kind shows none."""
    detail: str

    @property
    def message(self) -> str:
        """The server's message without the path."""
        return ": ".join(part for part in (self.kind, self.value, self.detail) if part)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that only the API server can make, or that is not implemented: neither passed nor failed."""

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
    """All results for one CRD, in the order of the checks."""

    violations: list[Violation] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    behind: list[Violation] = field(default_factory=list)
    """What the server reports only once the violations are fixed."""
    quotes: Quotes = field(default_factory=Quotes, compare=False, repr=False)

    def required(self, rule: Rule, path: Path, detail: str = "") -> None:
        """Report a missing field."""
        self.violations.append(Violation(rule, path, "Required value", None, detail))

    def invalid(self, rule: Rule, path: Path, value: Any, detail: str) -> None:
        """Report an invalid value."""
        shown = None if value is OMITTED else self.quotes.value(value)
        self.violations.append(Violation(rule, path, "Invalid value", shown, detail))

    def invalid_as_json(self, rule: Rule, path: Path, value: Any, detail: str) -> None:
        """Report an invalid value of a type that the server prints as JSON, even if it is a string."""
        shown = self.quotes.text(json_text(value))
        self.violations.append(Violation(rule, path, "Invalid value", shown, detail))

    def forbidden(self, rule: Rule, path: Path, detail: str) -> None:
        """Report a field that is not allowed."""
        self.violations.append(Violation(rule, path, "Forbidden", None, detail))

    def not_supported(
        self, rule: Rule, path: Path, value: str, accepted: tuple[str, ...], *, as_json: bool = False
    ) -> None:
        """Report a value that is not in the list of supported ones."""
        detail = "supported values: " + ", ".join(map(quote, accepted))
        shown = self.quotes.text(json_text(value) if as_json else quote(value))
        self.violations.append(Violation(rule, path, "Unsupported value", shown, detail))

    def duplicate(self, rule: Rule, path: Path, value: Any) -> None:
        """Report a duplicate value."""
        self.violations.append(Violation(rule, path, "Duplicate value", self.quotes.value(value), ""))

    def too_many(self, rule: Rule, path: Path, count: int, limit: int) -> None:
        """Report a list that is too long."""
        self.violations.append(
            Violation(rule, path, "Too many", str(count), f"must have at most {limit} items")
        )

    def too_long(self, rule: Rule, path: Path, limit: int) -> None:
        """Report a string that is too long."""
        self.violations.append(Violation(rule, path, "Too long", None, f"may not be more than {limit} bytes"))

    def conflict(self, rule: Rule, path: Path, detail: str) -> None:
        """Report that the stored object is not the one in the request."""
        self.violations.append(Violation(rule, path, "Conflict", None, detail))

    def leave(self, rule: Rule, path: Path, reason: str) -> None:
        """Leave a check to the API server."""
        self.unchecked.append(Unchecked(rule, path, reason))

    def warn(self, rule: Rule, path: Path, message: str) -> None:
        """Warn about something that is accepted, but hardly meant."""
        self.warnings.append(Warned(rule, path, message))
