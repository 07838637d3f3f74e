"""Keep-alive HTTP/1.1 for the one request that is sent a million times.

A general client spends more CPU on each rewriting patch than all the rest of crdkeeper: headers, cookies,
redirects, proxies, timers. This one writes a request in one piece and passes the answer to httptools' parser
(Node.js' llhttp). docs/performance.md has the measurements.

An answer decides whether an object counts as rewritten. So a connection on which answers and requests could
get out of step is closed: when the server speaks unasked, sends more than one answer, or violates HTTP.
"""

import asyncio
import ssl
from collections.abc import Coroutine
from typing import Final, NamedTuple, cast

import httptools

from crdkeeper.cluster.transport.fence import Fence, Fenced
from crdkeeper.cluster.transport.requestids import AUDIT_ID, RequestIds

HEAD_BYTES: Final = 64 << 10
"""All that may precede an answer's body: interim answers, status line and headers."""
REQUESTS_PER_CONNECTION: Final = 1000
"""A load balancer chooses a server for each connection, and moves none: one that is kept for millions of
requests stays with the server that it first met, also when others join. At this number, the handshakes cost a
thousandth of the time.
"""
BODY_BYTES: Final = 16 << 20
"""The largest answer. An object fits into a request of 3 MiB, and we request only its metadata."""

_AUDIT_ID = AUDIT_ID.lower().encode()


class Disconnected(Exception):
    """The connection ended before an answer; `unused` if the server had closed it while it was idle."""

    def __init__(self, message: str, *, unused: bool = False) -> None:
        super().__init__(message)
        self.unused = unused


class RawAnswer(NamedTuple):
    """Status code, body, and the headers that matter here (empty strings if absent)."""

    code: int
    body: bytes
    retry_after: str = ""
    audit_id: str = ""


class _Connection(asyncio.Protocol):
    """One connection; one request at a time. The parser calls the `on_` methods."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._asked: asyncio.Future[RawAnswer] | None = None
        self._answer: RawAnswer | None = None
        self._keep = False
        self._answers = 0
        self._received = 0
        self._begin()
        self.usable = True

    def _begin(self) -> None:
        self._in_body = False
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._retry_after = self._audit_id = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        unused = bool(self._answers) and not self._received
        self._fail(Disconnected(f"connection lost: {exc or 'closed by the server'}", unused=unused))

    def data_received(self, data: bytes) -> None:
        if self._asked is None:
            self.close()  # Unasked data would be taken for the answer to the next request.
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # The parser wraps what a callback raises.
            cause = error.__context__ if isinstance(error.__context__, Disconnected) else None
            self._give_up(cause or Disconnected(f"not HTTP: {error or 'another protocol'}"))
            return
        # Chunks and trailers count too: the parser keeps an unfinished header.
        if self._received - self._body_bytes > HEAD_BYTES + self._body_bytes:
            self._give_up(Disconnected("the response headers are too large"))
        elif self._answer is not None:
            self._deliver(self._answer)

    def on_message_begin(self) -> None:
        if self._answer is not None:
            raise Disconnected("the server sent more than one response")
        self._begin()  # There may have been an interim answer.

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            return  # a trailer
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value
        elif name == _AUDIT_ID:
            self._audit_id = value

    def on_headers_complete(self) -> None:
        self._in_body = True

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > BODY_BYTES:
            raise Disconnected("the response is too large")
        self._body.append(body)

    def on_message_complete(self) -> None:
        code = self._parser.get_status_code()
        if code < 200:
            return  # An interim answer, such as 103: the final one is still to come.
        self._keep = self._parser.should_keep_alive()
        self._answer = RawAnswer(
            code, b"".join(self._body), self._retry_after.decode("latin-1"), self._audit_id.decode("latin-1")
        )

    def _deliver(self, answer: RawAnswer) -> None:
        """Deliver the answer, now that no unexpected data has followed it."""
        asked, self._asked, self._answer = self._asked, None, None
        self._answers += 1
        if not self._keep or self._answers >= REQUESTS_PER_CONNECTION:
            self.close()
        if asked is not None and not asked.done():
            asked.set_result(answer)

    def _fail(self, error: Disconnected) -> None:
        asked, self._asked = self._asked, None
        if asked is not None and not asked.done():
            asked.set_exception(error)

    def _give_up(self, error: Disconnected) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()
        self._fail(error)

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.close()

    def send(self, request: bytes) -> "asyncio.Future[RawAnswer]":
        if self._transport is None:
            raise RuntimeError("not connected yet")
        self._asked = asyncio.get_running_loop().create_future()
        self._received = 0
        self._begin()
        self._transport.write(request)
        return self._asked

    def expire(self) -> None:
        """No answer in time: later data must not be taken for the answer to another request."""
        self._give_up(Disconnected("no response in time"))


class Http1Pool:
    """Opens as many connections to one server as there are concurrent requests."""

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        server_hostname: str | None,
        *,
        connect_seconds: float,
        request_seconds: float,
        fence: Fence | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._server_hostname = server_hostname
        self._connect_seconds = connect_seconds
        self._request_seconds = request_seconds
        self._fence = fence or Fence()
        self._idle: list[_Connection] = []
        self._closings = 0
        self._authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._ids = RequestIds()

    async def send(self, method: str, path: str, headers: str, content: bytes) -> RawAnswer:
        """Return the answer to one request.

        `headers` are lines that each end in CRLF, created once for many requests.

        Raises Disconnected, OSError or TimeoutError, and Fenced if the request may not be sent any more. A
        connection that the server had closed while it was idle is replaced once: the request was never read.
        """
        id = self._ids.next()
        request = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._authority}\r\n{headers}"
            f"{AUDIT_ID}: {id}\r\nContent-Length: {len(content)}\r\n\r\n"
        ).encode() + content
        try:
            answer = await self._exchange(method, request, self._connection())
        except Disconnected as error:
            if not error.unused:
                raise
            answer = await self._exchange(method, request, self._connect())
        if not self._ids.answered(id, answer.code, answer.audit_id):
            self.close()
            raise Disconnected("the server sent the response to another request")
        return answer

    async def _exchange(
        self, method: str, request: bytes, connecting: Coroutine[None, None, _Connection]
    ) -> RawAnswer:
        # From here on: it may be closed before it is connected.
        closings = self._closings
        connection = await connecting
        try:
            # Only now: to connect may have taken long.
            self._fence.check(method)
        except Fenced:
            self._idle.append(connection)
            raise
        timer = asyncio.get_running_loop().call_later(self._request_seconds, connection.expire)
        try:
            answer = await connection.send(request)
        except asyncio.CancelledError:
            connection.expire()
            raise
        finally:
            timer.cancel()
        if connection.usable and closings == self._closings:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    async def _connection(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return await self._connect()

    async def _connect(self) -> _Connection:
        async with asyncio.timeout(self._connect_seconds):
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection, self._host, self._port, ssl=self._tls, server_hostname=self._server_hostname
            )
        return connection

    def close(self) -> None:
        """Close idle connections; the others close after their request."""
        self._closings += 1
        for each in self._idle:
            each.close()
        self._idle.clear()
