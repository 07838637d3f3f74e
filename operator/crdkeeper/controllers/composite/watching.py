"""Watches composites, and the objects that they are composed of, for what a reconciliation depends on.

Only metadata, and of that only what tells whether something has changed: there may be many.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import quote

import orjson

from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import (
    METADATA_ONLY,
    METADATA_ONLY_LIST,
    ApiError,
    Client,
    Unreachable,
)
from crdkeeper.cluster.transport.watches import follow
from crdkeeper.controllers.composite.refusing import unwatched
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, FINALIZER
from crdkeeper.core.diagnosis.verdict import Verdict

_PAGE: Final = 500
_SECONDS: Final = 20.0
_REVIEWED_SECONDS: Final = 10.0
"""How long it is known which right lacks."""
_SEEN: Final = ("uid", "generation", "labels", "annotations", "finalizers", "deletionTimestamp")
"""Of a composite: what matters besides the status, of which only what others have written does."""

Place = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class SeenComposite:
    """A composite, reduced to what tells whether it has to be looked at."""

    uid: str
    """Empty for one that is gone."""
    held: bool
    """Whether it has the composer's finalizer."""
    digest: bytes


_GONE: Final = SeenComposite("", False, b"")


class CompositeList:
    """The composites of one definition. Calls `changed` with each that came, went or changed."""

    def __init__(self, client: Client, path: str, changed: Callable[[Place, SeenComposite], None]) -> None:
        self._client = client
        self._path = path
        self._changed = changed
        self._known: dict[Place, SeenComposite] = {}

    async def follow(self) -> None:
        """Run until cancelled."""
        await follow(self._client, self._path, self._load, self._saw, accept=METADATA_ONLY)

    def all(self) -> list[tuple[Place, SeenComposite]]:
        """All that are known."""
        return list(self._known.items())

    async def _load(self) -> str:
        found: dict[Place, SeenComposite] = {}

        def take(each: Mapping[str, Any]) -> None:
            found[_place(each)] = _reduced(each)

        version = await _list(self._client, self._path, "", take)
        for place in self._known.keys() | found.keys():
            self._take(place, found.get(place))
        return version

    async def _saw(self, type_: str, found: Mapping[str, Any]) -> None:
        self._take(_place(found), _reduced(found) if type_ != "DELETED" else None)

    def _take(self, place: Place, now: SeenComposite | None) -> None:
        before = self._known.pop(place, None)
        if now is not None:
            self._known[place] = now
        if before != now:
            self._changed(place, now or _GONE)


def _place(found: Mapping[str, Any]) -> Place:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def _reduced(found: Mapping[str, Any]) -> SeenComposite:
    metadata = found["metadata"]
    seen = [*(metadata.get(each) for each in _SEEN), _status_of_others(metadata)]
    content = orjson.dumps(seen, option=orjson.OPT_SORT_KEYS)
    held = FINALIZER in (metadata.get("finalizers") or ())
    return SeenComposite(metadata["uid"], held, blake2b(content, digest_size=8).digest())


def _status_of_others(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Who has written the status, when and what: the composer puts back what is its own."""
    return [
        each
        for each in metadata.get("managedFields") or ()
        if each.get("subresource") == "status" and each.get("manager") != FIELD_MANAGER
    ]


async def _list(client: Client, path: str, selector: str, take: Callable[[Mapping[str, Any]], None]) -> str:
    """Take the metadata of all objects, of which tenants decide how large it is.

    Returns the resourceVersion from which to watch. Raises ApiError and Unreachable.
    """
    size = PageSize(_PAGE, _PAGE, METADATA_BYTES // 2, METADATA_BYTES, _SECONDS)
    version = token = ""
    while True:
        body = await bounded_page(client, path, token, size, accept=METADATA_ONLY_LIST, selector=selector)
        items = body["items"] or ()
        for each in items:
            take(each)
        size.fit([each["metadata"] for each in items])
        version = version or body["metadata"]["resourceVersion"]
        token = body["metadata"].get("continue") or ""
        if not token:
            return version


class ObjectWatches:
    """One watch for each kind that is composed. Calls `changed` with the uid of an object's composite."""

    def __init__(
        self, client: Client, served: KindPaths, rights: KnownRights, changed: Callable[[str], None]
    ) -> None:
        self._client = client
        self._rights = rights
        self._served = served
        self._changed = changed
        self._running: dict[KindKey, asyncio.Task[None]] = {}
        self._begun: set[KindKey] = set()
        """Kinds whose changes are seen."""
        self._not_found: set[KindKey] = set()
        """Kinds that could not be looked up."""
        self._troubles: dict[KindKey, tuple[ServedKind, str]] = {}
        """Of kinds whose watch was refused or has broken since it began: why."""
        self._lacking: dict[KindKey, tuple[float, Verdict | None]] = {}
        """What was found out about those: in the loop's time, when."""
        self._turn = asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Let the watches be tasks of this group."""
        self._group = group

    async def keep(self, kinds: frozenset[KindKey]) -> None:
        """Watch the objects of these kinds that are of composites, as far as the kinds can be found."""
        for each in kinds - self._running.keys():
            try:
                served = await self._served.find(*each)
            except (ApiError, Unreachable):
                # Reading its objects says so, or works: then they are looked at without a watch.
                self._not_found.add(each)
                continue
            self._not_found.discard(each)
            if served is not None and self._group is not None and each not in self._running:
                self._running[each] = self._group.create_task(self._follow(each, served))

    def blind(self, kinds: frozenset[KindKey]) -> bool:
        """Whether objects of these kinds may change without an event."""
        return bool(kinds & (self._not_found | self._running.keys() - self._begun))

    async def refused(self, kinds: frozenset[KindKey]) -> Verdict | None:
        """The right without which these kinds cannot be watched, if one is known to be missing."""
        for each in sorted(kinds & self._troubles.keys()):
            async with self._turn:
                verdict = await self._lacks(each)
            if verdict is not None:
                return verdict
        return None

    async def _lacks(self, kind: KindKey) -> Verdict | None:
        now = asyncio.get_running_loop().time()
        at, known = self._lacking.get(kind, (-_REVIEWED_SECONDS, None))
        if now - at < _REVIEWED_SECONDS:
            return known
        trouble = self._troubles.get(kind)
        if trouble is None:
            return None
        verdict = await unwatched(self._rights, *trouble)
        self._lacking[kind] = now, verdict
        return verdict

    async def _follow(self, kind: KindKey, served: ServedKind) -> None:
        path = served.path()

        def heard(trouble: str) -> None:
            # An empty text says that the list was answered, which the watch need not be.
            if trouble:
                self._troubles[kind] = served, trouble
                self._begun.discard(kind)

        def begun() -> None:
            self._begun.add(kind)
            self._troubles.pop(kind, None)
            self._lacking.pop(kind, None)

        async def load() -> str:
            return await _list(self._client, path, quote(COMPOSITE_LABEL, safe=""), self._saw)

        async def saw(type_: str, found: Mapping[str, Any]) -> None:
            self._saw(found)

        await follow(
            self._client,
            path,
            load,
            saw,
            selector=COMPOSITE_LABEL,
            accept=METADATA_ONLY,
            heard=heard,
            begun=begun,
        )

    def _saw(self, found: Mapping[str, Any]) -> None:
        uid = (found["metadata"].get("labels") or {}).get(COMPOSITE_LABEL)
        if uid:
            self._changed(str(uid))
