"""Passes changes of CRDs to a worker process, one at a time, and returns what is known when the time is over.

What policies decide alone has another process of the same kind.

Each change has a conversation with the worker: this process fetches pages of live objects, without reading
them, for as long as there is time and nobody else waits.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from crdkeeper.core.conversion.review import BadReview
from crdkeeper.core.conversion.target import WebhookAddress

_log = logging.getLogger(__name__)

_OVERTIME_SECONDS: Final = 1.0
"""How much longer than a change has time the worker may take to notice that."""
_TELLING_SECONDS: Final = 0.15
"""The part of a change's time in which the worker tells what it has found by then."""
_LAST_SECONDS: Final = 0.3
"""The part of a change's time in which no further page is requested."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page of a list as the API server sent it. Empty if there is none, and then why."""

    content: bytes
    why: str = ""


Fetch = Callable[[str, str, float], Awaitable[RawPage]]
"""The page of a collection that begins at a continue token, within that many seconds."""


Report = Callable[[str, float], Awaitable[RawPage]]
"""The DefinitionReport of a CRD, within that many seconds; empty if there is none."""


class Crowded(Exception):
    """Too many changes at once, or no time was left when its turn came."""


class Unable(Exception):
    """No change can be examined by these policies."""


@dataclass(slots=True)
class _Known:
    """What is known of a change so far."""

    answer: dict[str, Any] | None = None
    failure: BaseException | None = None
    waits: bool = True
    """Whether its turn has not come yet."""


