"""A change between two CRDs: what kind it is of, where it is, whom it hurts and how much.

The same change hurts one side and is welcome to another: a value that leaves an enum hurts those who send
it, a value that joins it those who read it. So severity is told by audience, and a change is as severe as
its worst.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.rules import Rule


class Impact(StrEnum):
    """How much a change hurts."""

    BREAKING = "breaking"
    """What was promised no longer holds: who relied on it is hurt."""
    RISKY = "risky"
    """Some are hurt, by how they use it; or it cannot be decided here. A person must look."""
    SAFE = "safe"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _ORDER.index(self)


_ORDER = tuple(Impact)


class Audience(StrEnum):
    """Who is hurt by a change."""

    WRITERS = "writers"
    """Who sends objects: people, pipelines and other operators; for status the controller."""
    READERS = "readers"
    """Who reads objects: the controller, and for status everybody else."""
    STORED = "stored objects"
    """What etcd holds: objects that became invalid, lost fields or mean something else."""
    OPERATORS = "operators"
    """Who runs the cluster: the update is refused, or asks for a step by hand."""


Effects = Mapping[Audience, Impact]
"""Severity by audience; to the audiences that are missing a change is safe."""


@dataclass(frozen=True, slots=True, eq=False)
class ChangeKind(Rule):
    """A kind of change: what it means (`why`), what to do instead or next (`remedy`), and its effects.

    Kinds are equal by what is said of them, as rules are.
    """

    effects: Effects
    in_status: Effects | None
    """Effects on fields below .status, which the controller writes and others read; None: the same."""
    reinterprets: bool
    """Whether valid objects read differently, so that an expression around the field may refuse them."""

    def at(self, *, status: bool) -> Effects:
        """The effects on a field, by whether it is below .status."""
        return self.in_status if status and self.in_status is not None else self.effects


@dataclass(frozen=True, slots=True)
class Place:
    """Where a change is."""

    version: str
    """The version's name, `v1 and v2` for a difference between two, empty for the whole CRD."""
    field: str
    """The field of the objects, such as `spec.ports[].name`, or of the CRD; for people."""
    path: Path
    """In the new CRD. What is gone from it is found at the nearest field around it."""
    old_path: Path | None
    """In the old CRD; None for a difference between two versions of the new one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference with its consequences."""

    kind: ChangeKind
    place: Place
    message: str
    """What changed, with the old and the new value."""
    effects: Effects
    example: Mapping[str, Any] | None = None
    """An object that was accepted and is refused, without apiVersion, kind and metadata; None: not known."""

    @property
    def severity(self) -> Impact:
        """The worst of its effects."""
        return min(self.effects.values(), key=lambda each: each.rank, default=Impact.SAFE)
