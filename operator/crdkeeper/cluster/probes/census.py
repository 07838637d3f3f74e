"""Counts all objects of a resource, a page of metadata at a time, as slowly as the caller wants.

A walk keeps its position (the continue token) and its counts, never the objects: it needs the memory of one
page.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from crdkeeper.api.definitionreport import CountInProgress
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.looking import failure_of, silence
from crdkeeper.cluster.resources.objects import Endpoint, pages_of
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.hunglists import would_hang
from crdkeeper.core.diagnosis.census import Census, CensusTally
from crdkeeper.core.diagnosis.deletion import Blockers, BlockerTally
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.statuswriters import StatusTally, StatusWriters
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources

PAGE = 100
"""Objects with many field managers have some 10 KB of managedFields each."""
PAGE_SECONDS = 30.0
PAGES_PER_SECOND = 10.0
_MOST_RESTARTS = 3
_MOST_ERRORS = 2
"""So many answers of 500 are about the token: an etcd that was restored says so of a revision to come."""
_NOT_ABOUT_TOKEN = frozenset(
    (ProbeTrouble.FORBIDDEN, ProbeTrouble.NOT_FOUND, ProbeTrouble.BUSY, ProbeTrouble.SILENT)
)
_BLOCKER_PAGES = 20
_STATUS_PAGES = 5


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

    def __init__(
        self,
        definition: DefinitionFacts,
        new_tally: Callable[[], _C],
        page: int = PAGE,
        namespace: str = "",
    ) -> None:
        """Only in this namespace, if there is one."""
        self.tally = new_tally()
        self.complete = False
        self.failure: Failure | None = None
        self.resource_version = ""
        self._definition = definition
        self._new_tally = new_tally
        self._size = pages_of(page)
        self._namespace = namespace
        self._token: str | None = None
        self._restarts = 0

    async def step(self, client: Client) -> bool:
        """Count one more page. Returns whether that was the end; `failure` says why it cannot continue now.

        After a failure, the next step tries the same page again. A list that has expired goes on with the
        objects as they are then, or starts over, at most three times, if the API server offers no token.
        """
        version = self._definition.endpoint_version
        if self.complete:
            return True
        if version is None:
            self.failure = failure_of(404, f"no version of {self._definition.name} is served")
            return True
        endpoint = Endpoint(self._definition.group, version, self._definition.plural)
        if said := await would_hang(client, endpoint.collection()):
            return self._refused(Failure(ProbeTrouble.SILENT, 0, said))
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                page = await endpoint.page(client, self._token, self._size, self._namespace)
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

    def __init__(
        self,
        definition: DefinitionFacts,
        suspects: tuple[str, ...] = (),
        page: int = PAGE,
        before: CountInProgress | None = None,
    ) -> None:
        """`before`: continue there, also if the list has expired since (see `Endpoint.page`)."""
        super().__init__(definition, lambda: CensusTally(definition, suspects), page)
        self.started = before.started_at if before is not None else None
        """When the count began: with the first request."""
        self._resumed = before is not None
        self._errors = 0
        if before is not None:
            self.tally.resume(before)
            self._token = before.continue_token

    async def step(self, client: Client) -> bool:
        """Like `Walk.step`; it begins again if the API server does not take the token from a report."""
        if self.started is None:
            # As it is read back.
            self.started = client.now().replace(microsecond=0)
        ended = await super().step(client)
        if not self._resumed:
            return ended
        if self.failure is not None and self._is_about_token(self.failure):
            self.failure, self._token, self.tally, self.started = None, None, self._new_tally(), None
            ended = False
        self._resumed = self.failure is not None
        return ended

    def _is_about_token(self, failure: Failure) -> bool:
        if failure.trouble in _NOT_ABOUT_TOKEN:
            return False
        self._errors += 1
        return failure.code < 500 or self._errors >= _MOST_ERRORS

    def progress(self, about: str) -> CountInProgress | None:
        """What a restarted operator needs to continue; None if it must begin again."""
        if self.started is None:
            return None
        return self.tally.progress(about, self._token or "", self.started)

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


async def probe_status_writers(
    client: Client,
    definition: DefinitionFacts,
    declared: DeclaredSubresources,
    pacer: Pacer,
    pages: int = _STATUS_PAGES,
) -> StatusWriters:
    """Who wrote the status of a CRD's objects, as far as so few pages show: a controller writes all of them.

    A refusal is a fact, too.
    """
    walk = Walk(definition, lambda: StatusTally(definition, declared, client.now()))
    for _ in range(pages):
        await pacer.turn()
        if await walk.step(client):
            break
    return walk.tally.writers(complete=walk.complete, failure=walk.failure)
