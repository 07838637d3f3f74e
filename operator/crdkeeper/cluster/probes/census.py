"""Counts all objects of a resource, a page of metadata at a time, as slowly as the caller wants.

A walk keeps its position (the continue token) and its counts, never the objects: it needs the memory of one
page.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.looking import failure_of, silence
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.diagnosis.census import Census, CensusTally
from crdkeeper.core.diagnosis.deletion import Blockers, BlockerTally
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble

PAGE = 100
"""Objects with many field managers have some 10 KB of managedFields each."""
PAGE_SECONDS = 30.0
PAGES_PER_SECOND = 10.0
_MOST_RESTARTS = 3
_BLOCKER_PAGES = 20


class Pacer:
    """Spreads pages evenly over time; shared by all walks of a process."""

    def __init__(self, pages_per_second: float = PAGES_PER_SECOND) -> None:
        self._interval = 1 / pages_per_second
        self._next = 0.0

    async def turn(self) -> None:
        """Return when the caller may request a page; callers are served in order."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next)
        self._next = turn + self._interval
        await asyncio.sleep(turn - now)


class _Counter(Protocol):
    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Count some objects."""


_C = TypeVar("_C", bound=_Counter)


class Walk(Generic[_C]):
    """One walk over a CRD's objects. `tally` holds the counts."""

    def __init__(self, definition: DefinitionFacts, new_tally: Callable[[], _C], page: int = PAGE) -> None:
        self.tally = new_tally()
        self.complete = False
        self.failure: Failure | None = None
        self.resource_version = ""
        self._definition = definition
        self._new_tally = new_tally
        self._page = page
        self._token: str | None = None
        self._restarts = 0

    async def step(self, client: Client) -> bool:
        """Count one more page. Returns whether that was the end; `failure` says why it cannot continue now.

        After a failure, the next step tries the same page again. A list that has expired starts over, at most
        three times.
        """
        version = self._definition.endpoint_version
        if self.complete:
            return True
        if version is None:
            self.failure = failure_of(404, f"no version of {self._definition.name} is served")
            return True
        endpoint = Endpoint(self._definition.group, version, self._definition.plural)
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                page = await endpoint.page(client, self._token, self._page)
        except ApiError as error:
            return self._refused(failure_of(error.code, error.message))
        except TimeoutError:
            return self._refused(silence(PAGE_SECONDS))
        except Unreachable as error:
            return self._refused(Failure(ProbeTrouble.SILENT, 0, str(error)))
        self.failure = None
        self.tally.add(page.items)
        self.resource_version = page.resource_version
        self._token = page.continue_token or None
        self.complete = self._token is None
        return self.complete

    def _refused(self, failure: Failure) -> bool:
        if failure.trouble is ProbeTrouble.EXPIRED and self._restarts < _MOST_RESTARTS:
            self._restarts += 1
            self._token, self.tally = None, self._new_tally()
            return False
        self.failure = failure
        return True


class CensusWalk(Walk[CensusTally]):
    """Counts which managers wrote which version; `suspects` are the versions whose writers matter most."""

    def __init__(self, definition: DefinitionFacts, suspects: tuple[str, ...] = (), page: int = PAGE) -> None:
        super().__init__(definition, lambda: CensusTally(definition, suspects), page)

    def census(self, now: datetime) -> Census:
        """The counts so far, or of all objects."""
        return self.tally.census(
            now, complete=self.complete, resource_version=self.resource_version, failure=self.failure
        )


async def probe_blockers(
    client: Client, definition: DefinitionFacts, pages: int = _BLOCKER_PAGES
) -> Blockers:
    """The remaining objects of a CRD in deletion, as far as so few pages show. A refusal is a fact, too."""
    walk = Walk(definition, BlockerTally)
    for _ in range(pages):
        if await walk.step(client):
            break
    return walk.tally.blockers(complete=walk.complete, failure=walk.failure)
