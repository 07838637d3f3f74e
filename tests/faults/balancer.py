"""A TCP balancer in place of a Service of webhook replicas, like kube-proxy's.

A new connection goes to a random replica that is ready according to /readyz; if the replica refuses it, it is
refused. Open connections are not moved. The bytes are not inspected.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

_PIECE = 1 << 16
_LONGEST_ALERT = 64
"""Bytes. Longer data is a request, not a closing TLS alert."""
_AT_WORK_SECONDS = 1.0
"""A connection that ends so soon after its last bytes may end in the middle of an answer or of a request."""
_PROBE_SECONDS = 0.05
_CURRENT_SECONDS = 3.0
"""An older look says nothing: a replica that is told to stop accepts connections for five more seconds."""


@dataclass
class Backend:
    """One replica, and the results of connections to it."""

    port: int
    probe_port: int
    ready: bool = False
    seen: float = 0.0
    """When the last look that was answered began."""
    refused: int = 0
    """Failed connections to it."""
    cut: int = 0
    """Connections that it ended after the client had sent something, or right after it had answered."""


@dataclass
class Balancer:
    """Listens on a loopback port, on the running event loop."""

    port: int
    backends: Sequence[Backend]
    lag: float = 0.0
    """Seconds from a change of readiness to its effect, as with EndpointSlices and kube-proxy."""
    connections: int = 0
    nowhere: int = 0
    """Connections while no replica was ready."""
    _random: Random = field(default_factory=lambda: Random(1))
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=1024)
        for each in self.backends:
            self._keep(self._probe(each))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for each in list(self._tasks):
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, backend: Backend) -> None:
        while True:
            began = asyncio.get_running_loop().time()
            ready = await _is_ready(backend.probe_port)
            if ready is not None:
                if ready != backend.ready:
                    await asyncio.sleep(self.lag)
                    backend.ready = ready
                backend.seen = began
            await asyncio.sleep(_PROBE_SECONDS)

    async def _ready(self) -> list[Backend]:
        """Those that are ready now: what this process knew before it stood still does not count."""
        while True:
            oldest = asyncio.get_running_loop().time() - self.lag - _CURRENT_SECONDS
            ready = [each for each in self.backends if each.ready]
            current = [each for each in ready if each.seen >= oldest]
            if current or not ready:
                return current
            await asyncio.sleep(_PROBE_SECONDS)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        ready = await self._ready()
        if not ready:
            self.nowhere += 1
            writer.transport.abort()
            return
        backend = self._random.choice(ready)
        try:
            there = await asyncio.open_connection("127.0.0.1", backend.port)
        except OSError:
            backend.refused += 1
            writer.transport.abort()
            return
        self._keep(_Pipe(backend, reader, writer, *there).run())


@dataclass
class _Pipe:
    backend: Backend
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    there_reader: asyncio.StreamReader
    there_writer: asyncio.StreamWriter
    asked: bool = True
    """Whether the client waits: it connected, or sent the last bytes."""
    moved: float = 0.0
    """When the last bytes came: an answer may lack its end, or the next question may not be read yet."""
    client_left: bool = False

    async def run(self) -> None:
        tasks = [
            asyncio.create_task(self._copy(self.reader, self.there_writer, asks=True)),
            asyncio.create_task(self._copy(self.there_reader, self.writer, asks=False)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            at_work = self.asked or asyncio.get_running_loop().time() - self.moved < _AT_WORK_SECONDS
            if at_work and not self.client_left:
                self.backend.cut += 1
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in (self.writer, self.there_writer):
                writer.close()

    async def _copy(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, asks: bool) -> None:
        with suppress(OSError):
            while piece := await source.read(_PIECE):
                if len(piece) > _LONGEST_ALERT:
                    self.asked, self.moved = asks, asyncio.get_running_loop().time()
                to.write(piece)
                await to.drain()
            self.client_left |= asks


async def _is_ready(port: int) -> bool | None:
    """None without an answer in time, which a kubelet ignores until it happens again."""
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n")
                answer = await reader.readline()
            finally:
                writer.close()
    except TimeoutError:
        return None
    except OSError:
        return False
    return answer.startswith(b"HTTP/1.1 200")


async def until_ready(backends: Sequence[Backend], seconds: float = 120.0) -> None:
    """Return once the balancer sends connections to all of them."""
    deadline = time.monotonic() + seconds
    while not all(each.ready for each in backends):
        assert time.monotonic() < deadline, "not all replicas became ready"
        await asyncio.sleep(0.02)
