"""Clients of the lean HTTP server that send raw bytes, and a server that echoes requests."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.webhook.http.http1 import Http1Server
from crdkeeper.webhook.http.types import Body, HttpLimits, Response
from tests.certificates import Authority

AUTHORITY = Authority()

SECONDS = 60.0
PATIENT: dict[str, Any] = {
    "handshake_seconds": SECONDS,
    "request_seconds": SECONDS,
    "progress_seconds": SECONDS,
    "idle_seconds": 120.0,
    "linger_seconds": SECONDS,
}
"""The time of clients that is not what a test is about: a busy machine may take some of it."""
POST = b"POST /echo HTTP/1.1\r\nHost: here\r\n"
SLOW = b"POST /slow HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi"


class Peer:
    """A client that sends raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *pieces: bytes) -> None:
        for each in pieces:
            self.writer.write(each)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Status code, head and body of the next answer."""
        async with asyncio.timeout(SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            return int(head[9:12]), head, await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """What comes until the server closes."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


class Serving:
    """A server that echoes requests; /slow waits until it is released, /broken fails."""

    def __init__(self, limits: HttpLimits) -> None:
        self.go_on = asyncio.Event()
        self.handled: list[str] = []
        self.refused: list[int] = []
        self.given_up = 0
        self.trusts: ssl.SSLContext | None = None
        self.server = Http1Server(
            self._handle, limits, self._gate, lambda each: self.refused.append(each.status)
        )

    def _handle(self, method: str, path: str, body: Body, _: str) -> Response | Coroutine[Any, Any, Response]:
        self.handled.append(path)
        if path == "/broken":
            raise ValueError("as told")
        return self._later(body) if path == "/slow" else Response(bytes(body))

    async def _later(self, body: Body) -> Response:
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return Response(bytes(body))

    def _gate(self, method: str, path: str) -> Response | None:
        return Response(b"no\n", 404) if path == "/nowhere" else None

    @property
    def held(self) -> int:
        """Bytes of bodies and large answers."""
        return self.server.small.held + self.server.large.held + self.server.unsent.held

    async def peer(self, source: str = "127.0.0.1") -> Peer:
        """A client from that address."""
        return await self._connect(source, self.trusts)

    async def stranger(self, source: str) -> Peer:
        """A client from that address that has not started TLS."""
        return await self._connect(source, None)

    async def _connect(self, source: str, tls: ssl.SSLContext | None) -> Peer:
        streams = await asyncio.open_connection(
            "127.0.0.1", self.server.port, ssl=tls, local_addr=(source, 0)
        )
        return Peer(*streams)


@asynccontextmanager
async def serving(*, tls: bool = False, **limits: Any) -> AsyncIterator[Serving]:
    """A server with these limits, and otherwise with patience."""
    made = Serving(HttpLimits(**{**PATIENT, **limits}))
    if tls:
        made.trusts = verifying(ca_data=AUTHORITY.pem.decode())
    await made.server.start("127.0.0.1", 0, _context() if tls else None)
    try:
        yield made
    finally:
        await made.server.stop(0.0)


def sized(body: bytes, *headers: bytes) -> bytes:
    return POST + b"".join(headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _context() -> ssl.SSLContext:
    context, issued = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), AUTHORITY.issue()
    with tempfile.NamedTemporaryFile() as file:
        file.write(issued.certificate + issued.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context


async def until(holds: Callable[[], bool]) -> None:
    """Returns once it is true. Raises TimeoutError."""
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
