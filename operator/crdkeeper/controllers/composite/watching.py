"""Watches composites, and the objects that they are composed of, for what a reconciliation depends on.

Only metadata, and of that only what tells whether something has changed: there may be many.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import orjson

from crdkeeper.cluster.resources.composed import list_metadata
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import METADATA_ONLY, ApiError, Client, Unreachable
from crdkeeper.cluster.transport.hunglists import uncached
from crdkeeper.cluster.transport.watches import follow
from crdkeeper.controllers.composite.news import UNKNOWN, Token, token_of
from crdkeeper.controllers.composite.placing import Place, Placed, Version, label_of, place_of
from crdkeeper.controllers.composite.refusing import unwatched
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL, FINALIZER
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.kinds import group_of

_REVIEWED_SECONDS: Final = 10.0
"""How long it is known which right lacks."""
_LISTED_SECONDS: Final = 30.0
"""How long the first list of a kind is waited for: tenants decide how many objects have the label."""
_SEEN: Final = ("uid", "generation", "labels", "annotations", "finalizers", "deletionTimestamp")
"""Of a composite: what matters besides the status, of which only what others have written does."""


@dataclass(frozen=True, slots=True)
class SeenComposite:
    """A composite, reduced to what tells whether it has to be looked at."""

    uid: str
    """Empty for one that is gone."""
    held: bool
    """Whether it has the composer's finalizer."""
    digest: bytes


GONE: Final = SeenComposite("", False, b"")
"""What is seen of one that is gone."""


class CompositeList:
    """The composites of one definition. Calls `changed` with each that came, went or changed."""

    def __init__(
        self,
        client: Client,
        path: str,
        changed: Callable[[Place, SeenComposite], None],
        known: Iterable[tuple[Place, SeenComposite]] = (),
    ) -> None:
        """`known` are those that were seen before: it is told, too, which of them went meanwhile."""
        self._client = client
        self._path = path
        self._changed = changed
        self._known = dict(known)

    async def follow(self) -> None:
        """Run until cancelled."""
        await follow(self._client, self._path, self._load, self._saw, accept=METADATA_ONLY)

    def all(self) -> list[tuple[Place, SeenComposite]]:
        """All that are known."""
        return list(self._known.items())

    @property
    def number(self) -> int:
        """How many are known."""
        return len(self._known)

    async def _load(self) -> str:
        # The watch that follows has to wait for the cache anyway.
        if said := await uncached(self._client, self._path):
            raise Unreachable(said)
        found: dict[Place, SeenComposite] = {}

        def take(each: Mapping[str, Any]) -> None:
            found[place_of(each)] = seen_composite(each)

        version = await list_metadata(self._client, self._path, "", take)
        for place in self._known.keys() | found.keys():
            self._take(place, found.get(place))
        return version

    async def _saw(self, type_: str, found: Mapping[str, Any]) -> None:
        self._take(place_of(found), seen_composite(found) if type_ != "DELETED" else None)

    def _take(self, place: Place, now: SeenComposite | None) -> None:
        before = self._known.pop(place, None)
        if now is not None:
            self._known[place] = now
        if before != now:
            self._changed(place, now or GONE)


def seen_composite(found: Mapping[str, Any]) -> SeenComposite:
    """Reduce a composite, of which the metadata is enough."""
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


def _nobody(_: str) -> None:
    """Where nobody waits."""


