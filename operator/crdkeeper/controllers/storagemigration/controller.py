"""The operator's StorageMigrations: starts, updates and ends their runs, and deletes them after their TTL."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from crdkeeper.api.meta import OPERATOR, find_condition
from crdkeeper.api.storagemigration import StorageMigration, StorageMigrationStatus
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import delete_migration, get_migration
from crdkeeper.cluster.resources.statusrecord import StatusRecord
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.migration.record import Announcement
from crdkeeper.operations.migration.run import MigrationRun
from crdkeeper.operations.migration.spacing import Spacing

_log = logging.getLogger(__name__)


class StorageMigrations:
    """One run for each unfinished migration that the operator manages."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        metrics: OperatorMetrics,
        *,
        identity: str,
        at_once: int = 4,
    ) -> None:
        self._client = client
        self._state = state
        self._metrics = metrics
        self._identity = identity
        self._slots = asyncio.Semaphore(at_once)
        self._spacing = Spacing()
        self._runs: dict[str, tuple[MigrationRun, asyncio.Task[None]]] = {}
        self.queue = WorkQueue(self._reconcile)
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled, then end all runs."""
        try:
            await self.queue.run()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """End all runs; each saves its progress."""
        tasks = [task for _, task in self._runs.values()]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _saw(self, kind: str, name: str) -> None:
        if kind == StorageMigration.plural:
            self.queue.add(name)
            self._count()
        elif kind == "definitions":
            for run, _ in self._runs.values():
                if str(run.migration.spec.resource) == name:
                    run.wake()

    def _count(self) -> None:
        counts = dict.fromkeys(("pending", "running", "succeeded", "failing", "suspended"), 0)
        for each in self._state.of(StorageMigration).values():
            counts[_state_of(each)] += 1
        for state, count in counts.items():
            self._metrics.migrations.labels(state).set(count)

    async def _reconcile(self, name: str) -> None:
        seen = self._state.of(StorageMigration).get(name)
        running = self._runs.get(name)
        if running is not None and (seen is None or seen.metadata.uid != running[0].migration.metadata.uid):
            running[1].cancel()
            await asyncio.gather(running[1], return_exceptions=True)
            running = None
        if seen is None:
            self._metrics.quarantined.remove(name)
            return
        if seen.spec.managed_by != OPERATOR:
            return
        if running is not None:
            running[0].update(seen)
            return
        # The watch may lag behind what a previous run wrote: start from what is stored.
        migration = await get_migration(self._client, name)
        if migration is None:
            return
        if not _is_finished(migration):
            self._start(name, migration)
        else:
            await self._expire(name, migration)

    def _start(self, name: str, migration: StorageMigration) -> None:
        record, clock = StatusRecord(self._client, migration), asyncio.get_running_loop().time
        saved: StorageMigrationStatus | None = None

        async def save(current: StorageMigration) -> bool:
            nonlocal saved
            status = current.status
            self._metrics.quarantined.labels(name).set(status.progress.quarantined)
            # Many may wait for hours. The watch tells of a deletion, and the Lease who may write.
            if status == saved:
                return True
            saved = None  # if the answer gets lost, either may be on record
            if not await record.save(current):
                return False
            saved = status
            return True

        run = MigrationRun(
            self._client,
            migration,
            save=save,
            announce=self._announce,
            observer=self._metrics.observer(str(migration.spec.resource)),
            slots=self._slots,
            pause=lambda seconds: self._spacing.pause(name, seconds, clock()),
        )
        task = asyncio.create_task(run.run(), name=f"migration {name}")
        self._runs[name] = (run, task)
        task.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._runs.pop(name, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("The run of StorageMigration %s failed and is restarted.", name, exc_info=error)
            self.queue.add_within(name, 30.0)
        elif not task.cancelled():
            self.queue.add(name)

    async def _announce(self, migration: StorageMigration, changes: Sequence[Announcement]) -> None:
        reported: set[str] = set()
        for each in changes:
            _log.info(
                "StorageMigration %s: %s=%s %s: %s",
                migration.metadata.name,
                each.type,
                each.status,
                each.reason,
                each.message,
            )
            if each.status != "Unknown" and each.reason not in reported | _SUMMED_UP:
                reported.add(each.reason)
                await send_event(
                    self._client,
                    migration,
                    "Warning" if each.warning else "Normal",
                    each.reason,
                    each.message,
                    instance=self._identity,
                )

    async def _expire(self, name: str, migration: StorageMigration) -> None:
        ttl, ended = migration.spec.ttl_seconds_after_finished, migration.status.completion_time
        succeeded = find_condition(migration.status.conditions, "Succeeded")
        if ttl is None or ended is None or succeeded is None or succeeded.status != "True":
            return
        left = ttl - (self._client.now() - ended).total_seconds()
        if left > 0:
            self.queue.add_within(name, left)
        else:
            _log.info("Deleting StorageMigration %s, whose TTL has expired.", name)
            await delete_migration(self._client, migration)


def begin_migrations(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the StorageMigration controller."""
    migrations = StorageMigrations(
        context.client, context.state, context.metrics, identity=context.identity, at_once=context.at_once
    )
    return migrations.run()


_SUMMED_UP = frozenset(("PlanOnly", "Allowed", "Resumed"))
"""Reasons that only repeat what other conditions say."""


def _is_finished(migration: StorageMigration) -> bool:
    """Whether it succeeded, or failed and its spec has not changed since."""
    status = migration.status
    if status.completion_time is None:
        return False
    succeeded = find_condition(status.conditions, "Succeeded")
    passed = succeeded is not None and succeeded.status == "True"
    return passed or status.observed_generation == migration.metadata.generation


def _state_of(migration: StorageMigration) -> str:
    succeeded = find_condition(migration.status.conditions, "Succeeded")
    if migration.spec.suspend and migration.status.completion_time is None:
        return "suspended"
    if succeeded is None or succeeded.reason == "Pending":
        return "pending"
    return {"True": "succeeded", "False": "failing"}.get(succeeded.status, "running")
