"""One connection of the lean HTTP/1.1 server: a parser, and what a client may and may not do.

Node.js' llhttp parses; it is strict: a body with two lengths, bare line feeds or folded headers are errors.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, cast

import httptools

_log = logging.getLogger(__name__)

TEXT: Final = b"Content-Type: text/plain; charset=utf-8\r\n"
JSON: Final = b"Content-Type: application/json\r\n"

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"Connection: close\r\n"
_VERSIONS: Final = ("1.0", "1.1")
_MOST_DIGITS: Final = 19
"""Of a Content-Length: what 64 bits can hold."""
_LATER: Final = b"Retry-After: 1\r\n"
"""With it an API server repeats a conversion that got 503, up to ten times (client-go's rest.Request)."""
_STATUS_LINES: Final = {
    each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode("latin-1") for each in HTTPStatus
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients can have the server spend."""

    head_bytes: int = 16 << 10
    """Of a request's line and headers."""
    body_bytes: int = 16 << 20
    held_bytes: int = 32 << 20
    """Of all bodies together that are not answered yet."""
    connections: int = 1000
    """For one more, the one is closed that has been idle, or else sending, for the longest time."""
    handshake_seconds: float = 10.0
    request_seconds: float = 30.0
    """From the first byte of a request to its last; and for a client to take its answer."""
    idle_seconds: float = 120.0
    """Go's clients close after 90 s. As they are first, no request meets a connection that we just closed."""
    linger_seconds: float = 2.0
    """For a client that still sends to read why it was refused."""


class Answer(NamedTuple):
    """What to answer. `headers` are whole lines that each end in CRLF."""

    body: bytes
    status: int = 200
    headers: bytes = TEXT


Body = bytes | bytearray
Handler = Callable[[str, str, Body], Answer | Coroutine[Any, Any, Answer]]
"""Method, path and body to an answer: at once, or later if it must wait for something."""
Gate = Callable[[str, str], Answer | None]
"""Method and path to a refusal, if the body need not be read."""


class Owner(Protocol):
    """What a connection needs of its server."""

    limits: Limits
    handle: Handler
    gate: Gate
    refused: Callable[[Answer], None]
    held: int
    accepted: int
    date: bytes
    draining: bool

    def opened(self, connection: "Connection") -> None:
        """There is one more connection."""

    def closed(self, connection: "Connection") -> None:
        """There is one less."""


class _Ended(Exception):
    """Stops the parser: the last answer of the connection is on its way."""


class Connection(asyncio.Protocol):
    """One connection, one request at a time. The `on_` methods are called by the parser."""

    def __init__(self, server: Owner) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._work: asyncio.Task[None] | None = None
        self._ending = False
        self.deadline: float | None = None
        """When the client's time is over, by the loop's clock."""
        self.idle = True
        """Whether it is between two requests."""
        self._begin()

    def _begin(self) -> None:
        self._in_head = True
        self._head_bytes = self._unended_bytes = 0
        self._url = b""
        self._hosts = 0
        self._expects = False
        self._method = self._path = ""
        self._body: Body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open, and secured if it is to be."""
        self._transport = cast(asyncio.Transport, transport)
        self._allow(self._server.limits.idle_seconds)
        self._server.accepted += 1
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone; nobody waits for an answer any more."""
        self._transport = None
        self._release()
        if self._work is not None:
            self._work.cancel()
        self._server.closed(self)

    def pause_writing(self) -> None:
        """The client does not take its answers: it gets no more of them, and is given some time."""
        if self._transport is not None:
            self._transport.pause_reading()
            self._allow(self._server.limits.request_seconds)

    def resume_writing(self) -> None:
        """The client took what there was."""
        if self._transport is not None:
            self._transport.resume_reading()
            self._allow(self._server.limits.idle_seconds)

    def data_received(self, data: bytes) -> None:
        """Have the parser look at what came."""
        if self._work is not None:
            # API servers wait for the answer. Who does not gets that one, and then no other.
            self._ending = True
        if self._ending:
            return  # forgotten: the client shall come to read its answer
        if self._in_head:
            self._unended_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if isinstance(error, httptools.HttpParserCallbackError) and not self._ending:
                self._end(self._failed())
            if not self._ending:
                self._refuse(400, f"no HTTP/1.1: {error}")
        # The parser keeps what it has of a header that is not over.
        if self._in_head and self._unended_bytes > self._server.limits.head_bytes and not self._ending:
            self._refuse(431, "the headers are too large")

    def on_message_begin(self) -> None:
        """A request begins."""
        if self._ending or self._work is not None:
            self._ending = True
            raise _Ended
        self.idle = False
        self._allow(self._server.limits.request_seconds)

    def on_url(self, url: bytes) -> None:
        """A piece of what the request is for."""
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
            # Chunks, their extensions and the headers after them would be bytes that no length bounds. API
            # servers know how long their reviews are (client-go's rest.Request has them as bytes).
            self._stop(411, "a request needs a Content-Length")
        elif name == b"content-length":
            # The parser has seen to it that these are digits; zeros before them would be without bound.
            if len(value) > _MOST_DIGITS:
                self._stop(400, "the Content-Length is no length")
            if int(value) > self._server.limits.body_bytes:
                self._stop(413, "the body is too large")

    def _grow_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._server.limits.head_bytes:
            self._stop(431, "the headers are too large")

    def on_headers_complete(self) -> None:
        """The body begins, if the request is one that shall be read."""
        self._in_head = False
        version = self._parser.get_http_version()
        if version not in _VERSIONS or self._parser.should_upgrade():
            self._stop(400, "no other protocol is spoken here")
        if self._hosts > 1 or (version == "1.1" and not self._hosts):
            self._stop(400, "one Host header is needed")
        self._method = self._parser.get_method().decode("latin-1")
        self._path = self._url.partition(b"?")[0].decode("latin-1")
        refusal = self._server.gate(self._method, self._path)
        if refusal is not None:
            self._end(refusal)
            raise _Ended
        if self._expects and self._transport is not None:
            self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        server, size = self._server, len(body)
        if server.held + size > server.limits.held_bytes:
            self._end(Answer(b"too many large requests at once\n", 503, TEXT + _LATER))
            raise _Ended
        server.held += size
        if not self._body:
            self._body = body
            return
        if isinstance(self._body, bytes):
            # A list of pieces could cost many times what a client sends, piece by piece.
            self._body = bytearray(self._body)
        self._body += body

    def on_message_complete(self) -> None:
        """The request is here as a whole: answer it."""
        keep = self._parser.should_keep_alive()
        try:
            made = self._server.handle(self._method, self._path, self._body)
        except Exception:
            made = self._failed()
        if isinstance(made, Answer):
            self._answer(made, keep)
        else:
            self.deadline = None
            self._work = self._loop.create_task(self._answer_later(made, keep))

    async def _answer_later(self, coming: Coroutine[Any, Any, Answer], keep: bool) -> None:
        try:
            answer = await coming
        except Exception:
            answer = self._failed()
        self._work = None
        self._answer(answer, keep)

    def _failed(self) -> Answer:
        _log.exception("%s %s failed.", self._method, self._path[:300])
        return Answer(b"internal error\n", 500)

    def _answer(self, answer: Answer, keep: bool) -> None:
        """Answer a request that is here as a whole."""
        self._release()
        overrun = self._ending
        keep = keep and not overrun and not self._server.draining
        self._write(answer, keep)
        if keep:
            self._begin()
            self.idle = True
            self._allow(self._server.limits.idle_seconds)
        elif overrun:
            self._allow(self._server.limits.linger_seconds)
        else:
            self._ending = True
            self.close()

    def _refuse(self, status: int, message: str) -> None:
        self._end(Answer(f"{message}\n".encode(), status))

    def _stop(self, status: int, message: str) -> None:
        self._refuse(status, message)
        raise _Ended

    def _end(self, refusal: Answer) -> None:
        """Answer a request that is not here as a whole.

        To close with input unread would reset the connection, and the client might not see the answer.
        """
        self._ending = True
        self._release()
        self._server.refused(refusal)
        self._write(refusal, keep=False)
        self._allow(self._server.limits.linger_seconds)

    def _write(self, answer: Answer, keep: bool) -> None:
        if self._transport is not None:
            length = b"Content-Length: %d\r\n\r\n" % len(answer.body)
            close = b"" if keep else _CLOSE
            line = _STATUS_LINES[answer.status]
            self._transport.write(
                b"".join((line, self._server.date, answer.headers, close, length, answer.body))
            )

    def _release(self) -> None:
        self._server.held -= len(self._body)
        self._body = b""

    def _allow(self, seconds: float) -> None:
        self.deadline = self._loop.time() + seconds

    @property
    def working(self) -> bool:
        """Whether a request has begun and its answer is not written."""
        return not (self.idle or self._ending) or self._work is not None

    def expire(self) -> None:
        """The client's time is over: say so if it is sending a request."""
        if self.idle or self._ending:
            self.abort()
        else:
            self._refuse(408, "the request took too long")

    def close(self) -> None:
        """Close once all that was written is sent."""
        if self._transport is not None:
            self._allow(self._server.limits.linger_seconds)
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
