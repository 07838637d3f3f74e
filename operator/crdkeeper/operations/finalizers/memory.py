"""What was found out about objects in deletion, so that no look has to ask again, and a change is noticed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from crdkeeper.core.finalizers.holding import Held
from crdkeeper.core.finalizers.tally import DueFinding, NamedFinalizer

_MOST: Final = 20_000
_REFUSED_SECONDS: Final = 300.0
"""How long a refusal counts: a webhook that failed may work again."""
_SIGHTED_SECONDS: Final = 3 * 3600.0
"""After that, an object that no look has shown is forgotten if there is no room for another."""
_SAME: Final = timedelta(seconds=5)
"""Clocks that differ no more than that count as one, so that what is shown does not change at each look."""
_Key = tuple[str, str, NamedFinalizer]


@dataclass(slots=True)
class _Moment:
    """When something was seen, by the API server's clock and by ours."""

    time: datetime
    ours: float

    def corrected(self, now: datetime, ours: float) -> datetime:
        """That time, by a clock that shows `now`: the one before may have been wrong, or was set since."""
        passed = now - timedelta(seconds=ours - self.ours)
        if abs(passed - self.time) > _SAME:
            self.time = passed
        return self.time


@dataclass(slots=True)
class _Sighting:
    resource_version: str
    written: datetime | None
    first: _Moment
    at: float
    changed: _Moment | None = None
    """When a look has shown another resourceVersion than the one before."""
    writer: str = ""
    """Who has changed it then, as far as a newer time in managedFields tells."""


class Memory:
    """The findings of one process, in bounded memory; the oldest go first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[_Key, tuple[DueFinding, float]] = {}
        self.asked_until: dict[str, str] = {}
        """By CRD, the last object that was read for a condition, if there were too many for one look."""
        self._sightings: dict[str, _Sighting] = {}
        """By uid, those of the longest time ago first."""

    def recall(self, object_: Held, rule: NamedFinalizer) -> DueFinding | None:
        """What is known of the object as it is now."""
        key = object_.uid, object_.resource_version, rule
        finding, since = self._known.get(key, (None, 0.0))
        if finding is DueFinding.REFUSED and self._clock() - since > _REFUSED_SECONDS:
            del self._known[key]
            return None
        return finding

    def keep(self, object_: Held, rule: NamedFinalizer, finding: DueFinding) -> None:
        """Remember a finding."""
        key = object_.uid, object_.resource_version, rule
        self._known.pop(key, None)
        self._known[key] = finding, self._clock()
        if len(self._known) > _MOST:
            self._known.pop(next(iter(self._known)))

    def compare(self, object_: Held, now: datetime) -> Held:
        """The object, written just now if it has changed since the look before.

        A write that only removes something, such as the next finalizer, leaves no time in managedFields, and
        may have come after one that does. If there is no room for the object, nobody notices it.
        """
        ours = self._clock()
        seen = self._sightings.pop(object_.uid, None)
        if seen is None:
            if not self._has_room():
                return object_
            seen = _Sighting(object_.resource_version, object_.written, _Moment(now, ours), ours)
        elif seen.resource_version != object_.resource_version:
            dated = object_.written is not None and (seen.written is None or object_.written > seen.written)
            seen.changed, seen.writer = _Moment(now, ours), object_.writer if dated else ""
        seen.resource_version, seen.written, seen.at = object_.resource_version, object_.written, ours
        self._sightings[object_.uid] = seen
        watched = replace(object_, watched_since=seen.first.corrected(now, ours))
        if seen.changed is None:
            return watched
        changed = seen.changed.corrected(now, ours)
        if object_.written is not None and object_.written > changed:
            return watched  # a time in the future counts as now in each look
        return replace(watched, written=changed, writer=seen.writer)

    def wrote(self, object_: Held, resource_version: str) -> None:
        """Remember a write of ours, which is nobody's sign of life."""
        if resource_version == object_.resource_version:
            self.forget(object_)  # with the last finalizer the object was deleted
        elif object_.uid in self._sightings:
            self._sightings[object_.uid].resource_version = resource_version

    def forget(self, object_: Held) -> None:
        """The object is gone, and leaves its place to another."""
        self._sightings.pop(object_.uid, None)

    def _has_room(self) -> bool:
        """Whether another object can be remembered. Those that looks still show are not given up for it."""
        if len(self._sightings) < _MOST:
            return True
        oldest = next(iter(self._sightings))
        if self._clock() - self._sightings[oldest].at < _SIGHTED_SECONDS:
            return False
        del self._sightings[oldest]
        return True
