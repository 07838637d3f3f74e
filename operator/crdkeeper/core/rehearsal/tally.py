"""Counts effects: a finding for each kind, field and cause, with a few of the objects as examples."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from crdkeeper.core.rehearsal.effect import Effect, EffectKind

EXAMPLES = 5
MOST_FINDINGS = 500
_LONGEST = 512


@dataclass(frozen=True, slots=True)
class Example:
    """An affected object."""

    namespace: str
    name: str
    field: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(slots=True)
class EffectCount:
    """An effect on a number of objects."""

    kind: EffectKind
    field: str
    message: str
    """The first one, from the API server."""
    at_new_version: bool = False
    """Whether it affects only users of a version that is not served today."""
    varies: bool = False
    """Whether the message varies between objects, as with the value of the field."""
    by_server: int = 0
    """For how many of the objects the API server reported it, and not only the engine."""
    versions: set[str] = dataclasses.field(default_factory=set)
    count: int = 0
    examples: list[Example] = dataclasses.field(default_factory=list)


_Key = tuple[EffectKind, str, str, bool]


def _key(effect: Effect) -> _Key:
    """What is counted as one finding; its versions are listed together."""
    return effect.kind, effect.field[:_LONGEST], effect.cause[:_LONGEST], effect.at_new_version


class EffectTally:
    """The counts of one rehearsal, in bounded size whatever the objects are."""

    def __init__(self) -> None:
        self.objects = 0
        """How many were examined."""
        self.affected: dict[EffectKind, int] = {}
        """Objects by the kind of effect."""
        self.today: dict[EffectKind, int] = {}
        """The counts without effects that concern only users of a version that is not served today."""
        self.at_new_versions: dict[EffectKind, int] = {}
        """The counts of only those effects."""
        self.beyond = 0
        """Effects that are counted by kind, but are too many for findings."""
        self._findings: dict[_Key, EffectCount] = {}

    def add(self, namespace: str, name: str, effects: Iterable[Effect]) -> None:
        """Count one object, with any number of effects on it."""
        self.objects += 1
        kinds: set[tuple[EffectKind, bool]] = set()
        seen: dict[_Key, bool] = {}
        for effect in effects:
            kinds.add((effect.kind, effect.at_new_version))
            finding = self._finding(effect)
            if finding is None:
                self.beyond += 1
                continue
            if effect.version:
                finding.versions.add(effect.version)
            finding.varies |= effect.message[:_LONGEST] != finding.message
            key = _key(effect)
            finding.by_server += effect.by_server and not seen.get(key, False)
            if key not in seen:
                finding.count += 1
                if len(finding.examples) < EXAMPLES:
                    finding.examples.append(Example(namespace, name, effect.exact[:_LONGEST]))
            seen[key] = seen.get(key, False) or effect.by_server
        for kind in {each for each, _ in kinds}:
            self.affected[kind] = self.affected.get(kind, 0) + 1
        for kind, new in kinds:
            counts = self.at_new_versions if new else self.today
            counts[kind] = counts.get(kind, 0) + 1

    def _finding(self, effect: Effect) -> EffectCount | None:
        """Where the effect is counted; None if there is no room."""
        key = _key(effect)
        found = self._findings.get(key)
        if found is None and len(self._findings) < MOST_FINDINGS:
            message = effect.message[:_LONGEST]
            found = self._findings[key] = EffectCount(effect.kind, key[1], message, effect.at_new_version)
        return found

    def add_to_all(self, effect: Effect, versions: Iterable[str]) -> None:
        """Count an effect on each object that was examined."""
        self._findings[_key(effect)] = EffectCount(
            effect.kind, effect.field, effect.message, versions=set(versions), count=self.objects
        )
        self.affected[effect.kind] = self.today[effect.kind] = self.objects

    def findings(self) -> list[EffectCount]:
        """All findings: by kind, and within a kind the most frequent first."""
        order = list(EffectKind)
        return sorted(
            self._findings.values(),
            key=lambda each: (order.index(each.kind), -each.count, each.field, each.message),
        )
