"""Definitions whose composites the composer may not work on: none is read until a review allows it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.access import missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.controllers.rights import rights_to_compose

_log = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 15.0
_REVIEW_SECONDS: Final = 5.0


class Denials:
    """One review for each definition in a while, instead of a denied request for each of its composites."""

    def __init__(
        self, client: Client, allowed: Callable[[str], None], changed: Callable[[str], None]
    ) -> None:
        """Both are called with the name of a definition.

        `allowed` if its composites need not wait any more, and `changed` then and if they have to.
        """
        self._client = client
        self._changed = changed
        self._allowed = allowed
        self._denied: set[str] = set()
        """The definitions for which a right is known to be missing."""
        self._next: dict[str, float] = {}
        """By definition: in the loop's time, when its rights are reviewed again."""

    async def wait(self, definition: CompositeResourceDefinition) -> float | None:
        """In how many seconds a composite may be looked at, if not now."""
        name = definition.metadata.name
        if name not in self._denied:
            return None
        left = self._next[name] - asyncio.get_running_loop().time()
        if left > 0.0:
            return left
        await self._review(definition)
        return _PAUSE_SECONDS if name in self._denied else None

    async def denied(self, definition: CompositeResourceDefinition) -> None:
        """A request for a composite was denied: a right is missing, or a webhook or policy denies it."""
        if asyncio.get_running_loop().time() >= self._next.get(definition.metadata.name, 0.0):
            await self._review(definition)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._denied.discard(name)
        self._next.pop(name, None)

    async def _review(self, definition: CompositeResourceDefinition) -> None:
        name = definition.metadata.name
        self._next[name] = asyncio.get_running_loop().time() + _PAUSE_SECONDS
        wanted = rights_to_compose(definition.spec.group, definition.spec.names.plural)
        missing: list[str] = []
        try:
            missing = await within(_REVIEW_SECONDS, missing_rights(self._client, wanted))
        except (ApiError, Unreachable) as error:
            _log.warning("The composer's own rights are not known: %s", error)
        if missing:
            _log.warning("The composites of %s wait for the right to %s", name, ", ".join(missing))
            if name not in self._denied:
                self._denied.add(name)
                self._changed(name)
        elif name in self._denied:
            self._denied.discard(name)
            self._allowed(name)
            self._changed(name)
