"""When something that failed is tried again: events, which tenants can cause, do not make that earlier."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.templates.namespaces import Identity

_FIRST: Final = 0.5
_LONGEST: Final = {reasons.RIGHT_MISSING: 5.0, reasons.FAILED: 60.0}
_LONGEST_REFUSED: Final = 300.0


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

    def rests(self, composite: Composite, identity: Identity, key: object) -> Verdict | None:
        """What to say instead of trying the same again; None if it may be tried."""
        known = self._known.get(composite.uid, {}).get(identity)
        if known is None or known.key != key or _now() >= known.due:
            return None
        return known.verdict

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

    def left(self, composite: Composite) -> float | None:
        """Seconds until something may be tried again; None if nothing has failed."""
        dues = [each.due - _now() for each in self._known.get(composite.uid, {}).values()]
        return max(0.0, min(dues)) if dues else None

    def forget(self, uid: str) -> None:
        """The composite is gone."""
        self._known.pop(uid, None)


def _now() -> float:
    return asyncio.get_running_loop().time()
