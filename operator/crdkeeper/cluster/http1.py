"""Keep-alive HTTP/1.1 for the one request that is sent a million times.

A general client spends more CPU on each rewriting patch than all the rest of crdkeeper: headers, cookies,
redirects, proxies, timers. This one writes a request in one piece and hands the answer to httptools'
parser (Node.js' llhttp). Measured in docs/performance.md.
"""

import asyncio
import ssl
from typing import cast

import httptools

_RETRY_AFTER = b"retry-after"


class Disconnected(Exception):
    """The connection ended before an answer; `unused` if the server had closed it while it was idle."""

    def __init__(self, message: str, *, unused: bool) -> None:
        super().__init__(message)
        self.unused = unused


class _Connection(asyncio.Protocol):
    """One connection; one request at a time. The `on_` methods are called by the parser."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[tuple[int, bytes, str]] | None = None
        self._body: list[bytes] = []
        self._retry_after = ""
        self._answered_any = False
        self.usable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        self._fail(f"connection lost: {exc or 'closed by the server'}")

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.close()
            self._fail(f"no HTTP: {error}")

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == _RETRY_AFTER:
            self._retry_after = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        answer, self._answer = self._answer, None
        if not self._parser.should_keep_alive():
            self.close()
        self._answered_any = True
        if answer is not None and not answer.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            answer.set_result((self._parser.get_status_code(), body, self._retry_after))
        # A parser serves one message after the other, but keeps no state that would have to be reset.
        self._body = []
        self._retry_after = ""

    def _fail(self, message: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            unused = self._answered_any and not self._body
            answer.set_exception(Disconnected(message, unused=unused))

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.close()

    def send(self, request: bytes) -> "asyncio.Future[tuple[int, bytes, str]]":
        if self._transport is None:
            raise RuntimeError("not connected yet")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def expire(self) -> None:
        """No answer in time: nothing that still comes may be taken for the answer to another request."""
        self._fail("no answer in time")
        self.usable = False
        if self._transport is not None:
            self._transport.abort()


class Http1Pool:
    """As many connections to one server as there are requests at the same time."""

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        server_hostname: str | None,
        *,
        connect_seconds: float,
        request_seconds: float,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._server_hostname = server_hostname
        self._connect_seconds = connect_seconds
        self._request_seconds = request_seconds
        self._idle: list[_Connection] = []
        self._authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def send(self, method: str, path: str, headers: str, content: bytes) -> tuple[int, bytes, str]:
        """Status code, body and Retry-After header (or an empty string).

        `headers` are lines that each end in CRLF, made once for many requests.

        Raises Disconnected, OSError or TimeoutError. A connection that the server had closed while it was
        idle is replaced once: the request was never read.
        """
        request = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._authority}\r\n{headers}"
            f"Content-Length: {len(content)}\r\n\r\n"
        ).encode("latin-1") + content
        try:
            return await self._exchange(request, await self._connection())
        except Disconnected as error:
            if not error.unused:
                raise
        return await self._exchange(request, await self._connect())

    async def _exchange(self, request: bytes, connection: _Connection) -> tuple[int, bytes, str]:
        timer = asyncio.get_running_loop().call_later(self._request_seconds, connection.expire)
        try:
            answer = await connection.send(request)
        except asyncio.CancelledError:
            connection.expire()
            raise
        finally:
            timer.cancel()
        if connection.usable:
            self._idle.append(connection)
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
        """Close what is idle; what is in use closes with its request."""
        for each in self._idle:
            each.close()
        self._idle.clear()
