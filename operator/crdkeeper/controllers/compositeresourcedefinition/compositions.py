"""Knows all Compositions, reduced to whom they are for.

Not by Kopf, which does not report when its list is complete: after each start of the composer, every
definition would seem to have no Composition for a moment, and its status would be written twice.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from crdkeeper.api.composition import Composition
from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.pages import pages
from crdkeeper.cluster.transport.watches import follow
from crdkeeper.core.composer.offering import SeenComposition, not_listed, seen_composition
from crdkeeper.core.diagnosis.verdict import Verdict

_log = logging.getLogger(__name__)
_PATH = f"/apis/{GROUP}/{VERSION}/{Composition.plural}"
_PAGE = 100


class SeenCompositions:
    """Calls `changed` with each Composition that came, went or changed: then as it was, and as it is.

    With None when they have become known after they could not be listed, or may not be listed any more.
    """

    def __init__(self, client: Client, changed: Callable[[SeenComposition | None], None]) -> None:
        self._client = client
        self._changed = changed
        self._known: dict[str, SeenComposition] = {}
        self._unknown: Verdict | None = not_listed()
        self.loaded = asyncio.Event()
        """Set once they have been listed, or cannot be listed for now."""

    def all(self) -> tuple[SeenComposition, ...] | Verdict:
        """All of them, or why they cannot be listed."""
        return tuple(self._known.values()) if self._unknown is None else self._unknown

    async def follow(self) -> None:
        """Keep them up to date, until cancelled."""
        await follow(self._client, _PATH, self._load, self._saw, heard=self._heard)

    def _heard(self, trouble: str) -> None:
        self.loaded.set()

    async def _load(self) -> str:
        try:
            return await self._list()
        except ApiError as error:
            if error.code == 403:
                # What was known before gets old, and nothing says so.
                self._deny(not_listed(error.message))
            raise

    def _deny(self, denied: Verdict) -> None:
        before, self._unknown = self._unknown, denied
        if before != denied and self.loaded.is_set():
            self._changed(None)

    async def _list(self) -> str:
        found: dict[str, SeenComposition] = {}
        version = ""
        async for body in pages(self._client, f"{_PATH}?limit={_PAGE}"):
            for each in body["items"]:
                seen = _read(each)
                if seen is not None:
                    found[seen.name] = seen
            version = version or body["metadata"]["resourceVersion"]
        before, self._known = self._known, found
        unknown, self._unknown = self._unknown, None
        if unknown is not None and self.loaded.is_set():
            self._changed(None)
        for each in {*before.values()} ^ {*found.values()}:
            self._changed(each)
        return version

    async def _saw(self, type_: str, found: Mapping[str, Any]) -> None:
        name = found["metadata"]["name"]
        before = self._known.pop(name, None)
        now = _read(found) if type_ != "DELETED" else None
        if now is not None:
            self._known[name] = now
        if before != now:
            for each in filter(None, (before, now)):
                self._changed(each)


def _read(found: Mapping[str, Any]) -> SeenComposition | None:
    try:
        return seen_composition(found)
    except (KeyError, TypeError, AttributeError):
        _log.error("Composition %s cannot be read and is ignored.", found["metadata"]["name"])
        return None
