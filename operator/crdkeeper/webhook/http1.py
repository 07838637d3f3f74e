"""A lean HTTP/1.1 server for small requests in great numbers: whole bodies in, whole answers out.

The API server waits for an answer for each object that it reads, and a general framework spends more on the
request than the conversion costs (figures in docs/performance.md). HTTP/1.1 is what API servers speak to the
webhook of a Service, so that requests spread over its replicas (client-go's webhook.ClientManager).

Nothing that a client does takes more than bounded memory or time. What is refused ends its connection.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from email.utils import formatdate
from typing import Final

from crdkeeper.webhook.http1connection import Answer, Connection, Gate, Handler, Limits

_log = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_TICK_SECONDS: Final = 1.0


class _Handshake:
    """A connection that is not there yet: it counts as one that sends a request."""

    working = idle = False

    def __init__(self, plain: socket.socket, deadline: float) -> None:
        self.plain = plain
        self.deadline: float | None = deadline
        self.task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        """Give up on it."""
        if self.task is not None:
            self.task.cancel()

    close = expire = abort


class Http1Server:
    """Serves one port."""

    def __init__(
        self,
        handle: Handler,
        limits: Limits,
        gate: Gate = lambda method, path: None,
        refused: Callable[[Answer], None] = lambda answer: None,
    ) -> None:
        self.handle = handle
        self.gate = gate
        self.refused = refused
        """Told of each answer to a request that was not read as a whole."""
        self.limits = limits
        self.held = 0
        """Bytes of bodies, in `Limits.held_bytes`."""
        self.accepted = 0
        """Connections, until now."""
        self.date = b""
        self.draining = False
        """Whether each answer ends its connection, so that clients open the next one elsewhere."""
        self._connections: set[Connection | _Handshake] = set()
        self._one_less = asyncio.Event()
        self._listener: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen. Raises OSError if the port cannot be had."""
        self._tell_time()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        listener.setblocking(False)
        self._listener = listener
        self._tasks = [asyncio.create_task(each) for each in (self._tick(), self._accept(listener, tls))]

    @property
    def port(self) -> int:
        """The port that `start` has taken: one of the system's choice for 0."""
        if self._listener is None:
            raise RuntimeError("not started")
        return int(self._listener.getsockname()[1])

    async def stop(self, seconds: float) -> None:
        """Take no more connections, let those at work finish for so long, and close all."""
        self.draining = True
        for task in self._tasks[1:]:
            task.cancel()
        if self._listener is not None:
            self._listener.close()
        for each in [each for each in self._connections if not each.working]:
            each.close()
        await self.left(seconds)
        for each in list(self._connections):
            each.abort()
        for task in self._tasks:
            task.cancel()

    async def left(self, seconds: float) -> None:
        """Return once no client is connected, or after so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._connections:
                    self._one_less.clear()
                    await self._one_less.wait()

    async def _accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        # Not by the loop's own server: it would hand over connections only after their handshakes, so that
        # nobody could bound how many there are before.
        loop = asyncio.get_running_loop()
        while True:
            try:
                plain, _ = await loop.sock_accept(listener)
            except OSError as error:
                _log.error("No connection can be accepted: %s", error)
                await asyncio.sleep(_TICK_SECONDS)
                continue
            if not self._make_room():
                plain.close()
                continue
            handshake = _Handshake(plain, loop.time() + self.limits.handshake_seconds)
            self.opened(handshake)
            handshake.task = loop.create_task(self._welcome(handshake, tls))

    async def _welcome(self, handshake: _Handshake, tls: ssl.SSLContext | None) -> None:
        seconds = self.limits.handshake_seconds if tls else None
        try:
            handshake.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: Connection(self),
                handshake.plain,
                ssl=tls,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except OSError:
            return  # it is no TLS, or took too long
        finally:
            self.closed(handshake)

    def _make_room(self) -> bool:
        """Whether one more connection can be taken; the one may be given up for it that waited longest."""
        if len(self._connections) < self.limits.connections:
            return True
        waiting = [each for each in self._connections if each.deadline is not None]
        if not waiting:
            return False
        min(waiting, key=lambda each: (not each.idle, each.deadline)).abort()
        return True

    def opened(self, connection: Connection | _Handshake) -> None:
        """There is one more connection."""
        self._connections.add(connection)

    def closed(self, connection: Connection | _Handshake) -> None:
        """There is one less."""
        self._connections.discard(connection)
        self._one_less.set()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._tell_time()
            now = asyncio.get_running_loop().time()
            for each in list(self._connections):
                if each.deadline is not None and each.deadline < now:
                    each.expire()

    def _tell_time(self) -> None:
        self.date = f"Date: {formatdate(usegmt=True)}\r\n".encode("latin-1")
