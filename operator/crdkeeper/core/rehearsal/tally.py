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
    """An object that it happens to."""

    namespace: str
    name: str
    field: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(slots=True)
class EffectCount:
    """What happens to a number of objects."""

    kind: EffectKind
    field: str
    message: str
    """The first one, in the API server's words."""
    versions: set[str] = dataclasses.field(default_factory=set)
    count: int = 0
    examples: list[Example] = dataclasses.field(default_factory=list)


class EffectTally:
    """The counts of one rehearsal; its size has a bound, whatever the objects are."""

    def __init__(self) -> None:
        self.objects = 0
        """How many were looked at."""
        self.affected: dict[EffectKind, int] = {}
        """Objects by the kind of effect."""
        self.beyond = 0
        """Effects that are counted by kind, but for which there is no finding, since there are too many."""
        self._findings: dict[tuple[EffectKind, str, str], EffectCount] = {}

    def add(self, namespace: str, name: str, effects: Iterable[Effect]) -> None:
        """Counts one object, however many effects there are on it."""
        self.objects += 1
        kinds: set[EffectKind] = set()
        seen: set[tuple[EffectKind, str, str]] = set()
        for effect in effects:
            kinds.add(effect.kind)
            key = effect.kind, effect.field[:_LONGEST], effect.cause[:_LONGEST]
            finding = self._findings.get(key)
            if finding is None:
                if len(self._findings) >= MOST_FINDINGS:
                    self.beyond += 1
                    continue
                finding = EffectCount(effect.kind, key[1], effect.message[:_LONGEST])
                self._findings[key] = finding
            if effect.version:
                finding.versions.add(effect.version)
            if key in seen:
                continue
            seen.add(key)
            finding.count += 1
            if len(finding.examples) < EXAMPLES:
                finding.examples.append(Example(namespace, name, effect.exact[:_LONGEST]))
        for kind in kinds:
            self.affected[kind] = self.affected.get(kind, 0) + 1

    def add_to_all(self, effect: Effect, versions: Iterable[str]) -> None:
        """Counts an effect on each object that was looked at."""
        finding = EffectCount(effect.kind, effect.field, effect.message, set(versions), self.objects)
        self._findings[effect.key] = finding
        self.affected[effect.kind] = self.objects

    def findings(self) -> list[EffectCount]:
        """All of them: by kind, and the ones of most objects first."""
        order = list(EffectKind)
        return sorted(
            self._findings.values(),
            key=lambda each: (order.index(each.kind), -each.count, each.field, each.message),
        )
