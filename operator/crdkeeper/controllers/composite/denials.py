"""Definitions whose composites the composer may not work on: none is read until a review allows it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.controllers.rights import KnownRights, rights_to_compose
from crdkeeper.core.composer.offering import right_missing_to_compose
from crdkeeper.core.diagnosis.verdict import Verdict

_log = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 15.0


class Denials:
    """One review for each definition in a while, instead of a denied request for each of its composites."""

    def __init__(
        self, rights: KnownRights, allowed: Callable[[str], None], changed: Callable[[str], None]
    ) -> None:
        """Both are called with the name of a definition.

        `allowed` if its composites need not wait any more, and `changed` then and if they have to, or when
        other rights are missing.
        """
        self._rights = rights
        self._changed = changed
        self._allowed = allowed
        self._denied: dict[str, Verdict] = {}
        """By definition for which a right is known to be missing: what to say."""
        self._turns: dict[str, asyncio.Lock] = {}
        """By definition: what is denied while a review is under way waits for it."""
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
        name = definition.metadata.name
        turn = self._turns.setdefault(name, asyncio.Lock())
        async with turn:
            if self._turns.get(name) is not turn:
                return  # the definition has gone meanwhile
            if asyncio.get_running_loop().time() >= self._next.get(name, 0.0):
                await self._review(definition)

    def verdict(self, name: str) -> Verdict | None:
        """What to say about a definition; None if no right is known to be missing."""
        return self._denied.get(name)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._denied.pop(name, None)
        self._next.pop(name, None)
        self._turns.pop(name, None)

    async def _review(self, definition: CompositeResourceDefinition) -> None:
        name = definition.metadata.name
        self._next[name] = asyncio.get_running_loop().time() + _PAUSE_SECONDS
        wanted = rights_to_compose(definition.spec.group, definition.spec.names.plural)
        missing = [str(each) for each in await self._rights.review(wanted) or ()]
        if name not in self._next:
            return  # the definition has gone meanwhile
        if missing:
            _log.warning("The composites of %s wait for the right to %s", name, ", ".join(missing))
            self._denied[name] = right_missing_to_compose(definition, missing)
            self._changed(name)
        elif name in self._denied:
            del self._denied[name]
            self._allowed(name)
            self._changed(name)