@dataclass(slots=True)
class ChangeWorker:
    """One worker process."""

    fetch: Fetch
    report: Report
    rules: Callable[[str], bytes]
    """The bundle of conversion rules that is served for a CRD; empty if there is none."""
    address: Callable[[], WebhookAddress]
    """Where API servers reach the webhook: a CRD that names it is converted by these rules."""
    most_waiting: int = 16
    decides: bool = False
    """Whether it only decides whether a policy protects the CRD, and examines no change."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0
    _process: asyncio.subprocess.Process | None = None
    _starting: asyncio.Task[bytes] | None = None
    """Reads the first line of the process, with which it is ready."""
    _told_policies: bytes = b""
    """The policies that the process has been told: hundreds of them take longer to read than to decide by."""
    _talks: set[asyncio.Task[None]] = field(default_factory=set)

    async def examine(self, body: bytes, policies: bytes, seconds: float) -> dict[str, Any]:
        """The AdmissionReview to answer with.

        Raises BadReview and Unable, and Crowded if nothing is known in time.
        """
        if self.waiting >= self.most_waiting:
            raise Crowded
        known, deadline = _Known(), time.monotonic() + seconds
        self._waiting += 1
        talk = asyncio.create_task(self._talk(known, body, policies, deadline))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)
        # One that is cancelled before it has begun notices nothing itself.
        talk.add_done_callback(lambda _: self._waits_no_more(known))
        # It goes on without us: the worker must hear the end.
        await asyncio.wait({talk}, timeout=seconds)
        if known.failure is not None:
            raise known.failure
        if known.answer is None:
            raise Crowded
        return known.answer

    @property
    def waiting(self) -> int:
        """How many changes wait for their turn."""
        return self._waiting

    async def start(self) -> None:
        """Have a worker ready, so that the first change need not wait for one."""
        async with self._turn:
            await self._begin()

    async def close(self) -> None:
        """End the worker; changes under way get what is known."""
        for each in list(self._talks):
            each.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._end()

    async def _talk(self, known: _Known, body: bytes, policies: bytes, deadline: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._turn.acquire()
        except TimeoutError:
            return
        finally:
            self._waits_no_more(known)
        try:
            # One that takes long to start is not killed for that: the next one would take as long.
            starting = await self._begin()
            await asyncio.wait({starting}, timeout=max(0.0, deadline - time.monotonic()))
            if not starting.done():
                return
            starting.result()
            async with asyncio.timeout(max(0.0, deadline - time.monotonic()) + _OVERTIME_SECONDS):
                await self._conversation(known, body, policies, deadline)
        except (BadReview, Unable) as error:
            known.failure = error
        except BaseException as error:
            # Whatever one change does to the worker, the next one gets a fresh one.
            if not isinstance(error, asyncio.CancelledError):
                _log.error("The worker for changes of CRDs failed: %s", repr(error) or type(error).__name__)
            await self._end()
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._turn.release()

    def _waits_no_more(self, known: _Known) -> None:
        if known.waits:
            known.waits = False
            self._waiting -= 1

    async def _conversation(self, known: _Known, body: bytes, policies: bytes, deadline: float) -> None:
        assert self._process is not None
        source, target = self._process.stdout, self._process.stdin
        assert source is not None
        assert target is not None
        news = b"" if policies == self._told_policies else policies
        head = {"body": len(body), "policies": len(news), "seconds": deadline - time.monotonic()}
        target.write(json.dumps(head).encode() + b"\n" + body + news)
        self._told_policies = policies
        await target.drain()
        collection, coming = "", None
        reporting: asyncio.Task[RawPage] | None = None
        try:
            while True:
                said = json.loads(await source.readuntil(b"\n"))
                known.answer = said.get("answer") or known.answer
                if "unable" in said:
                    raise Unable(said["unable"])
                if "bad" in said:
                    raise BadReview(said["bad"])
                if said.get("done"):
                    return
                if said.get("collection"):
                    collection = said["collection"]
                    reporting = self._reporting(said["name"], deadline)
                if "name" in said:
                    bundle = self.rules(said["name"])
                    serving = {"rules": len(bundle), "address": asdict(self.address())}
                    target.write(json.dumps(serving).encode() + b"\n" + bundle)
                    await target.drain()
                if "collection" in said or said.get("token"):
                    coming = self._coming(collection, said.get("token") or "", deadline)
                elif "token" in said:
                    coming = None
                if said.get("objects"):
                    page = await coming if coming is not None else RawPage(b"")
                    coming = None
                    report = RawPage(b"")
                    if reporting is not None and (page.why or reporting.done()):
                        report, reporting = await self._told(reporting, deadline), None
                    left = deadline - time.monotonic() - _TELLING_SECONDS
                    following = {
                        "page": len(page.content),
                        "report": len(report.content),
                        "unreported": report.why,
                        "why": page.why,
                        "seconds": left,
                    }
                    target.write(json.dumps(following).encode() + b"\n" + page.content + report.content)
                    await target.drain()
        finally:
            for each in (coming, reporting):
                if each is not None:
                    each.cancel()

    def _coming(self, collection: str, token: str, deadline: float) -> asyncio.Task[RawPage]:
        """The next page, while the worker is busy with the one before."""

        async def fetched() -> RawPage:
            seconds = deadline - time.monotonic() - _LAST_SECONDS
            if not collection:
                return RawPage(b"")
            if seconds <= 0:
                return RawPage(b"", "there was no time for more")
            if self._waiting and token:
                return RawPage(b"", "other changes wait")
            return await self.fetch(collection, token, seconds)

        return asyncio.create_task(fetched())

    def _reporting(self, name: str, deadline: float) -> asyncio.Task[RawPage]:
        """It comes while pages are fetched and judged, though only a list that ends early needs it."""
        seconds = max(0.0, deadline - time.monotonic() - _LAST_SECONDS)

        async def fetched() -> RawPage:
            return await self.report(name, seconds)

        return asyncio.create_task(fetched())

    async def _told(self, reporting: asyncio.Task[RawPage], deadline: float) -> RawPage:
        await asyncio.wait({reporting}, timeout=max(0.0, deadline - time.monotonic() - _LAST_SECONDS))
        if not reporting.done():
            reporting.cancel()
            return RawPage(b"")
        return reporting.result()

    async def _begin(self) -> asyncio.Task[bytes]:
        """Start a process if there is none. Returns the task that ends when it is ready."""
        if self._process is None or self._process.returncode is not None or self._starting is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "crdkeeper.webhook.changes.workerprocess",
                *(["--decides"] if self.decides else []),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert self._process.stdout is not None
            self._told_policies = b""
            self._starting = asyncio.create_task(self._process.stdout.readuntil(b"\n"))
        return self._starting

    async def _end(self) -> None:
        process, self._process = self._process, None
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
            if process.stdout is not None:
                await process.stdout.read()  # the pipes are closed once the end is seen
