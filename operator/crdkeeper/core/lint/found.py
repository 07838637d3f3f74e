"""A check's result: the rule, the place, and the details.

A CRD may have a hundred thousand fields with a finding each, most of which are never shown. So their paths
are computed only on demand.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

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
        """The field, for people."""

    @property
    def version(self) -> str:
        """The version in whose notation the field is named, or empty."""

    @property
    def path(self) -> str:
        """The field without its version."""

    @property
    def steps(self) -> Steps:
        """The keys and indexes that lead there from the top of the CRD."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the CRD itself."""

    field: str
    steps: Steps

    @property
    def version(self) -> str:
        """What precedes a colon, if the place is in a version."""
        of_version = ":" in self.field and self.steps[:2] == ("spec", "versions")
        return self.field.partition(":")[0] if of_version else ""

    @property
    def path(self) -> str:
        """The field without its version."""
        version = self.version
        return self.field.removeprefix(f"{version}:") if version else self.field


@dataclass(frozen=True, slots=True)
class AtPath:
    """A place with the API server's name."""

    at: Path

    @property
    def field(self) -> str:
        """The field, in the server's notation."""
        return str(self.at)

    @property
    def version(self) -> str:
        """Empty: the server's notation has the index of a version."""
        return ""

    @property
    def path(self) -> str:
        """The field, in the server's notation."""
        return str(self.at)

    @property
    def steps(self) -> Steps:
        """The keys and indexes that lead there from the top of the CRD."""
        return self.at.steps


class Found(NamedTuple):
    """One finding. A tuple, because a frozen dataclass takes four times as long to make."""

    rule: Rule
    """The API server's, or a convention."""
    where: Where
    below: Steps
    """The steps from there to the invalid keyword."""
    message: str
    severity: Severity
    final: bool = False
    """Whether the API server decides about it, so that nobody can ignore it."""
    behind: bool = False
    """Whether the API server reports it only once other errors of the CRD are fixed."""
    ignored: str = ""
    """The reason why the author ignores it, from the annotation; empty if it counts."""
    versions: tuple[str, ...] = ()
    """The versions in which it was found, if it was merged with the same finding in others."""
    places: tuple[Where, ...] = ()
    """All fields of its type that it is about, if there are several."""
    mistake: str = ""
    """What findings have in common if their messages do not show that their author made one mistake."""

    @property
    def field(self) -> str:
        """A field of the CRD such as `spec.names.kind`, or of its objects such as `v1:.spec.size`."""
        return self.where.field

    @property
    def version(self) -> str:
        """The version that it is about, or empty."""
        return self.where.version

    @property
    def path(self) -> str:
        """The field without its version, such as `.spec.size`."""
        return self.where.path

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields of its type that it is about, without version, if there are several."""
        return tuple(each.path for each in self.places)

    @property
    def elsewhere(self) -> str:
        """Where else it was found, to be added to the message."""
        others = self.versions[1:]
        parts = [f"also in {' and '.join(others)}"] if others else []
        more = len(self.places) - 1
        if more > 0:
            parts.append(f"and in {count(more, 'other field')} of the same type")
        return f" ({'; '.join(parts)})" if parts else ""

    @property
    def steps(self) -> Steps:
        """The keys and indexes that lead to the place in the CRD."""
        return (*self.where.steps, *self.below)

    @property
    def owner(self) -> Steps:
        """The steps to the field whose schema contains the place, or to the place itself."""
        return self.where.steps


@dataclass(slots=True)
class Findings:
    """All findings for one CRD, in the order of the checks."""

    items: list[Found] = field(default_factory=list)

    def add(
        self,
        convention: Convention,
        name: str,
        steps: Steps,
        message: str,
        *,
        severity: Severity | None = None,
        mistake: str = "",
    ) -> None:
        """Add a finding about a field of the CRD itself; `severity` if it is not the convention's own."""
        where = Spot(name, steps)
        of = severity or convention.severity
        self.items.append(Found(convention, where, (), message, of, mistake=mistake))
