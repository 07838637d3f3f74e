"""One pass over all objects of a resource: page by page, with many concurrent writes.

A producer lists pages ahead of a `WriterPool`, whose size follows `Pace`. `evidence.outcome_of` decides
what each answer means; this module only acts on it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crdkeeper.api.storagemigration import MigrationLimits, RefusedObject
from crdkeeper.cluster.resources.objects import PAGE, Endpoint, Page, pages_of
from crdkeeper.cluster.transport.boundedpages import PageSize
from crdkeeper.cluster.transport.client import Answer, Client, Unreachable
from crdkeeper.core.conversion.nesting import dumps
from crdkeeper.core.migration.counts import OldEntry, SweepTally
from crdkeeper.core.migration.evidence import ObjectRef, Outcome, is_webhook_outage, outcome_of, refusal
from crdkeeper.core.migration.managedfields import entry_of, retarget
from crdkeeper.core.migration.pace import Budget, Pace, backoff
from crdkeeper.core.migration.protocol import SweepType
from crdkeeper.core.migration.sharding import part_of
from crdkeeper.core.servermessages import message_of
from crdkeeper.operations.migration.outage import MOST_UNDECIDED, PAUSES, Batch, Outage, Undecided
from crdkeeper.operations.migration.writequeue import WriteQueue
from crdkeeper.operations.migration.writerpool import WriterPool

REFUSED_KEPT = 1000
"""Names of refused objects to keep, so that a retry need not list all objects."""
_ATTEMPTS = 6
"""Attempts for one object while server errors prevent a decision."""
_OUTAGE = 25
"""Objects in a row that fail at the same broken webhook before the pass stops to wait."""

RESOURCE_VERSIONS_RESET = "ResourceVersionsReset"
"""Reason of an interruption that invalidates the separator."""

Observer = Callable[[Outcome, int, float], None]
"""Called with the outcome, HTTP status (0: no answer) and seconds of each write."""


class Interrupted(Exception):
    """The pass cannot continue now, for a cause that concerns no single object; `lasting` is as in Hold."""

    def __init__(self, reason: str, message: str, *, lasting: bool = False) -> None:
        self.reason, self.message, self.lasting = reason, message, lasting
        super().__init__(f"{reason}: {message}")


@dataclass(slots=True)
class Sweep:
    """One pass. `separator` is the resourceVersion S above which objects are current; None: patch all.

    `retarget_to` is the (group, version) for managedFields, or None to keep them. If they are kept, the first
    entry found that names one of `going` (`group/version`, and whether it is served) is kept in the tally.
    With `part`, an index and a number of parts, it is a pass over that part only, within its share of the
    limits.
    """

    client: Client
    endpoint: Endpoint
    type: SweepType
    limits: MigrationLimits
    separator: int | None
    retarget_to: tuple[str, str] | None
    observer: Observer
    going: Mapping[str, bool] = field(default_factory=dict)
    part: tuple[int, int] | None = None
    tally: SweepTally = field(default_factory=SweepTally, init=False)
    refused: list[RefusedObject] = field(default_factory=list, init=False)
    pace: Pace = field(init=False)
    advanced: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when a page is complete: to save the checkpoint then keeps a resumed pass from repeating it."""
    _queue: WriteQueue = field(default_factory=lambda: WriteQueue(2 * PAGE), init=False)
    _batches: deque[Batch] = field(default_factory=deque, init=False)
    _next_token: str | None = field(default=None, init=False)
    _size: PageSize = field(default_factory=lambda: pages_of(PAGE), init=False)
    _pool: WriterPool = field(init=False)
    _failure: asyncio.Future[None] = field(init=False)
    _budgets: list[tuple[Budget, Callable[[], float]]] = field(default_factory=list, init=False)
    _object_bytes: float = field(default=0.0, init=False)
    _not_before: float = field(default=0.0, init=False)
    _outage: Outage = field(default_factory=Outage, init=False)
    _dealt_with: int = field(default=0, init=False)
    _successes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        shares = self.part[1] if self.part is not None else 1
        self.pace = Pace(
            max(1, self.limits.max_concurrency // shares), max(1, self.limits.min_concurrency // shares)
        )
        self._pool = WriterPool(self._work, lambda: self.pace.concurrency)
        self._failure = asyncio.get_running_loop().create_future()
        self.tally.refused = self.refused
        if self.limits.max_objects_per_second:
            self._budgets.append((Budget(self.limits.max_objects_per_second / shares), lambda: 1.0))
        if self.limits.max_bytes_per_second:
            self._budgets.append(
                (Budget(self.limits.max_bytes_per_second / shares), lambda: self._object_bytes)
            )

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight now."""
        return self.pace.concurrency

    def checkpoint(self) -> tuple[str | None, int]:
        """Where to resume after an interruption.

        The token of the first page that is not complete, and the number of objects before it. Of the last
        page also once it is complete: a list has no token for its end, and without one it begins anew.
        """
        while self._batches and not self._batches[0].open and (self._next_token or len(self._batches) > 1):
            self._dealt_with += self._batches.popleft().size
        return (self._batches[0].token if self._batches else self._next_token), self._dealt_with

    async def run(self, token: str | None) -> None:
        """Process all objects from `token` on. Raises Interrupted, ApiError or Unreachable."""
        self._next_token = token
        await self._drive(self._list(token))

    async def retry(self, objects: Sequence[RefusedObject]) -> None:
        """Process only these objects, regardless of their current state."""
        refs = [ObjectRef(each.namespace, each.name, "") for each in objects]
        await self._drive(self._feed(refs, Batch(None, len(refs), len(refs))))

    async def _drive(self, source: Any) -> None:
        producer = asyncio.create_task(source)
        drained: asyncio.Task[None] | None = None
        try:
            await asyncio.wait({producer, self._failure}, return_when=asyncio.FIRST_COMPLETED)
            if not self._failure.done():
                producer.result()
                drained = asyncio.create_task(self._finish())
                await asyncio.wait({drained, self._failure}, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
            if drained is not None:
                drained.result()
        finally:
            try:
                await self._pool.end([each for each in (producer, drained) if each is not None])
            finally:
                if not self._failure.cancel():
                    self._failure.exception()  # also one that came meanwhile is known

    async def _list(self, token: str | None) -> None:
        seen = 0
        if token is None:
            coming = self.endpoint.page(self.client, None, self._size)
        else:
            # What this migration wrote since that token was made is to be seen as current.
            coming = self.endpoint.latest_page(self.client, token, self._size)
        while True:
            # No name keeps the page, which is gone when the next one comes.
            seen += await self._process(await coming, token, seen)
            token = self._next_token
            if token is None:
                return
            coming = self.endpoint.page(self.client, token, self._size)

    async def _process(self, page: Page, token: str | None, seen: int) -> int:
        """Feed the objects of the page at `token`, after so many. Returns how many it has."""
        if self.separator is not None and _older(page.resource_version, self.separator):
            raise Interrupted(
                RESOURCE_VERSIONS_RESET,
                "The cluster's resourceVersions went backwards, as they do after etcd is restored.",
            )
        if self.limits.max_bytes_per_second and page.items:
            await self._sample(page.items[0]["metadata"])
        self.tally.total = seen + len(page.items) + page.remaining
        items = [each for each in page.items if self._is_mine(each)]
        refs = self._select(items)
        await self._feed(refs, Batch(token, len(items), len(refs)))
        await self._feed_again()
        self._next_token = page.continue_token or None
        return len(page.items)

    async def _sample(self, metadata: Mapping[str, Any]) -> None:
        size = await self.endpoint.size(self.client, metadata.get("namespace", ""), metadata["name"])
        self._object_bytes = 0.7 * self._object_bytes + 0.3 * size if self._object_bytes else float(size)

    def _is_mine(self, item: Mapping[str, Any]) -> bool:
        if self.part is None:
            return True
        index, count = self.part
        return part_of(item["metadata"].get("namespace", ""), item["metadata"]["name"], count) == index

    def _select(self, items: Iterable[Mapping[str, Any]]) -> list[ObjectRef]:
        """The objects of a page that must be written; the others are current and are counted."""
        chosen = []
        look = bool(self.going)
        for item in items:
            if look:
                look = not self._found_old_entry(item["metadata"])
            ref = self._needs_write(item["metadata"])
            if ref is None:
                self._count(Outcome.CURRENT)
            else:
                chosen.append(ref)
        return chosen

    def _found_old_entry(self, metadata: Mapping[str, Any]) -> bool:
        """Whether an old entry is known by now: one suffices for the report, and looking costs time."""
        if self.tally.old_entry is None:
            entry = entry_of(metadata.get("managedFields") or (), self.going)
            if entry is None:
                return False
            where = str(ObjectRef(metadata.get("namespace", ""), metadata["name"], ""))
            named = entry["apiVersion"]
            manager, version = str(entry.get("manager", "")), named.rpartition("/")[2]
            self.tally.old_entry = OldEntry(where, manager, version, self.going[named])
        return True

    def _needs_write(self, metadata: Mapping[str, Any]) -> ObjectRef | None:
        version: str = metadata["resourceVersion"]
        newer = self.separator is not None and version.isdigit() and int(version) > self.separator
        fields = None
        if self.retarget_to is not None and not (newer and self.type == "Verify"):
            entries = retarget(metadata.get("managedFields") or (), *self.retarget_to)
            fields = dumps(entries) if entries is not None else None
        if newer and fields is None:
            return None
        return ObjectRef(
            metadata.get("namespace", ""), metadata["name"], version, fields, metadata.get("uid", "")
        )

    async def _feed(self, refs: Sequence[ObjectRef], batch: Batch) -> None:
        self._batches.append(batch)
        if not refs:
            self.advanced.set()
        for ref in refs:
            self._pool.staff()
            await self._queue.put(ref, batch)

    async def _feed_again(self) -> None:
        while self._outage.again:
            undecided = self._outage.again.popleft()
            self._pool.staff()
            await self._queue.put(undecided.ref, undecided.batch)

    async def _finish(self) -> None:
        """Wait until all objects are processed. Those that failed at a broken webhook get some more time."""
        await self._queue.join()
        for pause in PAUSES:
            if not self._outage:
                return
            await asyncio.sleep(pause)
            self._outage.try_all()
            await self._feed_again()
            await self._queue.join()
        for refused in self._outage.give_up():
            self._quarantine(refused)

    async def _work(self) -> None:
        try:
            while not self._pool.superfluous():
                ref, batch = await self._queue.get()
                await self._settle(ref, batch)
                batch.open -= 1
                if not batch.open:
                    self.advanced.set()
                self._queue.done(ref)
                del ref  # while it waits for the next one, it keeps none that nobody counts
                self._pool.staff()
        except Exception as error:
            if not self._failure.done():
                self._failure.set_exception(error)

    def _count(self, outcome: Outcome) -> None:
        tally = self.tally
        tally.scanned += 1
        if outcome is Outcome.REWRITTEN:
            tally.rewritten += 1
            tally.unexpected += self.type == "Verify"
        elif outcome is Outcome.CURRENT:
            tally.current += 1
        elif outcome is Outcome.GONE:
            tally.gone += 1

    async def _settle(self, ref: ObjectRef, batch: Batch) -> None:
        """Process one object, with as many requests as that takes."""
        successes, conflicts, failures = 0, 0, 0
        look = not ref.resource_version
        while True:
            await self._turn()
            if look:
                found = await self._look(ref)
                if found is None:
                    return
                ref, look = found, False
            answer, outcome = await self._write(ref)
            if not failures:
                successes = self._successes
            if outcome in (Outcome.REWRITTEN, Outcome.CURRENT, Outcome.GONE):
                self._successes += outcome is not Outcome.GONE
                if self._outage.in_a_row:
                    self._end_outage()
                self._count(outcome)
                return
            if outcome is Outcome.CONFLICT and conflicts < _ATTEMPTS:
                conflicts += 1
                look = True
            elif outcome is Outcome.THROTTLED:
                self._throttle(answer.retry_after or backoff(failures, 0.2, 5.0))
                failures += 1
            elif outcome is Outcome.UNAVAILABLE and failures < _ATTEMPTS:
                self._throttle(backoff(failures, 0.2, 5.0))
                failures += 1
            elif outcome is Outcome.UNAVAILABLE and self._successes == successes:
                raise Interrupted("APIServerUnavailable", message_of(answer.json(), "No response."))
            elif outcome is Outcome.FORBIDDEN:
                raise Interrupted("Forbidden", message_of(answer.json(), ""), lasting=True)
            elif outcome is Outcome.UNSERVED:
                raise Interrupted("ResourceGone", "The resource is no longer served at this version.")
            else:
                refused = refusal(ref, answer.code, answer.json(), secret=self.endpoint.secret)
                self._refuse(ref, batch, refused)
                return

    async def _look(self, ref: ObjectRef) -> ObjectRef | None:
        """The current object, if it still needs a write; counted if not."""
        metadata = await self.endpoint.metadata(self.client, ref.namespace, ref.name)
        found = self._needs_write(metadata) if metadata is not None else None
        if found is not None and found.managed_fields is None and self._rewritten_since(ref, found):
            found = None
        if found is None:
            self._count(Outcome.GONE if metadata is None else Outcome.CURRENT)
        return found

    def _rewritten_since(self, before: ObjectRef, now: ObjectRef) -> bool:
        """Whether a write since this pass began, by anyone, proves that the object is current.

        This works even where no separator can decide; otherwise an object that others write all the time
        would never be found current.
        """
        known = bool(before.resource_version) and self.type != "Plan"
        return known and now.resource_version != before.resource_version

    async def _write(self, ref: ObjectRef) -> tuple[Answer, Outcome]:
        start = time.monotonic()
        try:
            with self._pool.in_flight():
                answer = await self.endpoint.rewrite(self.client, ref, dry_run=self.type == "Plan")
            outcome = outcome_of(ref, answer.code, answer.json(), retry_after=answer.retry_after)
        except Unreachable as error:
            answer = replace(_NO_ANSWER, content=str(error).encode())
            outcome = Outcome.UNAVAILABLE
        seconds = time.monotonic() - start
        if outcome in (Outcome.THROTTLED, Outcome.UNAVAILABLE):
            self.pace.throttled()
        else:
            self.pace.answered(seconds)
        self.observer(outcome, answer.code, seconds)
        return answer, outcome

    async def _turn(self) -> None:
        """Wait until the limits allow another write."""
        now = time.monotonic()
        wait = max(
            [self._not_before - now, *(budget.reserve(units(), now) for budget, units in self._budgets)]
        )
        if wait > 0:
            await asyncio.sleep(wait)

    def _throttle(self, seconds: float) -> None:
        self._not_before = max(self._not_before, time.monotonic() + seconds)

    def _refuse(self, ref: ObjectRef, batch: Batch, refused: RefusedObject) -> None:
        if not is_webhook_outage(refused):
            self._end_outage()
        elif len(self._outage.in_a_row) < MOST_UNDECIDED:  # only a plan has more
            self._outage.failed(Undecided(ref, batch, refused), many=self.type == "Plan")
            failed = len(self._outage.in_a_row)
            if failed >= _OUTAGE and self.type != "Plan":
                raise Interrupted(
                    "WebhookUnavailable",
                    f"{failed} objects in a row failed at {refused.denied_by}: {refused.message}",
                )
            return
        self._quarantine(refused)

    def _end_outage(self) -> None:
        for refused in self._outage.over():
            self._quarantine(refused)

    def _quarantine(self, refused: RefusedObject) -> None:
        self.tally.scanned += 1
        self.tally.refused_count += 1
        if len(self.refused) < REFUSED_KEPT:
            self.refused.append(refused)


_NO_ANSWER = Answer(0, b"")


def _older(resource_version: str, separator: int) -> bool:
    return resource_version.isdigit() and int(resource_version) < separator
