"""Cascade: when the composites of which definition are deleted.

Deletions may take long, and be refused. So they get only some of the workers, a few seconds in turn; and
what nobody can delete is tried less and less often.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import ObjectMeta
from crdkeeper.cluster.resources.compositedeletion import ListPlace, delete_composites
from crdkeeper.cluster.resources.composites import get_composite_definition
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent, alone
from crdkeeper.controllers.compositeresourcedefinition.refusing import Trouble
from crdkeeper.core.migration.pace import backoff

_AT_ONCE: Final = 2
"""Fewer than the queue has workers, so that other definitions never wait for slow deletions."""
_SOON_SECONDS: Final = 0.25
_TURN_SECONDS: Final = 2.0
"""Until the next attempt, if an event comes while nothing can be deleted."""
_LOOK_SECONDS: Final = 0.5
"""Between looks at those that wait for a turn, all together: each lists composites."""
_CALL_SECONDS: Final = 4.0
"""Within which one whose turn it is has to come; or else another one is called, too."""
_COMING_SECONDS: Final = 15.0
"""The same, once somebody looks at it: to count its composites may take ten."""
_LONGEST_TURN_SECONDS: Final = 15.0
"""The same, after many attempts without an effect."""
_FIRST_SECONDS: Final = 15.0
_LONGEST_SECONDS: Final = 300.0
"""Between attempts, while nothing can be deleted and no event comes."""


@dataclass(slots=True)
class _Deletion:
    """That of one CRD's composites."""

    crd_uid: str
    place: ListPlace = field(default_factory=ListPlace)
    deleted: int = 0
    """Since the beginning of the list."""
    failed: Trouble | None = None
    """Since the beginning of the list."""
    failure: Trouble | None = None
    """What to report: of this way through the list, or else of the one before."""
    fruitless: int = 0
    """How often in a row nothing could be deleted in all of the list."""
    earliest: float = 0.0
    """In the loop's time: an event does not lead to an attempt before."""
    pause: float = _SOON_SECONDS
    """Seconds until the next attempt, if no event comes before."""


@dataclass(slots=True)
class _Wait:
    """That of one definition for its turn."""

    of: ObjectMeta
    """The definition that asked, without its resourceVersion."""
    look: float
    """In the loop's time: it is looked at then, if it is not called before."""
    until: float = inf
    """Once it was called: others are called if it has not asked by then."""
    comes: float = -inf
    """In the loop's time: when somebody has begun to look at it, and has not asked yet."""
    late: bool = False
    """Whether others were called. It still has its turn before them if it comes first."""


