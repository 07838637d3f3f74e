"""Passes slow requests to worker processes, fairly, in bounded time and memory."""

import asyncio
import logging
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from crdkeeper.core.conversion.objects import ConversionTally
from crdkeeper.core.conversion.review import BadReview, Reply
from crdkeeper.webhook.conversion.workerprocess import MEMORY_BYTES
from crdkeeper.webhook.http.shedding import gives_way
from crdkeeper.webhook.http.types import Body

_log = logging.getLogger(__name__)

_MOST_WAITING: Final = 32
_WAIT_SECONDS: Final = 10.0
"""How long a request waits for its turn."""
_WORK_SECONDS: Final = 15.0
"""Real time; the worker allows itself 5 s of CPU time. With the wait, less than an API server's 30 s."""
_IDLE_SECONDS: Final = 30.0
"""After which a worker ends: most clusters never need it, and it takes as much memory as the server."""
_LEAST_BYTES: Final = 160 << 20
"""The memory of each of several workers: enough for all but the largest objects."""
_MOST_SHARED_BYTES: Final = 2 << 20
"""Larger requests have the memory of all at once: see `workerprocess.trusted`."""


class Busy(Exception):
    """This request would have to wait too long for its turn."""


class WorkerFailed(Exception):
    """The worker ended, or had to be killed, during this request."""


class WorkerRules(Protocol):
    """What a worker must know to convert."""

    @property
    def digest(self) -> str:
        """Identifies them."""

    @property
    def bundle(self) -> bytes:
        """The source from which it can compile them."""


class SlowConverter(Protocol):
    """Converts what the event loop does not."""

    async def convert(self, rules: WorkerRules, body: Body, source: str) -> Reply:
        """The answer to a ConversionReview. Raises BadReview, Busy or WorkerFailed."""


@dataclass(slots=True, eq=False)
class _Job:
    source: str
    since: float
    rules: WorkerRules
    body: Body
    answer: asyncio.Future[Reply]
    deadline: float = 0.0
    """Of the work, once it has begun."""


@dataclass(slots=True, eq=False)
class WorkerHandle:
    """A worker process, started when it is needed."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it works, or while another one needs the memory of all."""
    process: asyncio.subprocess.Process | None = None

    async def ask(self, rules: WorkerRules, body: Body, memory: int) -> Reply:
        """Its answer, for at most so much memory. Raises BadReview, or anything if the process fails."""
        if self.process is not None and self.process.returncode is not None:
            await self.end()  # it was killed while it was idle
        if self.process is None:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "crdkeeper.webhook.conversion.workerprocess",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        source, target = self.process.stdout, self.process.stdin
        assert source is not None
        assert target is not None
        said = {"digest": rules.digest, "bundle": len(rules.bundle), "body": len(body), "memory": memory}
        target.write(orjson.dumps(said) + b"\n" + rules.bundle)
        target.write(body)
        await target.drain()
        heard: dict[str, Any] = orjson.loads(await source.readuntil(b"\n"))
        content = await source.readexactly(heard["content"])
        if "bad" in heard:
            raise BadReview(heard["bad"])
        return reply_of(heard, content)

    async def end(self) -> None:
        """End it, whatever it does. If that is cancelled, the next call waits for it."""
        process = self.process
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.wait()
        if process.stdout is not None:
            await process.stdout.read()  # the pipes are closed once the end is seen
        self.process = None


def reply_of(heard: Mapping[str, Any], content: bytes) -> Reply:
    """A reply from its other fields as JSON, and its content."""
    return Reply(**{**heard, "content": content, "tally": ConversionTally(**heard["tally"])})


