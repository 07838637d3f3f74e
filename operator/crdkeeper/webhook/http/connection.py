"""One connection of the lean HTTP/1.1 server: a parser, and the limits of a client.

Node.js' llhttp parses; it is strict: a body with two lengths, bare line feeds or folded headers are errors.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

import httptools

from crdkeeper.webhook.http.heads import MOST_DIGITS, Around, Head, KnownHeads, split
from crdkeeper.webhook.http.shedding import Room
from crdkeeper.webhook.http.types import LATER, TEXT, Body, Gate, Handler, HttpLimits, Response

_log = logging.getLogger(__name__)

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_VERSIONS: Final = ("1.0", "1.1")
_PIECE_BYTES: Final = 64 << 10
"""Passed to the transport at a time: it buffers what a client does not read, and does not say how much."""
_BUSY: Final = Response(b"too many requests at once\n", 503, TEXT + LATER)


class Owner(Protocol):
    """What a connection needs of its server."""

    limits: HttpLimits
    handle: Handler
    gate: Gate
    heads: KnownHeads
    refused: Callable[[Response], None]
    small: Room
    large: Room
    unsent: Room
    accepted: int
    date: bytes
    draining: bool

    def opened(self, connection: "ClientConnection") -> None:
        """Called for each new connection."""

    def closed(self, connection: "ClientConnection") -> None:
        """Called for each closed connection."""


class _Ended(Exception):
    """Stops the parser: the connection's last answer has been sent."""