class CompositeDeletions:
    """The deletions of all definitions. Calls `called` with the name of one whose turn comes."""

    def __init__(self, client: Client, dues: Dues, called: Callable[[str], None]) -> None:
        self._client = client
        self._dues = dues
        self._called = called
        self._known: dict[str, _Deletion] = {}
        self._running = 0
        self._waiting: dict[str, _Wait] = {}
        """In the order in which they take turns."""
        self._next_call: asyncio.TimerHandle | None = None

    async def delete(self, definition: CompositeResourceDefinition, crd: Mapping[str, Any]) -> int:
        """Delete composites for some seconds if it is their turn, and return how many.

        Raises the first ApiError or Unreachable of what could not be deleted, also if it is not their turn;
        or that of a list that failed, for a while.
        """
        name, uid = definition.metadata.name, crd["metadata"]["uid"]
        known = self._known.get(name)
        if known is None or known.crd_uid != uid:
            known = self._known[name] = _Deletion(uid)
        now = asyncio.get_running_loop().time()
        deleted = 0
        if self._dues.rests(name, Sent.DELETE_COMPOSITES, uid):
            known.pause = _LONGEST_SECONDS
            self._dues.repeat(name, Sent.DELETE_COMPOSITES)
        if now < known.earliest:
            known.pause = known.earliest - now
        elif not self._has_turn(definition.metadata, now):
            known.pause = self._waiting[name].look - now
        else:
            self._running += 1
            # If it fails, the pause after that decides.
            known.pause = _LONGEST_SECONDS
            try:
                deleted = await self._dues.send(
                    name, Sent.DELETE_COMPOSITES, uid, lambda: self._pass(definition, crd, known)
                )
            finally:
                self._running -= 1
                self._call()
        if known.failure is not None:
            # The same one each time: without the frames of the last time.
            raise alone(known.failure)
        return deleted

    def pause(self, name: str) -> float | None:
        """Seconds until the next attempt; None if nothing is being deleted."""
        known = self._known.get(name)
        return known.pause if known is not None else None

    def wait(self, name: str, seen: ObjectMeta | None) -> float:
        """Seconds for which a look at the definition would only find that it waits for its turn.

        0 if it does not wait, or if `seen`, its metadata without resourceVersion, is no longer what asked.
        """
        wait = self._waiting.get(name)
        if wait is None:
            return 0.0
        now = asyncio.get_running_loop().time()
        if wait.of == seen and now < wait.look and not self._is_next(name):
            return wait.look - now
        wait.comes = now
        return 0.0

    def looked(self, name: str) -> None:
        """A look at the definition has ended. If it did not ask for a turn, it does not wait for one."""
        wait = self._waiting.get(name)
        if wait is not None and wait.comes > -inf:
            del self._waiting[name]
            self._call()

    def forget(self, name: str) -> None:
        """Composites of this definition are not to be deleted, or not any more."""
        self._known.pop(name, None)
        if self._waiting.pop(name, None) is not None:
            self._call()

    def _has_turn(self, asks: ObjectMeta, now: float) -> bool:
        self._pass_over(now)
        name, look = asks.name, now + max(_TURN_SECONDS, _LOOK_SECONDS * len(self._waiting))
        # One that waits already keeps its place.
        wait = self._waiting.setdefault(name, _Wait(asks, look))
        if self._is_next(name):
            del self._waiting[name]
            return True
        wait.of, wait.look = asks.model_copy(update={"resource_version": None}), look
        wait.until, wait.comes, wait.late = inf, -inf, False
        return False

    def _is_next(self, name: str) -> bool:
        return self._running < _AT_ONCE and (self._waiting[name].late or name in self._next())

    def _next(self) -> list[str]:
        """Those who are called."""
        return [name for name, each in self._waiting.items() if not each.late][: _AT_ONCE - self._running]

    def _call(self) -> None:
        """Call those whose turn it is, and if they do not come, the next ones."""
        if self._next_call is not None:
            self._next_call.cancel()
            self._next_call = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._pass_over(now)
        names = self._next()
        if names:
            self._next_call = loop.call_at(now + _CALL_SECONDS, self._call)
        for name in names:
            wait = self._waiting[name]
            wait.until = min(wait.until, now + _CALL_SECONDS)
            self._called(name)

    def _pass_over(self, now: float) -> None:
        for each in self._waiting.values():
            each.late = each.late or now >= max(each.until, each.comes + _COMING_SECONDS)

    async def _pass(
        self, definition: CompositeResourceDefinition, crd: Mapping[str, Any], known: _Deletion
    ) -> int:
        async def wanted() -> bool:
            return await self._is_cascade(definition)

        result = await delete_composites(self._client, crd, known.place, wanted)
        known.deleted += result.deleted
        known.failed = known.failed or result.failure
        known.failure = known.failed or known.failure
        known.pause, known.earliest = _SOON_SECONDS, 0.0
        if not result.complete:
            return result.deleted
        known.failure = known.failed
        if known.deleted:
            known.fruitless = 0
            known.pause = rest = _TURN_SECONDS
        else:
            known.pause = backoff(known.fruitless, _FIRST_SECONDS, _LONGEST_SECONDS)
            rest = backoff(known.fruitless, _TURN_SECONDS, _LONGEST_TURN_SECONDS)
            known.fruitless += 1
        # All of the list was read for that, also what only waits for its finalizers.
        known.earliest = asyncio.get_running_loop().time() + rest
        known.deleted, known.failed = 0, None
        return result.deleted

    async def _is_cascade(self, definition: CompositeResourceDefinition) -> bool:
        """Whether the definition still asks for that."""
        found = await get_composite_definition(self._client, definition.metadata.name)
        if found is None:
            return False
        now = CompositeResourceDefinition.model_validate(found)
        return now.metadata.uid == definition.metadata.uid and now.spec.deletion == "Cascade"
