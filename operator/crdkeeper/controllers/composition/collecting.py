"""Deletes CompositionRevisions that nobody needs: only after a look at all composites that could use them."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from prometheus_client import Counter

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.definitionpolicy import LabelSelector
from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.composites import composites_path, get_composite_definition
from crdkeeper.cluster.resources.compositions import delete_composition_revision, list_revisions_in_use
from crdkeeper.cluster.resources.definitions import get_definition_object, list_definition_names
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composer.wording import own_rules
from crdkeeper.core.revisions.content import SeenRevision
from crdkeeper.core.revisions.retention import superfluous
from crdkeeper.core.templates.kinds import group_of

_log = logging.getLogger(__name__)
_PAUSE: Final = 10.0
"""Between two looks at the composites for one Composition: tenants choose how many there are."""
_REST: Final = 10.0
"""Or this multiple of the time that a look took, if it is longer."""
_FAILED_SECONDS: Final = 60.0
_PASSING: Final = frozenset((404, 409, 410, 429))
"""Besides those of the server: nobody objects, but something is in the way."""
_DELETE: Final = Right("delete", GROUP, CompositionRevision.plural)
_RULE: Final = f"{{apiGroups: [{_DELETE.group}], resources: [{_DELETE.resource}], verbs: [{_DELETE.verb}]}}"


class RevisionCollector:
    """Deletes revisions beyond revisionHistoryLimit, and those of Compositions that are gone."""

    def __init__(self, client: Client, again: Callable[[str, float], None], writes: Counter) -> None:
        """`again` is called with a Composition to be looked at in so many seconds."""
        self._client = client
        self._writes = writes
        self._again = again
        self._rights = KnownRights(client)
        self._due: dict[str, float] = {}
        self._kept: dict[str, str] = {}
        self._turn = asyncio.Lock()
        """Of looks: each takes a page of composites."""
        self._line: dict[str, None] = {}
        """The Compositions that wait for their turn, in order."""
        self._called = ""
        """The one whose turn it is, until it takes it."""
        self._late: set[str] = set()
        """Those that were called and did not come in time: they take the turn once they find it free."""

    def kept(self, name: str) -> str | None:
        """Why a Composition has revisions that nobody needs, if only a person can help; or else empty.

        None if this process does not know yet.
        """
        return self._kept.get(name)

    async def collect(self, name: str, limit: int | None, own: Sequence[SeenRevision]) -> None:
        """Delete what may go of a Composition's revisions; `limit` is None if the Composition is gone.

        While there is a look for another one, do nothing: the Composition is called when it is its turn.
        """
        late = name in self._late
        self._late.discard(name)
        if not superfluous(own, limit):
            self._line.pop(name, None)
            self._kept[name] = ""
            if limit is None and not own:
                self._due.pop(name, None)
                self._kept.pop(name, None)
            self._pass_on(name)
            return
        loop = asyncio.get_running_loop()
        if (left := self._due.get(name, 0.0) - loop.time()) > 0.0:
            self._again(name, left)
            self._pass_on(name)
            return
        if self._turn.locked() or not (late or self._called in ("", name)):
            # Never in a worker: those that need no look must not wait for the workers that do.
            if self._called == name:  # one that came late has its turn: it keeps its place
                self._line = {name: None, **self._line}
            else:
                self._line.setdefault(name)
            self._pass_on(name)
            return
        self._line.pop(name, None)
        if self._called == name:
            self._called = ""
        try:
            async with self._turn:
                await self._look(name, limit, own)
        finally:
            self._call_next()

    def _call_next(self) -> None:
        if self._line and not self._called and not self._turn.locked():
            self._called = next(iter(self._line))
            del self._line[self._called]
            self._again(self._called, 0.0)
            # One that cannot be read does not come, and must not hold up the line.
            asyncio.get_running_loop().call_later(_PAUSE, self._does_not_come, self._called)

    def _does_not_come(self, name: str) -> None:
        """Pass on, but not for good: where all come too late, there would be no look any more."""
        if self._called == name:
            self._late.add(name)
            self._pass_on(name)

    def _pass_on(self, name: str) -> None:
        """Call the next one if this one was called, and does not take its turn."""
        if self._called == name:
            self._called = ""
            self._call_next()

    async def _look(self, name: str, limit: int | None, own: Sequence[SeenRevision]) -> None:
        began = asyncio.get_running_loop().time()
        try:
            await self._delete(own, limit)
        except (ApiError, Unreachable) as error:
            _log.warning("CompositionRevisions of %s are kept for now: %s", name, error)
            self._kept[name] = await self._lasting(error) if limit is not None else ""
            self._again(name, self._rest(name, began, _FAILED_SECONDS))
            return
        except Exception:
            # Such as a definition that this release cannot read: the queue tries again much sooner, in vain.
            pause = self._rest(name, began, _FAILED_SECONDS)
            _log.warning(
                "The look for revisions of %s failed; the next one is in %.0f s", name, pause, exc_info=True
            )
            raise
        self._kept[name] = ""
        self._rest(name, began, _PAUSE)

    def _rest(self, name: str, began: float, shortest: float) -> float:
        """Have no look for a Composition for as many seconds as this returns."""
        now = asyncio.get_running_loop().time()
        pause = max(shortest, _REST * (now - began))
        self._due[name] = now + pause
        return pause

    async def _delete(self, own: Sequence[SeenRevision], limit: int | None) -> None:
        in_use: set[str] = set()
        selectors: list[LabelSelector | None] = []
        for group, kind in {(group_of(each.api_version), each.kind) for each in own}:
            for crd in await self._crds(group, kind):
                in_use |= await self._used(crd)
                selectors.append(await self._selector(crd["metadata"]["name"]))
        for each in superfluous(own, limit, in_use, next(filter(None, selectors), None)):
            await delete_composition_revision(self._client, each)
            self._writes.labels("revision").inc()
            _log.info("CompositionRevision %s was deleted: no composite uses it.", each.name)

    async def _lasting(self, error: ApiError | Unreachable) -> str:
        """What is in the way, with the rule that is missing; empty if it may pass by itself."""
        if isinstance(error, Unreachable) or error.code >= 500 or error.code in _PASSING:
            return ""
        if error.code == 403 and await self._rights.missing([_DELETE]):
            return f"{error.message}. {own_rules(_RULE)}"
        return error.message

    async def _crds(self, group: str, kind: str) -> list[Mapping[str, Any]]:
        """Those of a kind: of several, only one is served, but others may have composites."""
        names = [each for each in await list_definition_names(self._client) if each.endswith(f".{group}")]
        found = [await get_definition_object(self._client, each) for each in names]
        return [
            each
            for each in found
            if each is not None and each["spec"]["group"] == group and each["spec"]["names"]["kind"] == kind
        ]

    async def _used(self, crd: Mapping[str, Any]) -> set[str]:
        collection = composites_path(crd)
        if collection is None:
            raise Unreachable(f"no version of {crd['metadata']['name']} is served")
        return await list_revisions_in_use(self._client, collection)

    async def _selector(self, name: str) -> LabelSelector | None:
        found = await get_composite_definition(self._client, name)
        if found is None:
            return None
        return CompositeResourceDefinition.model_validate(found).spec.default_composition_revision_selector
