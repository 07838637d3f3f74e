"""A change between two CRDs: its kind, its place, whom it affects and how severely.

The same change hurts some and helps others: a value removed from an enum affects those who send it, a value
added to it those who read it. So severity is given by audience, and a change is as severe as its worst
effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.rules import Rule


class Impact(StrEnum):
    """How severe a change is."""

    BREAKING = "breaking"
    """A promise no longer holds: whoever relied on it is affected."""
    RISKY = "risky"
    """Some are affected, depending on how they use it; or it cannot be decided here. A person must check."""
    SAFE = "safe"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _ORDER.index(self)


_ORDER = tuple(Impact)


class Audience(StrEnum):
    """Whom a change affects."""

    WRITERS = "writers"
    """Those who send objects: people, pipelines and other operators; for status the controller."""
    READERS = "readers"
    """Those who read objects: the controller, and for status everyone else."""
    STORED = "stored objects"
    """The objects in etcd: they become invalid, lose fields or change their meaning."""
    OPERATORS = "operators"
    """Those who run the cluster: the update is rejected, or requires a manual step."""


Effects = Mapping[Audience, Impact]
"""Severity by audience; a change is safe for all others."""

Severities = Mapping[str, Impact | None]
"""The severities in a configuration, by the id of a kind of change; None disables the kind."""


@dataclass(frozen=True, slots=True, eq=False)
class ChangeKind(Rule):
    """A kind of change: what it means (`why`), what to do instead or next (`remedy`), and its effects.

    Kinds are equal if their texts are, like rules.
    """

    effects: Effects
    in_status: Effects | None
    """Effects on fields below .status, which the controller writes and others read; None: the same."""
    reinterprets: bool
    """Whether valid objects read differently, so that an expression around the field may reject them."""
    fixed: bool = False
    """Whether the API server rejects the CRD because of it: then no configuration changes its severity."""

    def at(self, *, status: bool) -> Effects:
        """The effects on a field, depending on whether it is below .status."""
        return self.in_status if status and self.in_status is not None else self.effects


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a change."""

    version: str
    """The version's name, `v1 and v2` for a difference between two, empty for the whole CRD."""
    field: str
    """The field of the objects, such as `spec.ports[].name`, or of the CRD; for people."""
    path: Path
    """The path in the new CRD; for a removed field, that of its nearest existing parent."""
    old_path: Path | None
    """The path in the old CRD; None for a difference between two versions of the new one."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference and its consequences."""

    kind: ChangeKind
    place: Place
    message: str
    """What changed, with the old and the new value."""
    effects: Effects
    example: Mapping[str, Any] | None = None
    """An object that was accepted and is refused, without apiVersion, kind and metadata; None: not known."""
    chosen: Impact | None = None
    """The severity from a configuration, which replaces that of the effects; None if there is none."""

    @property
    def worst(self) -> Impact:
        """The worst of its effects."""
        return min(self.effects.values(), key=lambda each: each.rank, default=Impact.SAFE)

    @property
    def severity(self) -> Impact:
        """The severity from a configuration, or else the worst of its effects."""
        return self.worst if self.chosen is None else self.chosen

    @property
    def affected(self) -> tuple[Audience, ...]:
        """Whom the worst effect is expected to hurt; empty if the change is safe for everybody."""
        return tuple(each for each in Audience if self.effects.get(each) is self.worst)
