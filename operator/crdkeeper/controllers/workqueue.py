"""A queue of keys: each key once, one worker per key at a time, retried with backoff.

Modelled on client-go's workqueue. Kopf retries handlers by patching the watched object, which crdkeeper never
does to objects that it does not own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.core.migration.pace import backoff

_log = logging.getLogger(__name__)


class WorkQueue:
    """Calls `reconcile(key)` for each added key, until cancelled."""

    def __init__(self, reconcile: Callable[[str], Awaitable[None]], workers: int = 4) -> None:
        self._reconcile = reconcile
        self._workers = workers
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}
        self._timers: dict[str, tuple[float, asyncio.Handle]] = {}
        """When each key is due, in the loop's time: uvloop's handle of a timer of no length does not say."""

    @property
    def waiting(self) -> int:
        """The number of keys that wait for a worker."""
        return len(self._waiting)

    def add(self, key: str) -> None:
        """Queue the key; if it is being reconciled right now, once more after that."""
        self._stop_timer(key)
        if key in self._running:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.put_nowait(key)

    def add_within(self, key: str, seconds: float) -> None:
        """Queue the key in `seconds` at the latest: many changes in a row lead to one call."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        timer = self._timers.get(key)
        if key not in self._waiting and (timer is None or timer[0] > due):
            self._stop_timer(key)
            self._timers[key] = due, loop.call_later(seconds, self.add, key)

    def _stop_timer(self, key: str) -> None:
        if timer := self._timers.pop(key, None):
            timer[1].cancel()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._ready.get()
            self._waiting.discard(key)
            self._running.add(key)
            try:
                await self._reconcile(key)
            except Exception as error:
                count = self._failures.get(key, 0)
                self._failures[key] = count + 1
                wait = backoff(count, 0.5, 60.0)
                # Where an answer of the API server comes from shows nothing that its text does not.
                odd = count > 3 and not isinstance(error, ApiError | Unreachable)
                _log.warning("%s: %s; trying again in %.1f s", key, error, wait, exc_info=odd)
                self.add_within(key, wait)
            else:
                self._failures.pop(key, None)
            finally:
                self._running.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)
