"""One migration from its current state to its end: observe, decide, act, record, repeat.

Used by the operator and by `crdkeeper migrate`. Everything that must survive is in the status, which is saved
every few seconds; whoever runs the migration next continues from there.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from crdkeeper.api.storagemigration import MigrationTarget, RefusedObject, StorageMigration
from crdkeeper.cluster.resources.definitions import trim_stored_versions
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.migration import protocol
from crdkeeper.core.migration.counts import Baseline
from crdkeeper.core.migration.evidence import LASTING
from crdkeeper.core.migration.observation import Observation
from crdkeeper.core.migration.occurrences import (
    EvidenceLost,
    ListExpired,
    Occurrence,
    RetryBegan,
    RetryBroken,
    RetryEnded,
    RetryStopped,
    RunBegan,
    Separated,
    SweepBegan,
    SweepCounted,
    SweepEnded,
    SweepQueued,
    Trimmed,
)
from crdkeeper.core.migration.othermigrator import OtherMigrator
from crdkeeper.core.migration.record import Announcement, record
from crdkeeper.core.migration.settle import RollCall
from crdkeeper.operations.migration.observe import another_began, observe, target_changed
from crdkeeper.operations.migration.preparation import endpoint_of, prepare_sweep
from crdkeeper.operations.migration.sharedpass import Pass, shared_pass
from crdkeeper.operations.migration.sweep import RESOURCE_VERSIONS_RESET, Interrupted, Observer, Sweep
from crdkeeper.operations.migration.waiting import end, first_of, in_turn

_log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 2.0
"""How often a pass saves its progress at least; it does so after each page, too, by which it may resume."""
_LEAST_SECONDS = 0.25
"""Between two saves: of objects that are current, the API server lists a page in less."""
_UNSAVED_SECONDS = 60.0
"""How long a pass continues although its checkpoints cannot be saved."""
_RATE_SECONDS = 10.0
_OTHERS_SECONDS = 10.0
"""How often a pass checks whether another migrator has started."""
_LAST_SAVE_SECONDS = 3.0

Save = Callable[[StorageMigration], Awaitable[bool]]
"""Stores the status; False, which ends the run, if the object is gone or someone else runs it."""
Announce = Callable[[StorageMigration, Sequence[Announcement]], Awaitable[None]]
"""Reports changed conditions to users."""
Patience = Callable[[protocol.Hold], bool]
"""Whether to wait for what holds the run up; False ends the run, to be resumed later."""


class _Abandoned(Exception):
    """The migration object was deleted, or someone else runs it: this run must stop."""


class _GaveUp(Exception):
    """The caller does not want to wait for what holds the run up."""


class _Stale(Exception):
    """What the pass depends on has changed: observe again before continuing."""


class MigrationRun:
    """Runs one migration.

    `observer` is called with the outcome of each write. `slots` bounds how many migrations write at the same
    time; a waiting migration holds none. `pause` says after how many seconds it observes again if it would do
    so after that many.
    """

    def __init__(
        self,
        client: Client,
        migration: StorageMigration,
        *,
        save: Save,
        announce: Announce,
        observer: Observer,
        slots: asyncio.Semaphore,
        patience: Patience = lambda hold: True,
        pause: Callable[[float], float] = lambda seconds: seconds,
    ) -> None:
        self._client = client
        self._save = save
        self._announce = announce
        self._observer = observer
        self._slots = slots
        self._patience = patience
        self._pause = pause
        self.migration = migration
        """The migration with its current status."""
        self._unannounced: dict[tuple[str, str, str], Announcement] = {}
        self._saved_at: float | None = None
        self._wake = asyncio.Event()
        self._roll = RollCall()
        self._other = OtherMigrator()
        self._unknown_change_at: datetime | None = None
        self._named: list[RefusedObject] = list(migration.status.quarantine.objects)
        self._troubles = 0
        self._served: Sequence[str] = ()

    @property
    def refused(self) -> Sequence[RefusedObject]:
        """The refused objects by name; may contain more than the status lists."""
        return self._named

    def update(self, migration: StorageMigration) -> None:
        """The object was seen again: take its spec; the status is ours."""
        mine = self.migration
        if migration.metadata.generation != mine.metadata.generation:
            mine.spec = migration.spec
            mine.metadata = migration.metadata
            self._wake.set()

    def wake(self) -> None:
        """Something about the resource may have changed: observe again now."""
        self._wake.set()

    async def run(self) -> None:
        """Run until the migration is finished, its object is deleted, or patience ends."""
        self._happened(RunBegan())
        try:
            while not await self._step():
                pass
        except _Abandoned:
            _log.info("StorageMigration %s was deleted or is run elsewhere.", self.migration.metadata.name)
        except _GaveUp:
            _log.info("The run of StorageMigration %s does not wait.", self.migration.metadata.name)
        except asyncio.CancelledError:
            # A clean stop: what was done since the last checkpoint need not be repeated.
            with suppress(ApiError, Unreachable, TimeoutError):
                await asyncio.wait_for(self._save(self.migration), _LAST_SAVE_SECONDS)
            raise

    def _happened(self, occurrence: Occurrence) -> None:
        recorded = record(self.migration, occurrence, self._client.now())
        self.migration.status = recorded.status
        self._unannounced |= {(each.type, each.status, each.reason): each for each in recorded.announcements}

    async def _saved(self) -> None:
        if not await self._save(self.migration):
            raise _Abandoned
        self._saved_at = time.monotonic()
        announcements, self._unannounced = list(self._unannounced.values()), {}
        if announcements:
            await self._announce(self.migration, announcements)

    async def _checkpoint(self) -> None:
        """Save the progress of a pass. If that fails, the pass continues for a while: restarts are cheap."""
        try:
            await self._saved()
        except (ApiError, Unreachable):
            if self._saved_at is None or time.monotonic() - self._saved_at > _UNSAVED_SECONDS:
                raise

    async def _step(self) -> bool:
        """Execute one decision, and handle what goes wrong; True at the end."""
        try:
            if self._saved_at is None:
                await self._saved()  # first of all: if someone else owns the status, do nothing
            ended = await self._decide_and_act()
            self._troubles = 0
            return ended
        except Interrupted as trouble:
            if trouble.reason == RESOURCE_VERSIONS_RESET:
                self._happened(EvidenceLost())
                self._roll, self._named = RollCall(), []
            await self._trouble(trouble.reason, trouble.message, lasting=trouble.lasting)
        except Unreachable as trouble:
            await self._trouble("APIServerUnavailable", f"The API server does not respond: {trouble}")
        except ApiError as trouble:
            said = f"The API server refused the request: {trouble}"
            await self._trouble("APIServerRefused", said, lasting=trouble.code in LASTING)
        return False

    async def _trouble(self, reason: str, message: str, *, lasting: bool = False) -> None:
        self._troubles += 1
        spec, status = self.migration.spec, self.migration.status
        hold = protocol.after_trouble(spec, status, reason, message, times=self._troubles, lasting=lasting)
        try:
            await self._hold(hold)
        except (ApiError, Unreachable) as error:
            _log.warning("Migration %s: %s; %s", self.migration.metadata.name, message, error)
            if not self._patience(hold):
                raise _GaveUp from error
            await asyncio.sleep(hold.seconds)

    async def _hold(self, hold: protocol.Hold) -> None:
        self._happened(hold)
        await self._saved()
        if not self._patience(hold):
            raise _GaveUp
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), self._pause(hold.seconds))

    async def _decide_and_act(self) -> bool:
        # Before the observation, so that the wait does not miss what happens after it.
        self._wake.clear()
        seen = await self._look()
        action = self._decide(seen)
        match action:
            case protocol.Hold():
                await self._hold(action)
                return False
            case protocol.Pin():
                self._roll, self._named = RollCall(), []
                self._happened(action)
            case protocol.Separate(message):
                self._happened(Separated(await self._separator(), message, seen.others.unseen))
            case protocol.SweepAll(type_, fresh):
                if self._slots.locked():
                    self._happened(SweepQueued(type_))
                    await self._saved()
                await self._in_turn(partial(self._sweep, SweepBegan(type_, fresh, seen.others.unseen)))
            case protocol.RetryQuarantined():
                await self._in_turn(self._retry)
            case protocol.Trim():
                await self._trim(seen)
            case protocol.Finish():
                self._happened(action)
        await self._saved()
        return isinstance(action, protocol.Finish)

    async def _look(self) -> Observation:
        status, spec = self.migration.status, self.migration.spec
        settling = status.settled_resource_version is None and spec.mode == "Execute"
        begun = status.sweep is not None and not status.sweep.done
        # To pin the target needs no right, and a command has just reviewed them.
        rights = status.target is not None and (not begun or self._troubles > 0)
        return await observe(self._client, spec, rights=rights, leases=settling)

    def _decide(self, seen: Observation) -> protocol.Action:
        now, status = self._client.now(), self.migration.status
        self._served = seen.definition.served_versions if seen.definition is not None else ()
        self._roll.look(seen, now)
        return protocol.decide(
            self.migration.spec,
            status,
            seen,
            renewed_at=self._roll.complete_at,
            changed_at=self._changed_at(seen, now),
            all_named=len(self._named) == status.progress.quarantined,
            other=self._other.look(seen, now),
            now=now,
        )

    def _changed_at(self, seen: Observation, now: datetime) -> datetime:
        known = seen.definition.changed_at if seen.definition is not None else None
        if known is None:
            self._unknown_change_at = self._unknown_change_at or now
            return self._unknown_change_at
        return known

    def _target(self) -> MigrationTarget:
        target = self.migration.status.target
        if target is None:
            raise _Stale
        return target

    async def _separator(self) -> str:
        endpoint = endpoint_of(self.migration, self._target())
        return await endpoint.now(self._client)

    def _new_sweep(self, type_: protocol.SweepType) -> Sweep:
        return prepare_sweep(
            self._client, self.migration, self._target(), type_, self._observer, served=self._served
        )

    async def _in_turn(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write as soon as there is a slot; not at all if what would stop it changes before that."""
        async with in_turn(self._slots, self._wake, self._outdated) as has_turn:
            if has_turn and not self.migration.spec.suspend:  # also if it was suspended during the last look
                await write()

    async def _outdated(self) -> bool:
        spec = self.migration.spec
        if spec.suspend or await target_changed(self._client, self.migration):
            return True
        return spec.mode == "Execute" and await another_began(self._client, spec.resource)

    async def _sweep(self, began: SweepBegan) -> None:
        if began.fresh:
            self._named = []
        self._happened(began)
        await self._saved()
        status = self.migration.status
        shared = shared_pass(self._client, self.migration, began.type)
        sweep, before = shared or (self._new_sweep(began.type), Baseline.of(status))
        token = status.sweep.continue_token if status.sweep else None
        samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        try:
            await self._watched(sweep, sweep.run(token), lambda: self._counted(sweep, before, samples))
        except ApiError as error:
            if error.code != 410:
                raise
            self._happened(ListExpired())
        except _Stale:
            return
        else:
            self._counted(sweep, before, samples, ended=True)
            self._happened(SweepEnded())
        finally:
            if sweep.tally.rewritten:
                self._troubles = 0  # an interruption from here on is a new problem
            # Each refused object is known by name only if status and this pass name all of them.
            self._named = before.with_refused(sweep.refused)

    async def _watched(self, sweep: Pass, work: Awaitable[None], progress: Callable[[], None]) -> None:
        """Await the writing; meanwhile save the progress, and stop if what it depends on has changed."""
        task = asyncio.ensure_future(work)
        look_at = time.monotonic() + _OTHERS_SECONDS
        check_at = time.monotonic() + CHECKPOINT_SECONDS
        try:
            while not task.done():
                await first_of(task, self._wake, seconds=_LEAST_SECONDS)
                if not task.done() and not self._wake.is_set():
                    await first_of(task, self._wake, sweep.advanced, seconds=CHECKPOINT_SECONDS)
                woken = self._wake.is_set()
                self._wake.clear()
                sweep.advanced.clear()
                progress()
                if not task.done():
                    await self._checkpoint()
                    spec = self.migration.spec
                    if spec.suspend or spec.limits != sweep.limits:
                        raise _Stale
                    if woken or time.monotonic() >= check_at:
                        check_at = time.monotonic() + CHECKPOINT_SECONDS
                        if await target_changed(self._client, self.migration):
                            raise _Stale
                    if time.monotonic() >= look_at and sweep.type != "Plan":
                        look_at = time.monotonic() + _OTHERS_SECONDS
                        if await another_began(self._client, self.migration.spec.resource):
                            raise _Stale
            await task
        finally:
            try:
                await end(task)
            finally:
                progress()

    def _counted(
        self, sweep: Pass, before: Baseline, samples: deque[tuple[float, int]], *, ended: bool = False
    ) -> None:
        now = time.monotonic()
        samples.append((now, sweep.tally.scanned))
        while len(samples) > 2 and now - samples[0][0] > _RATE_SECONDS:
            samples.popleft()
        (then, scanned), elapsed = samples[0], now - samples[0][0]
        rate = (sweep.tally.scanned - scanned) / elapsed if elapsed and then != now else 0.0
        token, behind = (None, sweep.tally.scanned) if ended else sweep.checkpoint()
        scanned = before.scanned + behind
        self._happened(SweepCounted(sweep.tally, before, token, scanned, rate, sweep.concurrency))

    async def _retry(self) -> None:
        named, sweep = self._named, self._new_sweep("Rewrite")
        self._happened(RetryBegan())
        try:
            await self._watched(sweep, sweep.retry(named), lambda: None)
        except _Stale:
            self._happened(RetryStopped())
            return
        except (Interrupted, ApiError, Unreachable):
            # The next round will find current what this one wrote.
            self._happened(RetryBroken())
            raise
        self._named = sweep.refused
        self._happened(RetryEnded(sweep.refused, sweep.tally))

    async def _trim(self, seen: Observation) -> None:
        definition = seen.definition
        if definition is None:
            return
        try:
            await trim_stored_versions(self._client, definition, [definition.storage_version])
        except ApiError as error:
            if error.code not in (404, 409):
                raise
            return  # the CRD changed since it was read: observe and decide again
        self._happened(Trimmed(definition.outdated_versions, definition.storage_version))
