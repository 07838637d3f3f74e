"""A proxy between one process and an API server: it records requests, and answers, delays or loses some.

It also ends watches that have begun, in the ways in which API servers and networks do.

It runs on a thread of its own, so that fixtures of any scope can have one. The process speaks plain HTTP.
"""

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
from aiohttp import web
from yarl import URL

from tests.cluster.harness.waiting import eventually
from tests.controlplane import kubeconfig
from tests.controlplane.cluster import Cluster

_HOP = frozenset(
    ("connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding")
)
_REASONS = {
    403: "Forbidden",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(frozen=True)
class Request:
    """A request that arrived, with the status of its answer; 0 if it got none."""

    method: str
    path: str
    code: int

    @property
    def writes(self) -> bool:
        """Whether it may change something; Leases and Events do not count, nor questions about rights."""
        about_work = not re.search(r"/(leases|events|selfsubjectaccessreviews)(/|\?|$)", self.path)
        return self.method != "GET" and about_work

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]} {self.code}"


@dataclass
class Fault:
    """What happens to requests of a method whose path matches a pattern."""

    method: str
    pattern: str
    code: int = 0
    """The status to answer with; 0 to cut the connection."""
    retry_after: int = 0
    after: bool = False
    """Whether the API server gets the request all the same."""
    times: int = -1
    """How often; without end if negative."""
    chance: Callable[[], bool] = lambda: True
    held: threading.Event | None = None
    """Hold the request until this is set, then send it on."""
    accept: str = ""
    """A pattern of what the client accepts, such as whole objects."""
    body: str = ""
    """A pattern of what the client sends: requests with the same path may be for different things."""
    met: int = 0

    def concerns(self, method: str, path: str, accept: str, body: bytes) -> bool:
        """Whether it happens to this request."""
        fits = method == self.method and re.search(self.pattern, path) is not None
        fits = fits and re.search(self.accept, accept) is not None
        fits = fits and re.search(self.body.encode(), body) is not None
        if not fits or self.times == 0 or not self.chance():
            return False
        self.times -= 1
        self.met += 1
        return True


@dataclass
class FaultProxy:
    """Listens on a loopback port; use as a context manager."""

    cluster: Cluster
    faults: list[Fault] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    ahead: timedelta = timedelta(0)
    """How much later than the API server's clock the Date of its answers is."""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _port: int = 0
    _watches: dict["asyncio.Future[bytes]", str] = field(default_factory=dict)
    """Of each watch that is open: what ends it, and its path."""

    def __enter__(self) -> Self:
        self._ended = asyncio.Event()
        started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="fault proxy", daemon=True)
        self._thread.start()
        self._port = started.result(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, original: Path) -> Path:
        """A copy of a kubeconfig with a token that leads through this proxy."""
        token = json.loads(original.read_text())["users"][0]["user"]["token"]
        path = self.cluster.directory / "kubeconfigs" / f"{original.stem}-by-{self._port}.kubeconfig"
        return kubeconfig.write(path, url=f"http://127.0.0.1:{self._port}", ca_file=None, token=token)

    def has_watch(self, pattern: str, number: int = 1) -> bool:
        """Whether so many watches whose paths match are open."""
        return sum(bool(re.search(pattern, each)) for each in [*self._watches.values()]) >= number

    def end_watches(self, pattern: str, event: bytes = b"") -> int:
        """End the open watches whose path matches: with this event, or else by cutting the connection.

        Returns how many there were.
        """

        async def end() -> int:
            ended = [each for each, path in self._watches.items() if re.search(pattern, path)]
            for each in ended:
                if not each.done():
                    each.set_result(event)
            return len(ended)

        return asyncio.run_coroutine_threadsafe(end(), self._loop).result(30)

    def writes(self, since: int = 0) -> list[Request]:
        """The writes of all requests from that number on."""
        return [each for each in self.requests[since:] if each.writes]

    async def until_quiet(self, seconds: float = 5.0) -> None:
        """Returns when nothing has been written for that long."""

        async def quiet() -> bool:
            since = len(self.requests)
            await asyncio.sleep(seconds)
            return not self.writes(since)

        await eventually(quiet)

    def _run(self, started: "Future[int]") -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(started))

    async def _serve(self, started: "Future[int]") -> None:
        trust = ssl.create_default_context(cafile=self.cluster.ca_file)
        connector = aiohttp.TCPConnector(limit=0, ssl=trust)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as self._session:
            application = web.Application(client_max_size=64 << 20)
            application.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            started.set_result(runner.addresses[0][1])
            await self._ended.wait()
            for each in self._watches:
                if not each.done():
                    each.set_result(b"")
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        # Read first: the client may have given up by the time it is sent on, or die and leave half of a body.
        body = await request.read()
        asked = request.method, request.raw_path, request.headers.get("Accept", ""), body
        fault = next((each for each in self.faults if each.concerns(*asked)), None)
        if fault is None:
            return await self._forward(request, body)
        if fault.held is not None:
            await asyncio.to_thread(fault.held.wait)
            return await self._forward(request, body)
        if fault.after:
            async with self._sent(request, body) as answer:
                await answer.read()
        self._record(request, fault.code)
        if not fault.code:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        reason = _REASONS.get(fault.code, "")
        status = {"kind": "Status", "code": fault.code, "reason": reason, "message": "a fault of the test"}
        headers = {"Audit-Id": request.headers.get("Audit-Id", "")}
        if fault.retry_after:
            headers["Retry-After"] = str(fault.retry_after)
        return web.json_response(status, status=fault.code, headers=headers)

    async def _forward(self, request: web.Request, body: bytes) -> web.StreamResponse:
        async with self._sent(request, body) as answer:
            self._record(request, answer.status)
            headers = {key: each for key, each in answer.headers.items() if key.lower() not in _HOP}
            date = parsedate_to_datetime(answer.headers["Date"]) + self.ahead
            headers["Date"] = format_datetime(date, usegmt=True)
            response = web.StreamResponse(status=answer.status, headers=headers)
            with suppress(ConnectionError):
                await response.prepare(request)
                if request.query.get("watch") == "true":
                    await self._pass_watch(request, answer, response)
                else:
                    await _pass(answer, response)
                await response.write_eof()
            return response

    async def _pass_watch(
        self, request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse
    ) -> None:
        ended: asyncio.Future[bytes] = self._loop.create_future()
        self._watches[ended] = request.raw_path
        passing = asyncio.create_task(_pass(answer, response))
        try:
            await asyncio.wait((passing, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._watches[ended]
            passing.cancel()
        if not ended.done():
            await passing
        elif event := ended.result():
            await response.write(event + b"\n")
        elif request.transport is not None:
            request.transport.abort()

    def _sent(self, request: web.Request, body: bytes) -> Any:
        headers = {key: each for key, each in request.headers.items() if key.lower() not in _HOP}
        url = URL(self.cluster.url + request.raw_path, encoded=True)
        return self._session.request(request.method, url, data=body or None, headers=headers)

    def _record(self, request: web.Request, code: int) -> None:
        self.requests.append(Request(request.method, request.raw_path, code))


async def _pass(answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    async for piece in answer.content.iter_any():
        await response.write(piece)
