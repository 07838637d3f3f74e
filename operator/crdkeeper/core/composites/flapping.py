"""Objects that have to be written again and again: why, and when the composer writes them next.

Two programs that force the same field would write it as often as they can, for ever and without an error; so
would a composite that somebody changes all the time. Such an object is left as it is for a while. Its own
changes of the composite are not held up by those who fight about something else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.appliednote import APPLIED
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.text import shortened

_SHOWN: Final = 3
_SWEPT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class FlapPace:
    """How often something may be written in a row before there are pauses. In seconds."""

    at_once: int
    first: float
    longest: float
    forgotten: float
    """Without a write, after which the next one is the first."""


_PACES: Final[Mapping[Reason, FlapPace]] = {
    # People change objects, too, and delete them.
    reasons.OVERWRITTEN: FlapPace(3, 15.0, 120.0, 600.0),
    reasons.VANISHING: FlapPace(3, 15.0, 120.0, 600.0),
    # What a template reads of other objects takes some steps until it is as it stays.
    reasons.CHANGING: FlapPace(20, 5.0, 30.0, 60.0),
}


@dataclass(frozen=True, slots=True)
class _Flap:
    pace: FlapPace
    times: int = 0
    last: float = 0.0
    said: str = ""
    generation: int = 0
    """Of the composite."""

    def pause(self, now: float) -> float:
        """Seconds until it may be written once more."""
        if self.times < self.pace.at_once:
            return 0.0
        pause = backoff(self.times - self.pace.at_once, self.pace.first, self.pace.longest)
        return max(0.0, self.last + pause - now)

    def remembered(self, now: float) -> float:
        """Seconds until it counts as quiet."""
        return max(0.0, self.last + self.pace.forgotten - now)


_Key = tuple[Reason, Identity | None]
"""Of changes, those of all objects of a composite count together."""


class Flaps:
    """What was written again and again lately, of all composites. Times are of a monotonic clock."""

    def __init__(self) -> None:
        self._known: dict[str, dict[_Key, _Flap]] = {}
        self._recreated: dict[str, set[Identity]] = {}
        """By composite: what the composer has deleted to create it again."""
        self._swept = 0.0

    def pause(self, uid: str, reason: Reason, identity: Identity, now: float) -> Verdict | None:
        """Why an object of a composite is not written now; None if it may be."""
        known = self._known.get(uid, {}).get(_key(reason, identity))
        if known is None or known.pause(now) <= 0.0:
            return None
        return Verdict(reasons.SLOWED_DOWN, f"{identity} stays as it is for a while: {known.said}")

    def generation(self, uid: str) -> int | None:
        """That of a composite when its objects were changed last; None if they were not lately."""
        known = self._known.get(uid, {}).get((reasons.CHANGING, None))
        return known.generation if known is not None else None

    def wrote(self, composite: Composite, reason: Reason, identity: Identity, said: str, now: float) -> None:
        """It was written, because of what `said` tells."""
        self._sweep(now)
        of, key = self._known.setdefault(composite.uid, {}), _key(reason, identity)
        known = of.get(key)
        pace = _PACES[reason]
        times = known.times if known is not None and known.remembered(now) > 0.0 else 0
        of[key] = _Flap(pace, times + 1, now, said, composite.generation)

    def recreates(self, uid: str, identity: Identity) -> None:
        """An object of a composite is deleted, to be created again at once: it does not vanish."""
        self._recreated.setdefault(uid, set()).add(identity)

    def is_recreated(self, uid: str, identity: Identity) -> bool:
        """Whether it was deleted for that, and not created since."""
        return identity in self._recreated.get(uid, ())

    def exists(self, uid: str, identity: Identity) -> None:
        """It is there again."""
        left = self._recreated.pop(uid, set()) - {identity}
        if left:
            self._recreated[uid] = left

    def verdict(self, uid: str, now: float) -> Verdict | None:
        """What flaps of a composite, most often first; None if nothing does."""
        fought = [
            (-each.times, reason, each.said)
            for (reason, _), each in self._known.get(uid, {}).items()
            if each.times >= each.pace.at_once and each.remembered(now) > 0.0
        ]
        if not fought:
            return None
        times, reason, said = min(fought, key=lambda each: (each[0], each[2]))
        more = f" And {len(fought) - 1:,} more." if len(fought) > 1 else ""
        return Verdict(reason, f"{said} The composer has written it {-times:,} times.{more} {reason.remedy}")

    def left(self, uid: str, now: float) -> float | None:
        """Seconds until something may be written again, or counts as quiet; None if nothing flaps."""
        due = [
            each.pause(now) or each.remembered(now)
            for each in self._known.get(uid, {}).values()
            if each.times >= each.pace.at_once and each.remembered(now) > 0.0
        ]
        return min(due, default=None)

    def forget(self, uid: str) -> None:
        """The composite is gone."""
        self._known.pop(uid, None)
        self._recreated.pop(uid, None)

    def _sweep(self, now: float) -> None:
        """Each composite that was changed once is in memory: what is quiet goes."""
        if now - self._swept < _SWEPT_SECONDS:
            return
        self._swept = now
        for uid, of in list(self._known.items()):
            kept = {key: each for key, each in of.items() if each.remembered(now) > 0.0}
            if kept:
                self._known[uid] = kept
            else:
                del self._known[uid]


def _key(reason: Reason, identity: Identity) -> _Key:
    return reason, None if reason is reasons.CHANGING else identity


def changed_by(identity: Identity, made: Mapping[str, Any], live: Mapping[str, Any], changer: str) -> str:
    """What a new configuration changes in an object; `changer` has changed the composite, if anybody has."""
    why = f"{changer} changes the composite" if changer else "what the expressions read changes"
    return f"{identity} ({_fields(made, live)}) changes all the time, because {why}."


def overwritten_for_good(identity: Identity, made: Mapping[str, Any], live: Mapping[str, Any]) -> str:
    """What others change in an object that can only be put back by deleting it."""
    return f"{identity} ({_fields(made, live)}) is changed again and again, and has to be created again."


def changer_of(value: Mapping[str, Any], manager: str) -> str:
    """Who, other than this manager, has changed a composite last, by metadata.managedFields."""
    entries = [
        (str(each.get("time", "")), str(each.get("manager", "")))
        for each in value["metadata"].get("managedFields") or ()
        if not each.get("subresource") and each.get("manager") != manager
    ]
    return max(entries, default=("", ""))[1] or "somebody unknown to metadata.managedFields"


def _fields(made: Mapping[str, Any], live: Mapping[str, Any]) -> str:
    return shortened(sorted(_differing(made, live, "")), _SHOWN) or "metadata"


def _differing(made: Any, live: Any, path: str) -> set[str]:
    """The fields that are set to another value."""
    if isinstance(made, Mapping) and isinstance(live, Mapping):
        return {
            found
            for key, each in made.items()
            if key != APPLIED
            for found in _differing(each, live.get(key), f"{path}.{key}" if path else str(key))
        }
    return set() if made == live else {path}