class ObjectWatches:
    """One watch for each kind that is composed. Calls `changed` with the uid of an object's composite, and
    the state that the object has now; and `listed` with what has waited for a kind to be listed.
    """

    def __init__(
        self,
        client: Client,
        served: KindPaths,
        rights: KnownRights,
        changed: Callable[[str, Token], None],
        listed: Callable[[str], None] = _nobody,
    ) -> None:
        self._client = client
        self._rights = rights
        self._served = served
        self._changed = changed
        self._listed = listed
        self._running: dict[KindKey, asyncio.Task[None]] = {}
        self._placed: dict[KindKey, Placed] = {}
        """The objects of kinds that were listed, and what was heard since."""
        self._filling: dict[KindKey, Placed] = {}
        """The same, of lists that have not ended."""
        self._waiting: dict[KindKey, tuple[float, set[str]]] = {}
        """Of kinds that are listed for the first time: until when to wait for that, and who does."""
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
                self._waiting[each] = asyncio.get_running_loop().time() + _LISTED_SECONDS, set()
                self._running[each] = self._group.create_task(self._follow(each, served))

    def wait(self, kinds: frozenset[KindKey], key: str) -> float | None:
        """In how many seconds to go on at the latest, because some of these kinds are being listed; or None.

        A list by the watch is one for all composites. When it has ended or failed, `listed` is called.
        """
        now, until = asyncio.get_running_loop().time(), 0.0
        for each in kinds & self._waiting.keys():
            end, keys = self._waiting[each]
            if end > now:
                keys.add(key)
                until = max(until, end)
        return until - now if until else None

    def placed(self, group: str, kind: str) -> Placed | None:
        """The objects of a kind that are composites'; None if they have not been listed."""
        keys = [key for key in self._placed if (group_of(key[0]), key[1]) == (group, kind)]
        # A version that is not served any more is not heard of.
        key = max(keys, key=self._begun.__contains__, default=None)
        return self._placed[key] if key is not None else None

    def plain(self, group: str, kind: str, uid: str, place: Place) -> Version | None:
        """The state of an object of a composite, if a watch shows it now, and nothing special about it."""
        begun = self._begun & self._placed.keys()
        known = (each for each in begun if (group_of(each[0]), each[1]) == (group, kind))
        shown = (self._placed[each].plain(uid, place) for each in known)
        return next((each for each in shown if each is not None), None)

    def kinds_of(self, uid: str, namespace: str) -> list[KindKey]:
        """The kinds of which a composite in a namespace, or in none, has objects."""
        return sorted(kind for kind, placed in self._placed.items() if placed.has(uid, namespace))

    def wrote(self, group: str, kind: str, live: Mapping[str, Any]) -> None:
        """The composer has written an object: its event may come late."""
        for known in (self._placed, self._filling):
            for key, placed in known.items():
                if (group_of(key[0]), key[1]) == (group, kind):
                    placed.take(live)

    def drop(self, needed: frozenset[KindKey]) -> None:
        """End the watches of all other kinds."""
        for each in self._running.keys() - needed:
            self._running.pop(each).cancel()
            self._placed.pop(each, None)
            self._filling.pop(each, None)
            self._begun.discard(each)
            self._end_wait(each)
            self._troubles.pop(each, None)
            self._lacking.pop(each, None)
        self._not_found &= needed

    def _end_wait(self, kind: KindKey) -> None:
        _, keys = self._waiting.pop(kind, (0.0, frozenset[str]()))
        for each in keys:
            self._listed(each)

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
                self._end_wait(kind)

        def begun() -> None:
            self._begun.add(kind)
            self._troubles.pop(kind, None)
            self._lacking.pop(kind, None)

        async def load() -> str:
            filling = self._filling[kind] = Placed()

            def take(found: Mapping[str, Any]) -> None:
                if uid := filling.take(found):
                    self._changed(uid, token_of(found))

            try:
                version = await list_metadata(self._client, path, COMPOSITE_LABEL, take)
            finally:
                if self._filling.get(kind) is filling:
                    del self._filling[kind]
            before = self._placed.get(kind)
            self._placed[kind] = filling
            self._end_wait(kind)
            for uid in before.composites() if before is not None else ():
                # What went before this list, and after the last event, is in neither.
                self._changed(uid, UNKNOWN)
            return version

        async def saw(type_: str, found: Mapping[str, Any]) -> None:
            placed = self._placed[kind]
            if type_ == "DELETED":
                placed.drop(found)
            else:
                placed.take(found)
            if uid := label_of(found):
                self._changed(uid, token_of(found))

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
