"""Where the objects of composites are. The API server has no index of labels: for a list by the label of one
composite it goes through all objects of the kind in the namespace. So one list shows it for all composites.
"""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

from crdkeeper.cluster.resources.composed import list_metadata
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.composites.accounts import ServiceAccount
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, is_controlled, is_ours, outlives

Place = tuple[str, str]
"""Namespace and name."""
Version = tuple[str, str]
"""The uid and the resourceVersion of an object: one state of it."""

_MOST: Final = 100
"""Of the objects of one kind that one composite has: more are listed, which takes fewer requests."""
_LISTED_SECONDS: Final = 15.0
"""How long a list counts that no watch follows. What the composer itself creates is added to it."""
_MOST_LISTS: Final = 1_000
_VERSION_LENGTH: Final = 100
"""More than an API server's uid and resourceVersion have: others decide what an aggregated API answers."""


class Placed:
    """The objects of one kind that have the label of a composite."""

    def __init__(self) -> None:
        self._labels: dict[Place, str] = {}
        self._own: dict[str, dict[Place, str]] = {}
        """By the uid of a composite: those that are its own, as everybody can set the label.

        With uid and resourceVersion in one text, which takes less memory; empty if there is more to know.
        """

    def take(self, found: Mapping[str, Any]) -> str:
        """An object is like this, of which the metadata is enough. Returns the uid in its label."""
        place, uid = place_of(found), label_of(found)
        if self._labels.get(place, uid) != uid:
            self._leave(place)
        if not uid:
            return uid
        uid = self._labels[place] = sys.intern(uid)
        version = _own_version(found, uid)
        if version is None:
            self._disown(place, uid)
        else:
            self._own.setdefault(uid, {})[place] = version
        return uid

    def drop(self, found: Mapping[str, Any]) -> None:
        """An object is gone, or has no such label any more."""
        self._leave(place_of(found))

    def composites(self) -> set[str]:
        """The uids in the labels."""
        return set(self._labels.values())

    def has(self, uid: str, namespace: str) -> bool:
        """Whether there are objects of a composite, if that is in a namespace, not in another one."""
        return any(not namespace or each[0] in ("", namespace) for each in self._own.get(uid, ()))

    def of(self, uid: str, namespace: str) -> Collection[Place] | None:
        """Where those of a composite are, if in a namespace, only in that one; None if there are many."""
        # In other namespaces everybody can make objects that look like the composite's.
        own = [each for each in self._own.get(uid, ()) if not namespace or each[0] == namespace]
        return own if len(own) <= _MOST else None

    def plain(self, uid: str, place: Place) -> Version | None:
        """The state of a composite's own object, if it is neither in deletion nor one that stays."""
        known, _, version = self._own.get(uid, {}).get(place, "").partition(" ")
        return (known, version) if known else None

    def _leave(self, place: Place) -> None:
        uid = self._labels.pop(place, None)
        if uid is not None:
            self._disown(place, uid)

    def _disown(self, place: Place, uid: str) -> None:
        own = self._own.get(uid)
        if own is not None:
            own.pop(place, None)
            if not own:
                del self._own[uid]


class Watched(Protocol):
    """What the watches on objects have shown."""

    def placed(self, group: str, kind: str) -> Placed | None:
        """The objects of a kind; None if they have not been listed."""

    def plain(self, group: str, kind: str, uid: str, place: Place) -> Version | None:
        """The state of an object of a composite, if a watch shows it now, and nothing special about it."""

    def kinds_of(self, uid: str, namespace: str) -> Collection[KindKey]:
        """The kinds of which a composite in a namespace, or in none, has objects."""

    def wrote(self, group: str, kind: str, live: Mapping[str, Any]) -> None:
        """The composer has written an object: its event may come late."""


