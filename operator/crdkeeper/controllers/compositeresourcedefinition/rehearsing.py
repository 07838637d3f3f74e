"""Tries updates on the composites that exist, beside other work: a task for each update that needs it.

An attempt reads all composites, whose number a tenant chooses. So the time between two attempts grows with
what one costs, also if it fails: nobody can have the composer read them all the time. And each has a place
for one page only: definitions with many composites, or slow webhooks, do not hold up the others.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.composer.update import FailedRehearsal, Rehearsed
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.report import RehearsalReport

_log = logging.getLogger(__name__)
_AT_ONCE: Final = 2
"""Pages that are read and judged; all rehearsals share one processor."""
_VALID_SECONDS: Final = 10.0
"""How long a rehearsal counts: composites may change, and with them the result."""
_REST: Final = 20.0
"""How long one counts that takes long, as a multiple of its time."""
_LONGEST_REST: Final = 120.0
"""But no longer than this, or than it has taken itself: so it has half of the time at most."""
_OLD_SECONDS: Final = 30.0
"""If a result counts for longer than this, the message says when it was found."""
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 300.0

Place = AbstractAsyncContextManager[None]
"""May be entered many times; whoever is in it has one of the places."""
Rehearse = Callable[[Place], Coroutine[Any, Any, RehearsalReport]]


@dataclass(slots=True)
class _Attempts:
    """At one update."""

    key: object
    known: Rehearsed = field(default_factory=Rehearsed)
    task: "asyncio.Task[None] | None" = None
    """The attempt that is being made."""
    due: float = 0.0
    """When the next one may begin."""
    failures: int = 0
    """In a row."""
    seen: bool = True
    """Whether somebody has seen the last result."""


class _Place(Place):
    """That of one attempt, in which it does all of its work."""

    def __init__(self, places: asyncio.Semaphore, waits: Callable[[bool], None]) -> None:
        """Calls `waits` if there is no place at first, and again with False once there is one."""
        self._places = places
        self._waits = waits
        self._begun = False
        self._since = 0.0
        self.seconds = 0.0
        """How long the attempt has had a place."""

    async def __aenter__(self) -> None:
        must_wait = not self._begun and self._places.locked()
        if must_wait:
            self._waits(True)
        await self._places.acquire()
        if must_wait:
            self._waits(False)
        self._begun, self._since = True, asyncio.get_running_loop().time()

    async def __aexit__(self, *_: object) -> None:
        self._places.release()
        self.seconds += asyncio.get_running_loop().time() - self._since


class Rehearsals:
    """The rehearsals of all definitions. Calls `changed` with the name of each of which more is known."""

    def __init__(self, client: Client, changed: Callable[[str], None]) -> None:
        self._client = client
        self._changed = changed
        self._attempts: dict[str, _Attempts] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    def of(self, name: str, key: object, rehearse: Rehearse) -> Rehearsed:
        """What is known of the update `key` of a definition; begins an attempt if one is due."""
        loop = asyncio.get_running_loop()
        found = self._attempts.get(name)
        if found is None or found.key != key:
            self.end(name)
            found = self._attempts[name] = _Attempts(key)
        if found.task is not None:
            return found.known
        # When there is much to do, nobody comes in time; without this, there would be no end of attempts.
        due = found.due if found.seen else found.due + _LONGEST_REST
        found.seen = True
        if loop.time() >= due:
            found.known = _without_proof(found.known)
            found.task = loop.create_task(self._attempt(name, found, rehearse))
        return found.known

    def end(self, name: str) -> None:
        """Forget the update of a definition, and end an attempt at it."""
        found = self._attempts.pop(name, None)
        if found is not None and found.task is not None:
            found.task.cancel()

    async def _attempt(self, name: str, of: _Attempts, rehearse: Rehearse) -> None:
        loop, at = asyncio.get_running_loop(), self._client.now()

        def waits(long: bool) -> None:
            nonlocal at
            at = self._client.now()
            of.known = replace(of.known, waits=long)
            self._changed(name)

        place = _Place(self._places, waits)
        report, problem, passing = await _outcome(name, rehearse, place)
        took = place.seconds
        if report is not None:
            rest = max(_VALID_SECONDS, min(_REST * took, max(_LONGEST_REST, took)))
            of.known, of.failures = Rehearsed(report, at if rest > _OLD_SECONDS else None), 0
            of.seen = False
        else:
            rest = max(backoff(of.failures, _FIRST_PAUSE, _LONGEST_PAUSE), took)
            due = self._client.now() + timedelta(seconds=rest)
            of.known = replace(of.known, failure=FailedRehearsal(problem, at, due, passing))
            of.failures += 1
        of.due, of.task = loop.time() + rest, None
        self._changed(name)


async def _outcome(name: str, rehearse: Rehearse, place: Place) -> tuple[RehearsalReport | None, str, bool]:
    """The report; or why there is none, and whether another attempt may succeed."""
    try:
        return await rehearse(place), "", True
    except ApiError as error:
        return None, error.message, True
    except Unreachable as error:
        return None, str(error), True
    except UnreadableDefinition as error:
        return None, str(error), False
    except Exception as error:
        # Its text may have values of composites, which not everyone may read who reads a status or a log.
        kind, where = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
        _log.error("The update of %s cannot be tried on its composites: %s in\n%s", name, kind, where)
        return None, f"an error in crdkeeper ({kind}); the composer's log says where", False


def _without_proof(known: Rehearsed) -> Rehearsed:
    """An earlier result that is a reason to refuse stays; one that allows the update is no proof any more."""
    report = known.report
    harmful = report is not None and any(
        each.is_harm or each is EffectKind.INDETERMINATE for each in report.tally.affected
    )
    return known if harmful or report is None else Rehearsed(again=True)
