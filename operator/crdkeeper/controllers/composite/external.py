"""Watches single objects by their names: those that externalRefs of composites read.

One watch for each object, whatever number of composites reads it. There may be more of them than the API
server should serve watches: composites that read another one are looked at from time to time. A watch is the
place of the tenant who began it, and of whom else reads the object once that one does not any more.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import METADATA_ONLY, METADATA_ONLY_LIST, ApiError, Client
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.cluster.transport.watches import follow, listed
from crdkeeper.controllers.composite.lanes import tenant_of
from crdkeeper.core.templates.namespaces import Identity

_MOST: Final = 200
_FOR_ALL: Final = 100
"""Of these: whoever comes first."""
_EACH: Final = 20
"""Who has so many gets no more of the others: names may be of objects that do not exist."""
_REFUSALS: Final = (400, 403, 404, 405)
"""Answers to which a watch does not begin by being tried again and again."""
_GRANTED_SECONDS: Final = 5.0
"""Within so long, a right that was given has an effect."""
_REFUSED_SECONDS: Final = 300.0
_MOST_REFUSED: Final = 1_000
"""Known to be refused; one that is forgotten is tried earlier."""
_SECONDS: Final = 20.0
_NEWS_SECONDS: Final = 0.02
"""Many events in a row lead to one pass."""
_UNLIKE_SECONDS: Final = 1.0
"""What was seen is not what was read: nobody knows which is newer, and a watch can stay behind for long."""

ExternalObject = tuple[ServedKind, Identity]


@dataclass(slots=True)
class _Watched:
    tenant: str
    """Whose place it takes."""
    readers: dict[str, str] = field(default_factory=dict)
    """By the key of a composite: the resourceVersion that it has read, empty if there was no object."""
    version: str = ""
    """What was seen last."""
    begun: bool = False
    """Whether changes are seen."""
    task: asyncio.Task[None] | None = None


class ExternalWatches:
    """Those that are read now. Calls `changed` with the key of each composite that has to read again, and in
    how many seconds.
    """

    def __init__(self, client: Client, changed: Callable[[str, float], None]) -> None:
        self._client = client
        self._changed = changed
        self._watched: dict[ExternalObject, _Watched] = {}
        self._read: dict[str, frozenset[ExternalObject]] = {}
        """By the key of a composite."""
        self._places: Counter[str] = Counter()
        """By tenant."""
        self._refused: OrderedDict[ExternalObject, float] = OrderedDict()
        """Until when not to ask again, in the loop's time."""
        self._group: asyncio.TaskGroup | None = None

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Let the watches be tasks of this group."""
        self._group = group

    def keep(self, key: str, read: Mapping[ExternalObject, str]) -> bool:
        """A composite reads these objects, at these resourceVersions. Returns whether all are watched."""
        self._leave(key, read)
        whole = True
        for each, version in read.items():
            watched = self._watched.get(each) or self._begin(each, tenant_of(key))
            if watched is None:
                whole = False
                continue
            watched.readers[key] = version
            if watched.begun and watched.version != version:
                self._changed(key, _UNLIKE_SECONDS)
            whole = whole and watched.begun
        if read:
            self._read[key] = frozenset(read)
        return whole

    def _begin(self, of: ExternalObject, tenant: str) -> _Watched | None:
        """Watch another object, if there is a place for it."""
        now, number = asyncio.get_running_loop().time(), len(self._watched)
        free = number < _FOR_ALL or (number < _MOST and self._places[tenant] < _EACH)
        if self._group is None or not free or now < self._refused.get(of, now):
            return None
        watched = self._watched[of] = _Watched(tenant)
        self._places[tenant] += 1
        watched.task = self._group.create_task(self._follow(of, watched))
        return watched

    def _end(self, of: ExternalObject) -> None:
        self._give(self._watched.pop(of), "")

    def _give(self, watched: _Watched, tenant: str) -> None:
        """Let its place be another tenant's, or nobody's."""
        self._places[watched.tenant] -= 1
        if tenant:
            self._places[tenant] += 1
        # Tenants come and go.
        self._places = +self._places
        watched.tenant = tenant

    def forget(self, key: str) -> None:
        """The composite is gone."""
        self._leave(key, {})

    def _leave(self, key: str, stay: Mapping[ExternalObject, str]) -> None:
        for each in self._read.pop(key, frozenset()) - stay.keys():
            watched = self._watched.get(each)
            if watched is None:
                continue
            watched.readers.pop(key, None)
            if not watched.readers and watched.task is not None:
                watched.task.cancel()
                self._end(each)
            elif tenant_of(key) == watched.tenant:
                others = [tenant_of(reader) for reader in watched.readers]
                if watched.tenant not in others:
                    self._give(watched, others[0])

    async def _follow(self, of: ExternalObject, watched: _Watched) -> None:
        served, identity = of
        path = served.path(identity.namespace)
        selector = f"metadata.name={identity.name}"

        def seen(version: str) -> None:
            watched.version = version
            for key, read in [*watched.readers.items()]:
                if read != version:
                    self._changed(key, _NEWS_SECONDS)

        def heard(trouble: str) -> None:
            if trouble and watched.begun:
                # They are looked at without it from now on.
                watched.begun = False
                for key in [*watched.readers]:
                    self._changed(key, _NEWS_SECONDS)

        refused: float | None = None

        def begun() -> None:
            nonlocal refused
            watched.begun, refused = True, None

        def ends(error: ApiError) -> bool:
            nonlocal refused
            if error.code not in _REFUSALS:
                return False
            now = asyncio.get_running_loop().time()
            refused = now if refused is None else refused
            return now - refused >= _GRANTED_SECONDS

        async def load() -> str:
            query = f"?fieldSelector={quote(selector, safe='')}"
            request = self._client.request("GET", path + query, accept=METADATA_ONLY_LIST)
            items, since = listed(await within(_SECONDS, request))
            seen(_version(items[0]) if items else "")
            return since

        async def saw(type_: str, found: Mapping[str, Any]) -> None:
            seen("" if type_ == "DELETED" else _version(found))

        try:
            await follow(
                self._client,
                path,
                load,
                saw,
                fields=selector,
                accept=METADATA_ONLY,
                heard=heard,
                begun=begun,
                ends=ends,
            )
        except ApiError as error:
            if error.code not in _REFUSALS:
                raise
            # Others may have the place: those who read it are looked at from time to time.
            if self._watched.get(of) is watched:
                self._end(of)
            self._refused[of] = asyncio.get_running_loop().time() + _REFUSED_SECONDS
            self._refused.move_to_end(of)
            if len(self._refused) > _MOST_REFUSED:
                self._refused.popitem(last=False)


def _version(found: Mapping[str, Any]) -> str:
    return str(found["metadata"]["resourceVersion"])
