"""Shared by the lean HTTP/1.1 server and its connections: limits, requests and answers."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

TEXT: Final = b"Content-Type: text/plain; charset=utf-8\r\n"
JSON: Final = b"Content-Type: application/json\r\n"
LATER: Final = b"Retry-After: 1\r\n"
"""Makes an API server retry a conversion that got 503, up to ten times (client-go's rest.Request)."""
_STATUS_LINES: Final = {
    each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode("latin-1") for each in HTTPStatus
}


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What clients may use of the server."""

    head_bytes: int = 16 << 10
    """The largest request line with headers."""
    body_bytes: int = 16 << 20
    small_bytes: int = 256 << 10
    """Bodies up to this size have reserved room, which larger ones cannot take."""
    held_bytes: int = 32 << 20
    """For all large bodies that are not answered yet; small ones may take half as much in addition."""
    unsent_bytes: int = 32 << 20
    """For all large answers that are not sent yet."""
    connections: int = 1000
    handshakes: int = 100
    """Connections that are not secured yet, in addition."""
    handshake_seconds: float = 10.0
    request_seconds: float = 30.0
    """The time from the first byte of a request to its last."""
    progress_bytes: int = 256 << 10
    """What a client must send of a request, or read of an answer, per `progress_seconds`, or finish."""
    progress_seconds: float = 5.0
    idle_seconds: float = 120.0
    """Go's clients close after 90 s. As they are first, no request meets a connection that we just closed."""
    linger_seconds: float = 2.0
    """How long a client that still sends may take to read why it was refused."""


class Response(NamedTuple):
    """An answer. `headers` are whole lines that each end in CRLF."""

    body: bytes
    status: int = 200
    headers: bytes = TEXT

    def head(self, date: bytes, *, keep: bool) -> bytes:
        """What precedes the body. `date` is a header's line; without `keep`, no other answer follows."""
        length = b"Content-Length: %d\r\n\r\n" % len(self.body)
        close = b"" if keep else b"Connection: close\r\n"
        return b"".join((_STATUS_LINES[self.status], date, self.headers, close, length))


Body = bytes | bytearray
Handler = Callable[[str, str, Body, str], Response | Coroutine[Any, Any, Response]]
"""Method, path, body and the client's address to an answer: immediately, or later if it must wait."""
Gate = Callable[[str, str], Response | None]
"""Method and path to a refusal, if the body need not be read."""
