"""How many composites there are, or why that cannot be said; and which of them hold up a deletion."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import (
    FirstComposites,
    composites_path,
    first_composites,
    is_served,
    page_of_first,
)
from crdkeeper.cluster.transport.boundedpages import PageSize
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent
from crdkeeper.controllers.compositeresourcedefinition.refusing import right_missing
from crdkeeper.controllers.compositeresourcedefinition.watching import CompositeWatches
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.fence import takes_composites
from crdkeeper.core.composer.holding import Waiting
from crdkeeper.core.composer.plan import is_controlled
from crdkeeper.core.composer.wording import SHOWN
from crdkeeper.core.diagnosis.verdict import Verdict

_LOOKED_AT: Final = 500
"""The most composites among which those are sought that hold up a deletion."""
_ALONE_SECONDS: Final = 300.0
"""For how long only the first one is asked for after more could not be listed."""


@dataclass(frozen=True, slots=True)
class CompositeCount:
    """The composites of a definition."""

    number: int | None
    first: tuple[str, ...] = ()
    waiting: Waiting = field(default_factory=Waiting)
    """Those that hold up a deletion of the definition or the CRD."""
    hidden: Verdict | None = None
    """Why they cannot be counted, or not be watched."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """How many composites of a definition are asked for."""

    most: int
    """The most that are of use."""
    size: PageSize
    until: float = inf
    """In the loop's time: then it is tried with `most` again."""


class CompositeCounts:
    """Counts the composites of each definition, and has the definition's own watched from then on.

    The number comes with a list of one. In a longer list, a single composite that a conversion webhook does
    not convert would decide whether they can be counted, which would alternate with the length.
    """

    def __init__(self, client: Client, rights: KnownRights, watches: CompositeWatches, dues: Dues) -> None:
        self._client = client
        self._rights = rights
        self._watches = watches
        self._dues = dues
        self._asked: dict[str, _Asked] = {}
        """By definition: kept, so that what takes too long once does not do so each time."""

    async def of(
        self, definition: CompositeResourceDefinition, live: Mapping[str, Any] | None, *, composed: bool
    ) -> CompositeCount:
        """Count the composites of a CRD, and watch them if it is the definition's.

        `composed` is whether there is a revision for them, which makes the rule larger that may be missing.
        After a failure they are counted again when the pause is over.
        """
        watches = self._watches
        name, going = definition.metadata.name, definition.metadata.deletion_timestamp is not None
        # In a deletion it matters whether there may be any.
        if live is None or not (takes_composites(live) if going else is_served(live)):
            watches.stop(name)
            # Before a CRD is established, its deletion deletes no object, even if some were stored under an
            # earlier CRD of that name. Source: apiextensions-apiserver, pkg/controller/finalizer.
            return CompositeCount(0)
        path, uid = composites_path(live), live["metadata"]["uid"]
        if path is None:
            watches.stop(name)
            return CompositeCount(None, hidden=Verdict(reasons.NOT_LISTED, "no version of the CRD is served"))
        ours = is_controlled(live, definition.metadata.uid)
        if not ours:
            watches.stop(name)
        deleted = going or "deletionTimestamp" in live["metadata"]
        most = _LOOKED_AT if deleted else 1
        # Whoever edits the definition does not wait for the pause.
        key = uid, path, definition.metadata.generation
        try:
            found = await self._dues.send(name, Sent.COUNT, key, lambda: self._first(name, path, most))
        except (ApiError, Unreachable) as error:
            if ours:
                watches.keep(name, uid, path, "")
            if isinstance(error, Unreachable):
                return CompositeCount(None, hidden=_not_listed(str(error)))
            if error.code == 403:
                denied = await right_missing(self._rights, definition, error.message, composed=composed)
                return CompositeCount(None, hidden=denied)
            # Also 404: an API server that does not serve them yet says nothing about their number.
            return CompositeCount(None, hidden=_not_listed(error.message))
        if ours:
            watches.keep(name, uid, path, found.resource_version)
        refused, failing = watches.refused(name), watches.failing(name)
        hidden = (
            await right_missing(self._rights, definition, refused, composed=composed) if refused else None
        )
        if failing:
            hidden = Verdict(
                reasons.NOT_LISTED, f"the API server cannot serve a watch of the composites: {failing}"
            )
        waiting = found.waiting if deleted else Waiting()
        return CompositeCount(found.number, found.names[:SHOWN], waiting, hidden)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._asked.pop(name, None)

    async def _first(self, name: str, path: str, most: int) -> FirstComposites:
        """The first composites; the first one alone if the API server fails to return more."""
        now = asyncio.get_running_loop().time()
        asked = self._asked.get(name)
        if asked is None or asked.most != most or now >= asked.until:
            asked = self._asked[name] = _Asked(most, page_of_first(most))
        several = asked.size.limit > 1
        try:
            return await first_composites(self._client, path, asked.size)
        except (ApiError, Unreachable) as error:
            if not several or (isinstance(error, ApiError) and error.code < 500):
                raise
        asked = self._asked[name] = _Asked(most, page_of_first(1), now + _ALONE_SECONDS)
        return await first_composites(self._client, path, asked.size)


def _not_listed(said: str) -> Verdict:
    return Verdict(reasons.NOT_LISTED, f"the API server cannot list the composites: {said}")
