"""A lean HTTP/1.1 server for small requests in great numbers: whole bodies in, whole answers out.

The API server waits for an answer for each object that it reads, and a general framework spends more on the
request than the conversion costs (docs/performance.md has figures). API servers use HTTP/1.1 to call the
webhook of a Service, so that requests spread over its replicas (client-go's webhook.ClientManager).

Nothing that a client does takes unbounded memory or time. A refusal ends its connection.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from email.utils import formatdate
from typing import Final, Protocol, TypeVar

from crdkeeper.listening import address_of, listening
from crdkeeper.webhook.http.connection import ClientConnection
from crdkeeper.webhook.http.heads import KnownHeads
from crdkeeper.webhook.http.shedding import Ledger, Room, gives_way
from crdkeeper.webhook.http.types import Gate, Handler, HttpLimits, Response

_log = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_TICK_SECONDS: Final = 1.0
_LATE_SECONDS: Final = 1.0
_PRECEDENCE_SECONDS: Final = 0.002
_UNPROVEN_WEIGHT: Final = 4
"""The weight of a connection that has not yet requested anything that is served; others weigh 1."""
_RECEIVE_BYTES: Final = 16 << 10
"""The kernel's buffer for a connection, which it doubles. The loop's TLS keeps what arrives at once, twice,
until closed: with 64 KiB, 900 connections took 360 MiB, and large reviews were converted no faster."""


class Neighbors(Protocol):
    """Other processes that serve the same port."""

    ledgers: Sequence[Ledger]
    """For small bodies, large ones and answers."""

    def fewer(self, connections: int) -> bool:
        """Whether one of them has fewer connections than this process, which now has that many."""


class _Handshake:
    """A connection whose handshake is not finished."""

    def __init__(self, plain: socket.socket, source: str, since: float) -> None:
        self.plain = plain
        self.source = source
        self.since = since
        self.task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        """Give up."""
        if self.task is not None:
            self.task.cancel()


_Lost = TypeVar("_Lost", ClientConnection, _Handshake)


class Http1Server:
    """Serves one port."""

    def __init__(
        self,
        handle: Handler,
        limits: HttpLimits,
        gate: Gate = lambda method, path: None,
        refused: Callable[[Response], None] = lambda answer: None,
        neighbors: Neighbors | None = None,
    ) -> None:
        """With neighbors, the limits on bytes are for this process and for them together."""
        self.handle = handle
        self.gate = gate
        self.refused = refused
        """Called for each answer to a request that was not read completely."""
        self.limits = limits
        self.heads = KnownHeads()
        self._neighbors = neighbors
        ledgers: Sequence[Ledger | None] = neighbors.ledgers if neighbors else (None, None, None)
        self.small = Room(limits.held_bytes // 2, ledgers[0])
        self.large = Room(limits.held_bytes, ledgers[1])
        """Bytes of bodies."""
        self.unsent = Room(limits.unsent_bytes, ledgers[2])
        """Bytes of large answers."""
        self.accepted = 0
        """Number of connections so far."""
        self.date = b""
        self.draining = False
        """Whether each answer ends its connection, so that clients open the next one elsewhere."""
        self._connections: set[ClientConnection] = set()
        self._handshakes: set[_Handshake] = set()
        self._one_less = asyncio.Event()
        self._listener: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen. Raises OSError if the port is not available."""
        self.serve(listening(host, port, backlog=_BACKLOG), tls)

    def serve(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Serve on a socket that may be shared with other processes."""
        self._tell_time()
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        self._listener = listener
        self._tasks = [asyncio.create_task(each) for each in (self._tick(), self._accept(listener, tls))]

    @property
    def port(self) -> int:
        """The port that `start` opened: one of the system's choice for 0."""
        return int(self._started().getsockname()[1])

    @property
    def address(self) -> str:
        """The address it listens on, as HOST:PORT."""
        return address_of(self._started())

    def _started(self) -> socket.socket:
        if self._listener is None:
            raise RuntimeError("not started")
        return self._listener

    async def served(self) -> None:
        """Return only if it stops serving although nobody has called `stop`. Raises the cause."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if self._stopping:
            await asyncio.Event().wait()
        done.pop().result()

    async def stop(self, seconds: float) -> None:
        """Accept no more connections, give requests in progress that much time, and close all connections."""
        self.draining = self._stopping = True
        for task in self._tasks[1:]:
            task.cancel()
        if self._listener is not None:
            self._listener.close()
        for each in [each for each in self._connections if not each.working]:
            each.close()
        await self.left(seconds)
        for connection in list(self._connections):
            connection.abort()
        for handshake in list(self._handshakes):
            handshake.abort()
        for task in self._tasks:
            task.cancel()

    async def left(self, seconds: float) -> None:
        """Return once no client is connected, or after that time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._connections:
                    self._one_less.clear()
                    await self._one_less.wait()

    async def _accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        # Not with the loop's own server: it reports connections only after their handshakes, so their number
        # could not be limited before.
        loop = asyncio.get_running_loop()
        while True:
            try:
                if self._neighbors is not None:
                    await self._give_precedence(listener, self._neighbors)
                plain, peer = await loop.sock_accept(listener)
            except OSError as error:
                _log.error("Connections cannot be accepted: %s", error)
                await asyncio.sleep(_TICK_SECONDS)
                continue
            handshake = _Handshake(plain, peer[0], loop.time())
            self._handshakes.add(handshake)
            handshake.task = loop.create_task(self._welcome(handshake, tls))
            if len(self._handshakes) > self.limits.handshakes:
                self._lose(self._handshakes, gives_way(self._handshakes))
            # While more are waiting, `sock_accept` returns at once: let other tasks run.
            await asyncio.sleep(0)

    async def _give_precedence(self, listener: socket.socket, neighbors: Neighbors) -> None:
        """Wait for a connection, and then for a neighbor that has fewer: API servers keep theirs for long."""
        loop = asyncio.get_running_loop()
        came = asyncio.Event()
        loop.add_reader(listener, came.set)
        try:
            await came.wait()
        finally:
            loop.remove_reader(listener)
        if neighbors.fewer(len(self._connections) + len(self._handshakes)):
            await asyncio.sleep(_PRECEDENCE_SECONDS)

    async def _welcome(self, handshake: _Handshake, tls: ssl.SSLContext | None) -> None:
        seconds = self.limits.handshake_seconds if tls else None
        try:
            handshake.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: ClientConnection(self, handshake.source),
                handshake.plain,
                ssl=tls,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except OSError:
            return  # not TLS, or too slow
        finally:
            self._handshakes.discard(handshake)

    def opened(self, connection: ClientConnection) -> None:
        """There is one more connection. Without room for it, another one, or else this one, is closed."""
        self._connections.add(connection)
        if len(self._connections) > self.limits.connections:
            loser = gives_way(
                self._connections,
                lambda each: 1 if each.proven else _UNPROVEN_WEIGHT,
                lambda each: each is not connection and each.deadline is not None,
                lambda each: (each.proven, each.since),
            )
            self._lose(self._connections, loser or connection)

    def _lose(self, among: set[_Lost], loser: _Lost | None) -> None:
        if loser is not None:
            among.discard(loser)
            loser.abort()

    def closed(self, connection: ClientConnection) -> None:
        """There is one connection less."""
        self._connections.discard(connection)
        self._one_less.set()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.sleep(_TICK_SECONDS)
            self._tell_time()
            if self._neighbors is not None:
                self._neighbors.fewer(len(self._connections))
            for room in (self.small, self.large, self.unsent):
                room.settle()
            now = loop.time()
            if now - began > _TICK_SECONDS + _LATE_SECONDS:
                continue  # the delay was ours: what clients have sent may be waiting
            for each in list(self._connections):
                if each.deadline is not None and each.deadline < now:
                    each.expire()

    def _tell_time(self) -> None:
        self.date = f"Date: {formatdate(usegmt=True)}\r\n".encode("latin-1")
