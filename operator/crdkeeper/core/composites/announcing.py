"""Which Events tell what a pass over a composite has changed, and how many of them are sent.

A status says what is; Events tell what has become of it. Each is an object in etcd, and tenants can let
conditions change as often as they like: so there is a limit for each composite, one for each tenant, and one
for all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from crdkeeper.api.meta import READY
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.text import count, visible

CREATED: Final = "ObjectsCreated"
RECREATED: Final = "ObjectsRecreated"
DELETED: Final = "ObjectsDeleted"
RELEASED: Final = "ObjectsReleased"
_SHOWN: Final = 3
_UNTOLD: Final = frozenset((reasons.IN_PROGRESS.name, reasons.NOT_SYNCED.name))
"""The first one passes in seconds; of the second one, Synced has the reason."""
_NORMAL: Final = frozenset((reasons.PAUSED.name, reasons.CREATING.name, reasons.DELETING.name))
_EACH: Final = 10
"""So many Events of one composite are sent at once."""
_EACH_SECONDS: Final = 60.0
"""And then one in so many seconds."""
_TENANT: Final = 20
_TENANT_SECONDS: Final = 1.0
"""Of all composites of a tenant together: many that change must not hide what is told of others."""
_ALL: Final = 50
_ALL_SECONDS: Final = 0.2
_REMEMBERED: Final = _EACH * _EACH_SECONDS
"""Then a composite may send as many as one that never did."""


@dataclass(frozen=True, slots=True)
class CompositeEvent:
    """An Event to send."""

    type: Literal["Normal", "Warning"]
    reason: str
    note: str


def announcements(
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
    objects: Sequence[tuple[CompositeWrite, Identity]],
) -> list[CompositeEvent]:
    """What to tell of a pass: `objects` is what it has done, and the others are the conditions."""
    return [*_of_objects(objects), *_of_conditions(before, after)]


def _of_conditions(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> list[CompositeEvent]:
    known = {each.get("type"): each for each in before}
    said = []
    for each in after:
        if each["type"] not in (reasons.SYNCED, READY, reasons.RESPONSIVE):
            continue
        last = known.get(each["type"], {})
        if (last.get("status"), last.get("reason")) == (each["status"], each["reason"]):
            continue
        if each["reason"] in _UNTOLD or _is_a_beginning(each, last):
            continue
        good = each["status"] == "True" or each["reason"] in _NORMAL
        said.append(CompositeEvent("Normal" if good else "Warning", each["reason"], visible(each["message"])))
    return said


def _is_a_beginning(now: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    """Whether there is nothing to tell but that a new composite, or one that went on, is at work."""
    fresh = not last or last.get("reason") in _UNTOLD
    return fresh and now["reason"] in (reasons.RECONCILED.name, reasons.CREATING.name)


def _of_objects(objects: Sequence[tuple[CompositeWrite, Identity]]) -> list[CompositeEvent]:
    done: dict[Identity, list[CompositeWrite]] = {}
    for write, identity in objects:
        done.setdefault(identity, []).append(write)
    told: dict[str, list[Identity]] = {}
    for identity, writes in done.items():
        if CompositeWrite.CREATED in writes:
            told.setdefault(RECREATED if CompositeWrite.DELETED in writes else CREATED, []).append(identity)
        elif CompositeWrite.DELETED in writes:
            told.setdefault(DELETED, []).append(identity)
        elif CompositeWrite.RELEASED in writes:
            told.setdefault(RELEASED, []).append(identity)
    verbs = {
        CREATED: "Created",
        RECREATED: "Deleted and created again",
        DELETED: "Deleted",
        RELEASED: "Left to nobody",
    }
    return [
        CompositeEvent("Normal", reason, f"{verb} {_named(told[reason])}.")
        for reason, verb in verbs.items()
        if reason in told
    ]


def _named(identities: Sequence[Identity]) -> str:
    more = len(identities) - _SHOWN
    shown = visible(", ".join(map(str, identities[:_SHOWN])))
    return f"{shown} and {count(more, 'more object')}" if more > 0 else shown


@dataclass(slots=True)
class _Left:
    """How many Events may be sent at once; they come back with time."""

    most: int
    seconds: float
    """Until one comes back."""
    tokens: float = field(default=-1.0)
    at: float = 0.0

    def take(self, now: float) -> bool:
        passed = (now - self.at) / self.seconds
        known = float(self.most) if self.tokens < 0.0 else min(self.most, self.tokens + passed)
        self.at = now
        self.tokens = known - 1.0 if known >= 1.0 else known
        return known >= 1.0


class EventBudget:
    """Whether an Event may be sent. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._each: dict[str, _Left] = {}
        self._tenants: dict[tuple[str, str], _Left] = {}
        self._all = {each: _Left(_ALL, _ALL_SECONDS) for each in ("Normal", "Warning")}
        """That many composites become ready must not hide that one is in trouble."""
        self._swept = 0.0

    def take(self, tenant: str, uid: str, type_: Literal["Normal", "Warning"], now: float) -> bool:
        """Send one about the composite with this uid."""
        if now - self._swept > _REMEMBERED:
            self._swept = now
            self._each = {key: each for key, each in self._each.items() if now - each.at < _REMEMBERED}
            self._tenants = {key: each for key, each in self._tenants.items() if now - each.at < _REMEMBERED}
        own = self._each.setdefault(uid, _Left(_EACH, _EACH_SECONDS))
        shared = self._tenants.setdefault((tenant, type_), _Left(_TENANT, _TENANT_SECONDS))
        return own.take(now) and shared.take(now) and self._all[type_].take(now)
