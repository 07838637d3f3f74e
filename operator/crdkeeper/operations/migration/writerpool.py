"""The tasks of a pass that write objects: as many as its pace says, and ended without losing an answer."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.operations.migration.waiting import end

_LAST_WRITES_SECONDS = 2.0
"""For the writes in flight when a pass ends early: without an answer, they would count as current later."""


@dataclass(slots=True)
class WriterPool:
    """Each runs `work`, which ends when it is `superfluous`; `number` says how many there may be."""

    work: Callable[[], Coroutine[Any, Any, None]]
    number: Callable[[], int]
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _in_flight: set[asyncio.Task[Any]] = field(default_factory=set, init=False)
    _ending: bool = field(default=False, init=False)

    def staff(self) -> None:
        """Start those that are missing."""
        while len(self._tasks) < self.number() and not self._ending:
            task = asyncio.create_task(self.work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def superfluous(self) -> bool:
        """Whether the current one should stop. It is deregistered at once, so that one of several remains."""
        if self._ending:
            return True
        task = asyncio.current_task()
        if task is None or len(self._tasks) <= self.number():
            return False
        self._tasks.discard(task)
        return True

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """While the current one waits for the answer to a write."""
        if (task := asyncio.current_task()) is None:
            raise RuntimeError("not in a task")
        self._in_flight.add(task)
        try:
            yield
        finally:
            self._in_flight.discard(task)
            if self._ending:
                task.cancel()  # what is not settled by this answer is not tried again

    async def end(self, others: Sequence[asyncio.Task[None]]) -> None:
        """End all, and `others`. The writes in flight get a little time for their answers."""
        self._ending = True
        tasks, writing = [*others, *self._tasks], set(self._in_flight)
        for each in tasks:
            if each not in writing:
                each.cancel()
        try:
            if writing:
                await asyncio.wait(writing, timeout=_LAST_WRITES_SECONDS)
        finally:
            await end(*tasks)