class ClientConnection(asyncio.Protocol):
    """One connection, one request at a time. The parser calls the `on_` methods."""

    def __init__(self, server: Owner, source: str) -> None:
        self.source = source
        self.since = 0.0
        """When it became idle, or received the first byte of a request, in the loop's time."""
        self.deadline: float | None = None
        """When the client's time is over, in the loop's time; None while its request is processed."""
        self.idle = True
        """Whether it is between two requests."""
        self.proven = False
        """Whether it has requested something that is served."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._work: asyncio.Task[None] | None = None
        self._taking = asyncio.Event()
        """Whether the client reads what is written."""
        self._taking.set()
        self._ending = self._complete = self._sending = False
        self._room = server.small
        self._begin()

    def _begin(self) -> None:
        self._in_head = True
        self._head_bytes = self._unended_bytes = self._progress = 0
        self._url = b""
        self._hosts = 0
        self._expects = False
        self._around: Around | None = None
        """The head of a request that came in one piece."""
        self._method = self._path = ""
        self._body: Body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open and, if it should be, secured."""
        self._transport = cast(asyncio.Transport, transport)
        self._rest()
        self._server.accepted += 1
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio calls it when the connection is closed: nobody waits for an answer any more."""
        self._transport = None
        self._taking.set()
        self._release()
        if self._work is not None:
            self._work.cancel()
        self._server.closed(self)

    def pause_writing(self) -> None:
        """The client does not read its answers: send no more, and give it some time."""
        self._taking.clear()
        if self._transport is not None:
            self._transport.pause_reading()
            self._hurry()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._taking.set()
        if self._transport is not None:
            self._transport.resume_reading()
        if self._sending:
            self._hurry()
        elif self.idle:
            self._rest()

    def data_received(self, data: bytes) -> None:
        """Pass data to the parser."""
        if self._work is not None:
            # API servers wait for the answer. A client that does not gets this one, and then no other.
            self._ending = True
        if self._ending:
            return  # dropped: the client must first read its answer
        whole = split(data) if self.idle else None
        if whole is not None and self._take_known(*whole, data):
            return
        self._around = whole[0] if whole is not None else None
        if self._in_head:
            self._unended_bytes += len(data)
        self._complete = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if isinstance(error, httptools.HttpParserCallbackError) and not self._ending:
                self._end(self._failed())
            if not self._ending:
                self._refuse(400, f"not HTTP/1.1: {error}")
        # The parser keeps an unfinished header.
        if self._in_head and self._unended_bytes > self._server.limits.head_bytes and not self._ending:
            self._refuse(431, "the headers are too large")

    def _take_known(self, around: Around, start: int, data: bytes) -> bool:
        """Take a whole request with a known head. False if it is for the parser."""
        server, size = self._server, len(data) - start
        head = server.heads.get(around)
        if head is None or size > server.limits.body_bytes or server.gate(head.method, head.path) is not None:
            return False
        self.idle = self._in_head = False
        self.since = self._loop.time()
        self._room = self._room_for(size)
        if not self._room.take(self, size):
            self._end(_BUSY)
            return True
        self._method, self._path, self._body = head.method, head.path, data[start:]
        self._answer(head.keep)
        return True

    def on_message_begin(self) -> None:
        """A request begins."""
        if self._ending or self._complete:
            # It came together with the previous request: this client did not wait for its answer, either.
            self._ending = True
            if self._work is None:
                self._allow(self._server.limits.linger_seconds)
            raise _Ended
        self.idle = False
        self.since = self._loop.time()
        self._hurry()

    def on_url(self, url: bytes) -> None:
        """A piece of the request's URL."""
        self._url += url
        self._grow_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._grow_head(len(name) + len(value))
        name = name.lower()
        if name == b"host":
            self._hosts += 1
        elif name == b"expect":
            self._expects = value.lower() == b"100-continue"
        elif name == b"transfer-encoding":
            # Chunks, their extensions and the trailers would be bytes that no length bounds. API servers know
            # how long their reviews are (client-go's rest.Request has them as bytes).
            self._stop(411, "a request requires a Content-Length")
        elif name == b"content-length":
            self._expect_body(value)

    def _expect_body(self, length: bytes) -> None:
        # The parser has checked that these are digits; the number of leading zeros has no limit.
        if len(length) > MOST_DIGITS:
            self._stop(400, "the Content-Length is not a length")
        size = int(length)
        if size > self._server.limits.body_bytes:
            self._stop(413, "the body is too large")
        self._room = self._room_for(size)

    def _room_for(self, size: int) -> Room:
        server = self._server
        return server.small if size <= server.limits.small_bytes else server.large

    def _grow_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._server.limits.head_bytes:
            self._stop(431, "the headers are too large")

    def on_headers_complete(self) -> None:
        """The headers are complete; read the body if the request is acceptable."""
        self._in_head = False
        version = self._parser.get_http_version()
        if version not in _VERSIONS or self._parser.should_upgrade():
            self._stop(400, "upgrades to another protocol are not supported")
        if self._hosts > 1 or (version == "1.1" and not self._hosts):
            self._stop(400, "exactly one Host header is required")
        self._method = self._parser.get_method().decode("latin-1")
        self._path = self._url.partition(b"?")[0].decode("latin-1")
        if not (self._path.isascii() and self._path.isprintable()):
            self._stop(400, "the path is not a URL")  # and it is logged
        refusal = self._server.gate(self._method, self._path)
        if refusal is not None:
            self._end(refusal)
            raise _Ended
        if self._expects and self._transport is not None:
            self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        size = len(body)
        if not self._room.take(self, size):
            self._end(_BUSY)
            raise _Ended
        self._progress += size
        if self._progress >= self._server.limits.progress_bytes:
            self._progress = 0
            self._hurry()
        if not self._body:
            self._body = body
            return
        if isinstance(self._body, bytes):
            # A list of pieces could need many times the bytes that a client sends piece by piece.
            self._body = bytearray(self._body)
        self._body += body

    def on_message_complete(self) -> None:
        """The request is complete: answer it."""
        self._complete = True
        keep = self._parser.should_keep_alive()
        if self._around is not None and not self._expects:
            self._server.heads.learn(self._around, Head(self._method, self._path, keep))
        self._answer(keep)

    def _answer(self, keep: bool) -> None:
        try:
            made = self._server.handle(self._method, self._path, self._body, self.source)
        except Exception:
            made = self._failed()
        if isinstance(made, Response) and len(made.body) <= _PIECE_BYTES:
            keep = self._stays(keep)
            self._write(made, keep)
            self._next(made, keep)
        else:
            self.deadline = None
            self._work = self._loop.create_task(self._answer_later(made, keep))

    async def _answer_later(self, made: Response | Coroutine[Any, Any, Response], keep: bool) -> None:
        try:
            answer = made if isinstance(made, Response) else await made
        except Exception:
            answer = self._failed()
        self._release()
        keep = self._stays(keep)
        if len(answer.body) <= _PIECE_BYTES:
            self._write(answer, keep)
        else:
            await self._send(answer, keep)
        self._work = None
        self._next(answer, keep)

    async def _send(self, answer: Response, keep: bool) -> None:
        """Write a large answer as fast as the client reads it."""
        body, unsent = memoryview(answer.body), self._server.unsent
        self._sending, self.since = True, self._loop.time()
        if not unsent.take(self, len(body)):
            self.abort()
        self._write(answer, keep)
        try:
            for start in range(_PIECE_BYTES, len(body), _PIECE_BYTES):
                await self._taking.wait()
                if self._transport is None:
                    break
                self._transport.write(body[start : start + _PIECE_BYTES])
        finally:
            unsent.free(self)
            self._sending = False

    def _failed(self) -> Response:
        _log.exception("%s %s failed.", self._method, self._path[:300])
        return Response(b"internal error\n", 500)

    def _stays(self, keep: bool) -> bool:
        """Whether the connection stays open after this answer, if the client wants that."""
        return keep and not self._ending and not self._server.draining

    def _next(self, answer: Response, keep: bool) -> None:
        """The answer is written: wait for the next request, or close."""
        self._release()
        self.proven = self.proven or answer.status == HTTPStatus.OK
        if self._ending:
            self._allow(self._server.limits.linger_seconds)
        elif keep:
            self._begin()
            self.idle = True
            if self._taking.is_set():
                self._rest()
        else:
            self._ending = True
            self.close()

    def _rest(self) -> None:
        self.since = self._loop.time()
        self._allow(self._server.limits.idle_seconds)

    def _hurry(self) -> None:
        """Limit the client's time for its next step, and for all steps together."""
        limits, now = self._server.limits, self._loop.time()
        self.deadline = min(now + limits.progress_seconds, self.since + limits.request_seconds)

    def _refuse(self, status: int, message: str) -> None:
        self._end(Response(f"{message}\n".encode(), status))

    def _stop(self, status: int, message: str) -> None:
        self._refuse(status, message)
        raise _Ended

    def _end(self, refusal: Response) -> None:
        """Answer a request that is not complete.

        Closing with unread input would reset the connection, and the client might not see the answer.
        """
        self._ending = True
        self._release()
        self._server.refused(refusal)
        self._write(refusal, keep=False)
        self._allow(self._server.limits.linger_seconds)

    def _write(self, answer: Response, keep: bool) -> None:
        """Write an answer or, if it is large, its first piece."""
        if self._transport is not None:
            head = answer.head(self._server.date, keep=keep)
            self._transport.write(head + answer.body[:_PIECE_BYTES])

    def _release(self) -> None:
        self._room.free(self)
        self._body = b""

    def _allow(self, seconds: float) -> None:
        self.deadline = self._loop.time() + seconds

    @property
    def working(self) -> bool:
        """Whether a request has begun and its answer is not written yet."""
        return not (self.idle or self._ending) or self._work is not None

    @property
    def sheddable(self) -> bool:
        """Whether it waits for the client, and nobody waits for it."""
        return self._work is None or self._sending

    def shed(self) -> None:
        """Abandon the request, because there is no room for it."""
        if self._sending:
            self.abort()
        else:
            self._end(_BUSY)

    def expire(self) -> None:
        """The client's time is over: say so if it was sending a request."""
        if self.idle or self._ending or self._work is not None:
            self.abort()
        else:
            self._refuse(408, "the request took too long")

    def close(self) -> None:
        """Close once everything written is sent."""
        if self._transport is not None:
            self._allow(self._server.limits.linger_seconds)
            self._transport.close()

    def abort(self) -> None:
        """Close immediately."""
        self._server.unsent.free(self)
        if self._transport is not None:
            self._transport.abort()