class Worker:
    """Worker processes, which share the memory for this, and run only while they are needed."""

    def __init__(self, processes: int = 1) -> None:
        """At most so many, and no more than have enough memory."""
        self.handles = [WorkerHandle() for _ in range(min(processes, MEMORY_BYTES // _LEAST_BYTES))]
        self._memory = MEMORY_BYTES // len(self.handles)
        self._waiting: list[_Job] = []
        self._turns: dict[str, float] = {}
        """When each waiting source had its last turn."""
        self._come = asyncio.Event()
        self._alone = asyncio.Lock()
        """Held by the one that waits for all turns: two could wait for each other."""

    async def convert(self, rules: WorkerRules, body: Body, source: str) -> Reply:
        """See SlowConverter."""
        loop = asyncio.get_running_loop()
        job = _Job(source, loop.time(), rules, body, loop.create_future())
        self._waiting.append(job)
        if len(self._waiting) > _MOST_WAITING:
            self._drop(gives_way(self._waiting))
        self._come.set()
        timer = loop.call_later(_WAIT_SECONDS, self._drop, job)
        try:
            return await job.answer
        finally:
            timer.cancel()
            if job in self._waiting:
                self._waiting.remove(job)

    async def run(self) -> None:
        """Run until cancelled; then all waiting requests get Busy or WorkerFailed, and the processes end."""
        works = [asyncio.create_task(self._run(each)) for each in self.handles]
        try:
            await asyncio.gather(*works)
        finally:
            for each in works:
                # Once: a second time would interrupt one that waits for the end of its process.
                if not each.cancelling():
                    each.cancel()
            await asyncio.gather(*works, return_exceptions=True)
            for job in list(self._waiting):
                self._drop(job)

    async def _run(self, handle: WorkerHandle) -> None:
        try:
            while True:
                while self._waiting:
                    await self._work(handle)
                self._turns.clear()
                self._come.clear()
                try:
                    async with asyncio.timeout(_IDLE_SECONDS if handle.process else None):
                        await self._come.wait()
                except TimeoutError:
                    async with handle.turn:
                        await handle.end()
        finally:
            await handle.end()

    def _drop(self, job: _Job | None) -> None:
        if job is not None and job in self._waiting:
            self._waiting.remove(job)
            if not job.answer.done():
                job.answer.set_exception(Busy())

    def _next(self) -> _Job:
        """The next job of the source that has waited longest, so that none waits for all jobs of another."""
        now = asyncio.get_running_loop().time()
        job = min(self._waiting, key=lambda each: (self._turns.get(each.source, 0.0), each.since))
        self._waiting.remove(job)
        self._turns[job.source] = now
        job.deadline = now + _WORK_SECONDS
        return job

    async def _work(self, handle: WorkerHandle) -> None:
        job: _Job | None = None
        try:
            async with handle.turn:
                if not self._waiting:
                    return  # others were faster
                job = self._next()
                if len(self.handles) == 1 or len(job.body) <= _MOST_SHARED_BYTES:
                    await self._try(handle, job, self._memory)
            in_time = asyncio.get_running_loop().time() < job.deadline
            if not job.answer.done() and in_time and self._memory < MEMORY_BYTES:
                await self._work_alone(handle, job)
        finally:
            if job is not None and not job.answer.done():
                job.answer.set_exception(WorkerFailed())

    async def _work_alone(self, handle: WorkerHandle, job: _Job) -> None:
        """With the memory of all: its share may be too little."""
        async with AsyncExitStack() as turns:
            try:
                async with asyncio.timeout_at(job.deadline):
                    await turns.enter_async_context(self._alone)
                    for each in self.handles:
                        await turns.enter_async_context(each.turn)
            except TimeoutError:
                if not job.answer.done():
                    job.answer.set_exception(Busy())
                return
            try:
                for each in self.handles:
                    await each.end()
                await self._try(handle, job, MEMORY_BYTES)
            finally:
                await handle.end()

    async def _try(self, handle: WorkerHandle, job: _Job, memory: int) -> None:
        """The job has its answer, or the worker has failed, and ended."""
        try:
            async with asyncio.timeout_at(job.deadline):
                reply = await handle.ask(job.rules, job.body, memory)
            if not job.answer.done():  # its client may be gone
                job.answer.set_result(reply)
        except BadReview as error:
            if not job.answer.done():
                job.answer.set_exception(error)
        except Exception as error:
            # Whatever one request does to the worker, the process that serves all others continues.
            _log.error("The worker failed (%s); starting another one.", type(error).__name__)
            await handle.end()