class Whereabouts:
    """Where objects of composites are, as the watches show, or else as a list by the same account does."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._lists: OrderedDict[tuple[ServiceAccount | None, ServedKind, str], _List] = OrderedDict()

    def kinds_of(self, uid: str, namespace: str) -> Collection[KindKey]:
        """The kinds of which a composite in a namespace, or in none, is known to have objects."""
        return self._watched.kinds_of(uid, namespace)

    def plain(self, kind: ServedKind, uid: str, place: Place) -> Version | None:
        """The state of a composite's own object, if a watch shows it now, and nothing special about it."""
        return self._watched.plain(kind.group, kind.kind, uid, place)

    def are_watched(self, kind: ServedKind) -> bool:
        """Whether the objects of a kind are known without a list."""
        return self._watched.placed(kind.group, kind.kind) is not None

    async def find(
        self, client: Client, account: ServiceAccount | None, kind: ServedKind, namespace: str, uid: str
    ) -> Collection[Place] | None:
        """Where a composite's objects of a kind are; None if there are many. Raises ApiError and Unreachable.

        `client` is of the account, and `namespace` that of the composite.
        """
        space = namespace if kind.namespaced else ""
        placed = self._watched.placed(kind.group, kind.kind)
        if placed is None:
            placed = await self._list(account, kind, space).read(client, kind.path(space))
        return placed.of(uid, space)

    def wrote(self, account: ServiceAccount | None, kind: ServedKind, live: Mapping[str, Any]) -> None:
        """An object was written, and answered like this."""
        self._watched.wrote(kind.group, kind.kind, live)
        for space in ("", place_of(live)[0]):
            known = self._lists.get((account, kind, space))
            if known is not None:
                known.wrote(live)

    def _list(self, account: ServiceAccount | None, kind: ServedKind, namespace: str) -> "_List":
        key = account, kind, namespace
        known = self._lists.get(key)
        if known is None:
            known = self._lists[key] = _List()
        self._lists.move_to_end(key)
        while (oldest := next(iter(self._lists.values()))) is not known:
            if len(self._lists) <= _MOST_LISTS and not oldest.is_over:
                break
            # Who waits for it has it still.
            self._lists.popitem(last=False)
        return known


class _List:
    """One list for all who need it at about the same time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._placed = Placed()
        self._filling: Placed | None = None
        self._error: ApiError | Unreachable | None = None
        self._ended: float | None = None
        """In the loop's time; None if there is no list."""

    @property
    def is_over(self) -> bool:
        """Whether it does not count any more."""
        return not self._turn.locked() and not self._counts(_now())

    async def read(self, client: Client, path: str) -> Placed:
        """The objects. All who wait get the same answer. Raises ApiError and Unreachable."""
        asked = _now()
        async with self._turn:
            if not self._counts(asked):
                await self._read(client, path)
            if self._error is not None:
                raise self._error.with_traceback(None)
            return self._placed

    def wrote(self, live: Mapping[str, Any]) -> None:
        """An object was written, perhaps after the list has passed it."""
        for each in (self._placed, self._filling):
            if each is not None:
                each.take(live)

    def _counts(self, asked: float) -> bool:
        lasts = _LISTED_SECONDS if self._error is None else 0.0
        return self._ended is not None and asked <= self._ended + lasts

    async def _read(self, client: Client, path: str) -> None:
        # If this is cancelled, there is no list: neither the former one counts nor its error.
        self._filling, self._error, self._ended = Placed(), None, None
        try:
            await list_metadata(client, path, COMPOSITE_LABEL, self._filling.take)
            self._placed = self._filling
        except (ApiError, Unreachable) as error:
            self._error = error
        self._filling, self._ended = None, _now()


def place_of(found: Mapping[str, Any]) -> Place:
    """Where an object is."""
    metadata = found["metadata"]
    return sys.intern(str(metadata.get("namespace") or "")), str(metadata["name"])


def label_of(found: Mapping[str, Any]) -> str:
    """The uid of a composite in the label of an object; empty if it has none."""
    labels = found["metadata"].get("labels")
    return str(labels.get(COMPOSITE_LABEL) or "") if isinstance(labels, Mapping) else ""


def _own_version(found: Mapping[str, Any], uid: str) -> str | None:
    """The state of an object that is the composite's, empty if it is a special one; None for another."""
    try:
        if not is_ours(found, uid):
            return None
        special = "deletionTimestamp" in found["metadata"] or outlives(found) or not is_controlled(found, uid)
    except (AttributeError, TypeError):
        # What answers may be an aggregated API that has other metadata.
        return None
    metadata = found["metadata"]
    version = f"{metadata.get('uid') or ''} {metadata.get('resourceVersion') or ''}"
    own, _, number = version.partition(" ")
    return version if not special and own and number and len(version) <= _VERSION_LENGTH else ""


def _now() -> float:
    return asyncio.get_running_loop().time()
