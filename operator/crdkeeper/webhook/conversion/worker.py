"""Passes slow requests to a worker process, one after the other, fairly and in bounded time."""

import asyncio
import logging
import sys
from dataclasses import dataclass
from typing import Any, Final

import orjson

from crdkeeper.core.conversion.objects import ConversionTally
from crdkeeper.core.conversion.review import BadReview, Reply
from crdkeeper.webhook.http.shedding import gives_way
from crdkeeper.webhook.http.types import Body
from crdkeeper.webhook.rules.rulebook import Served

_log = logging.getLogger(__name__)

_MOST_WAITING: Final = 32
_WAIT_SECONDS: Final = 10.0
"""How long a request waits for its turn."""
_WORK_SECONDS: Final = 15.0
"""Real time; the worker allows itself 5 s of CPU time. With the wait, less than an API server's 30 s."""
_IDLE_SECONDS: Final = 30.0
"""After which the worker ends: most clusters never need it, and it takes as much memory as the server."""


class Busy(Exception):
    """This request would have to wait too long for its turn."""


class WorkerFailed(Exception):
    """The worker ended, or had to be killed, during this request."""


@dataclass(slots=True, eq=False)
class _Job:
    source: str
    since: float
    served: Served
    body: Body
    answer: asyncio.Future[Reply]


class Worker:
    """One worker process, which runs only while it is needed."""

    def __init__(self) -> None:
        self._waiting: list[_Job] = []
        self._turns: dict[str, float] = {}
        """When each waiting source had its last turn."""
        self._come = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None

    async def convert(self, served: Served, body: Body, source: str) -> Reply:
        """The answer to a ConversionReview. Raises BadReview, Busy or WorkerFailed."""
        loop = asyncio.get_running_loop()
        job = _Job(source, loop.time(), served, body, loop.create_future())
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
        """Run until cancelled; then all waiting requests get Busy or WorkerFailed, and the process ends."""
        try:
            while True:
                while self._waiting:
                    await self._work(self._next())
                self._turns.clear()
                self._come.clear()
                try:
                    async with asyncio.timeout(_IDLE_SECONDS if self._process else None):
                        await self._come.wait()
                except TimeoutError:
                    await self._end()
        finally:
            for each in list(self._waiting):
                self._drop(each)
            await self._end()

    def _drop(self, job: _Job | None) -> None:
        if job is not None and job in self._waiting:
            self._waiting.remove(job)
            if not job.answer.done():
                job.answer.set_exception(Busy())

    def _next(self) -> _Job:
        """The next job of the source that has waited longest, so that none waits for all jobs of another."""
        job = min(self._waiting, key=lambda each: (self._turns.get(each.source, 0.0), each.since))
        self._waiting.remove(job)
        self._turns[job.source] = asyncio.get_running_loop().time()
        return job

    async def _work(self, job: _Job) -> None:
        failure: Exception = WorkerFailed()
        try:
            async with asyncio.timeout(_WORK_SECONDS):
                reply = await self._asked(job)
            if not job.answer.done():  # its client may be gone
                job.answer.set_result(reply)
        except BadReview as error:
            failure = error
        except Exception as error:
            # Whatever one request does to the worker, the process that serves all others continues.
            _log.error("The worker failed (%s); starting another one.", type(error).__name__)
            await self._end()
        finally:
            if not job.answer.done():
                job.answer.set_exception(failure)

    async def _asked(self, job: _Job) -> Reply:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "crdkeeper.webhook.conversion.workerprocess",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        source, target = self._process.stdout, self._process.stdin
        assert source is not None
        assert target is not None
        bundle = job.served.bundle
        said = {"digest": job.served.digest, "bundle": len(bundle), "body": len(job.body)}
        target.write(orjson.dumps(said) + b"\n" + bundle)
        target.write(job.body)
        await target.drain()
        heard: dict[str, Any] = orjson.loads(await source.readuntil(b"\n"))
        content = await source.readexactly(heard["content"])
        if "bad" in heard:
            raise BadReview(heard["bad"])
        return Reply(**{**heard, "content": content, "tally": ConversionTally(**heard["tally"])})

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
