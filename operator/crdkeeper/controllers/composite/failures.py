"""When something that failed is tried again: events, which tenants can cause, do not make that earlier."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.flapping import Flaps
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.templates.namespaces import Identity

_FIRST: Final = 0.5
_LONGEST: Final = {
    reasons.RIGHT_MISSING: 5.0,
    reasons.SERVICE_ACCOUNT_MISSING: 5.0,
    reasons.FAILED: 60.0,
}
_LONGEST_REFUSED: Final = 300.0
_FIRST_LOOK: Final = 5.0
_LONGEST_LOOK: Final = 60.0
_SOON: Final = 0.1
GroupKind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Failure:
    key: object
    verdict: Verdict
    number: int
    due: float


class Failures:
    """The last failure of each object of each composite."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Identity, _Failure]] = {}
        self._unread: dict[str, tuple[frozenset[GroupKind], int, float]] = {}
        """By composite: kinds that it waits for, how often they were looked at, and when they are next."""
        self._settled: dict[str, dict[str, str]] = {}
        self.flaps = Flaps()
        """What succeeds, but has to be done again and again."""

    def rests(self, composite: Composite, identity: Identity, key: object) -> Verdict | None:
        """What to say instead of trying the same again; None if it may be tried."""
        known = self._known.get(composite.uid, {}).get(identity)
        if known is None or known.key != key or _now() >= known.due:
            return None
        return known.verdict

    def knows(self, composite: Composite, identity: Identity) -> bool:
        """Whether the last try has failed."""
        return identity in self._known.get(composite.uid, {})

    def add(self, composite: Composite, identity: Identity, key: object, verdict: Verdict) -> None:
        """It has failed."""
        of = self._known.setdefault(composite.uid, {})
        known = of.get(identity)
        number = known.number + 1 if known is not None and known.key == key else 0
        pause = backoff(number, _FIRST, _LONGEST.get(verdict.reason, _LONGEST_REFUSED))
        of[identity] = _Failure(key, verdict, number, _now() + pause)

    def end(self, composite: Composite, identity: Identity) -> None:
        """It has succeeded."""
        self._known.get(composite.uid, {}).pop(identity, None)

    def keep(self, composite: Composite, identities: Collection[Identity]) -> None:
        """Only these are tried again."""
        of = self._known.pop(composite.uid, {})
        kept = {key: each for key, each in of.items() if key in identities}
        if kept:
            self._known[composite.uid] = kept
        if not self._settled.get(composite.uid):
            self._settled.pop(composite.uid, None)

    def left(self, composite: Composite) -> float | None:
        """Seconds until something may be tried again; None if nothing has failed."""
        dues = [each.due - _now() for each in self._known.get(composite.uid, {}).values()]
        return max(0.0, min(dues)) if dues else None

    def waits_for(self, composite: Composite, kinds: Collection[GroupKind]) -> float | None:
        """Seconds until another look at kinds that it may not read or that are not served; None for none."""
        now, wanted = _now(), frozenset(kinds)
        known, number, due = self._unread.pop(composite.uid, (frozenset[GroupKind](), -1, now))
        if not wanted:
            return None
        if known != wanted:
            number, due = -1, now
        if now >= due - _SOON:
            number += 1
            due = now + backoff(number, _FIRST_LOOK, _LONGEST_LOOK)
        self._unread[composite.uid] = wanted, number, due
        return due - now

    def settled(self, uid: str) -> dict[str, str]:
        """Of a composite, by the uid of an object: settled_digest after an apply that it does not show."""
        return self._settled.setdefault(uid, {})

    def forget(self, uid: str) -> None:
        """The composite is gone."""
        self._unread.pop(uid, None)
        self._known.pop(uid, None)
        self._settled.pop(uid, None)
        self.flaps.forget(uid)


def _now() -> float:
    return asyncio.get_running_loop().time()
