"""What a controller knows of all objects of one of crdkeeper's kinds, reduced to what decisions need.

Not by Kopf, which does not report when its list is complete: decisions that depend on all objects would be
taken on some of them after each start.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.pages import pages
from crdkeeper.cluster.transport.watches import follow

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_PAGE = 20
"""A Composition can have a megabyte."""


class SeenCollection(Generic[_T]):
    """Calls `changed` with the name of each object that came, went or changed, and what it was and is."""

    def __init__(
        self,
        client: Client,
        path: str,
        read: Callable[[Mapping[str, Any]], _T],
        changed: Callable[[str, _T | None, _T | None], None],
        denied: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`read` reduces an object. Raises KeyError, ValueError, TypeError or AttributeError if it cannot.

        `denied` is called with what the API server says if it denies the list, and with "" once it does not.
        """
        self._denied = denied
        self._client = client
        self._path = path
        self._reduce = read
        self._changed = changed
        self._known: dict[str, _T] = {}
        self._told = 0
        """The newest resourceVersion that the list or the watch has shown."""
        self.loaded = asyncio.Event()
        """Set once they have been listed."""

    def all(self) -> Mapping[str, _T]:
        """All of them, by name."""
        return self._known

    async def follow(self) -> None:
        """Keep them up to date, until cancelled."""
        await follow(self._client, self._path, self._load, self._saw)

    def saw(self, found: Mapping[str, Any]) -> None:
        """Know of an object before the watch does; what the watch has told of it since stands."""
        if int(found["metadata"]["resourceVersion"]) > self._told:
            self._take(found["metadata"]["name"], self._read(found))

    async def _load(self) -> str:
        try:
            version = await self._list()
        except ApiError as error:
            if error.code == 403:
                self._denied(error.message)
            raise
        self._denied("")
        return version

    async def _list(self) -> str:
        found: dict[str, _T] = {}
        version = ""
        async for body in pages(self._client, f"{self._path}?limit={_PAGE}"):
            for each in body["items"]:
                seen = self._read(each)
                if seen is not None:
                    found[each["metadata"]["name"]] = seen
            version = version or body["metadata"]["resourceVersion"]
        for name in self._known.keys() | found.keys():
            self._take(name, found.get(name))
        self._told = int(version)
        self.loaded.set()
        return version

    async def _saw(self, type_: str, found: Mapping[str, Any]) -> None:
        self._told = int(found["metadata"]["resourceVersion"])
        self._take(found["metadata"]["name"], self._read(found) if type_ != "DELETED" else None)

    def _take(self, name: str, now: _T | None) -> None:
        before = self._known.pop(name, None)
        if now is not None:
            self._known[name] = now
        if before != now:
            self._changed(name, before, now)

    def _read(self, found: Mapping[str, Any]) -> _T | None:
        try:
            return self._reduce(found)
        except (KeyError, ValueError, TypeError, AttributeError):
            name, kind = found["metadata"]["name"], found.get("kind")
            _log.error("%s %s cannot be read and is ignored.", kind, name)
            return None
