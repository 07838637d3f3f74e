"""What a check says: which rule, where, and what of it.

A CRD may have a hundred thousand fields with something to say of each, of which most is never shown. So where
that is, is put together only when somebody asks.
"""

from dataclasses import dataclass, field
from typing import Protocol

from crdkeeper.apiserver.schema.fieldpath import Path, Step
from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.text import count

Steps = tuple[Step, ...]


class Where(Protocol):
    """A place in a CRD."""

    @property
    def field(self) -> str:
        """The place, for people."""

    @property
    def steps(self) -> Steps:
        """The keys and indexes that lead there from the top of the CRD."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the CRD itself."""

    field: str
    steps: Steps


@dataclass(frozen=True, slots=True)
class AtPath:
    """A place as the API server names it."""

    path: Path

    @property
    def field(self) -> str:
        """The place, in the server's notation."""
        return str(self.path)

    @property
    def steps(self) -> Steps:
        """The keys and indexes that lead there from the top of the CRD."""
        return self.path.steps


@dataclass(frozen=True, slots=True)
class Found:
    """One finding."""

    rule: Rule
    """The API server's, or a convention."""
    where: Where
    below: Steps
    """What leads from there to the keyword that is wrong."""
    message: str
    severity: Severity
    final: bool = False
    """Whether it is for the API server to decide, so that nobody can ignore it."""
    behind: bool = False
    """Whether the API server says it only once other errors of the CRD are fixed."""
    ignored: str = ""
    """The reason why the author has it ignored, by the annotation; empty if it counts."""
    versions: tuple[str, ...] = ()
    """The versions in which it was found, where it was merged with the same finding in others."""
    fields: tuple[str, ...] = ()
    """All fields of its type that it is true of, without a version, where there are several."""

    @property
    def field(self) -> str:
        """A field of the CRD such as `spec.names.kind`, or of its objects such as `v1:.spec.size`."""
        return self.where.field

    @property
    def version(self) -> str:
        """The version that it is about, or empty."""
        field, steps = self.where.field, self.where.steps
        return field.partition(":")[0] if ":" in field and steps[:2] == ("spec", "versions") else ""

    @property
    def path(self) -> str:
        """The field without its version, such as `.spec.size`."""
        return self.field.removeprefix(f"{self.version}:") if self.version else self.field

    @property
    def elsewhere(self) -> str:
        """Where else it was found, to be added to the message."""
        others = self.versions[1:]
        parts = [f"also in {' and '.join(others)}"] if others else []
        more = len(self.fields) - 1
        if more > 0:
            parts.append(f"and in {count(more, 'other field')} of the same type")
        return f" ({'; '.join(parts)})" if parts else ""

    @property
    def steps(self) -> Steps:
        """The keys and indexes that lead to the place in the CRD."""
        return (*self.where.steps, *self.below)

    @property
    def owner(self) -> Steps:
        """Those of the field whose schema holds the place, or of the place itself."""
        return self.where.steps


@dataclass(slots=True)
class Findings:
    """All that was found in one CRD, in the order of the checks."""

    items: list[Found] = field(default_factory=list)

    def add(
        self,
        convention: Convention,
        name: str,
        steps: Steps,
        message: str,
        *,
        severity: Severity | None = None,
    ) -> None:
        """Something is wrong with a field of the CRD itself; `severity` if it is not the convention's own."""
        where = Spot(name, steps)
        self.items.append(Found(convention, where, (), message, severity or convention.severity))
