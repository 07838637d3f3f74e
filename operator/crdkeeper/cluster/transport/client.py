"""Requests to the API server: one thin layer over aiohttp.

`kubernetes.aio` builds and checks model objects in both directions, at several times the cost of the request
itself. `request` is the convenient way, `send` the low-level one, and `send_lean` the one for the writes of a
migration, of which there are millions, and of reports.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from yarl import URL

from crdkeeper import __version__
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.cluster.transport.connection import (
    CONNECT_SECONDS,
    REQUEST_SECONDS,
    ConfigurationError,
    Connection,
    refuse_redirect,
)
from crdkeeper.cluster.transport.connector import InStepConnector
from crdkeeper.cluster.transport.fence import Fence, Fenced
from crdkeeper.cluster.transport.http1 import Disconnected, Http1Pool
from crdkeeper.cluster.transport.requestids import AUDIT_ID, RequestIds
from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.servermessages import message_of

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_ONLY_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_READ_ATTEMPTS = 4
_TOKEN_SECONDS = 30.0
_ANSWER_BYTES = 256 << 20
"""The largest uncompressed answer. A page of 500 objects' metadata or of 100 CRDs has some MiB."""
_EVENT_BYTES = 16 << 20
"""The largest watch event, which contains one object."""
_LONGEST_WAIT = 300.0
"""Seconds: more is not throttling, and no server may stop us for ever."""


class ApiError(Exception):
    """The API server answered with an error (metav1.Status).

    `message` contains no values of objects and has a limited length: it is copied to status, Events and logs.
    `retry_after` is how many seconds the server asks to wait, where the caller decides on that.
    """

    def __init__(self, code: int, body: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.code, self.body, self.retry_after = code, body, retry_after
        self.reason = bounded(str(body.get("reason") or ""), LINE_BYTES)
        self.message = message_of(body, f"HTTP {code}")
        super().__init__(f"{code} {self.reason}: {self.message}")


class Unreachable(Exception):
    """No answer from the API server: refused, reset, timed out, or something that cannot be its answer."""


class NoCredentials(Unreachable):
    """There is nothing to authenticate a request with, so it was not sent, or not accepted."""


class TooLarge(Unreachable):
    """The answer is larger than the caller has room for."""


def may_pass(error: ApiError | Unreachable) -> bool:
    """Whether the same request may succeed later by itself: there was no answer, 429 or a 5xx."""
    return isinstance(error, Unreachable) or error.code == 429 or error.code >= 500


@dataclass(frozen=True)
class Answer:
    """A status code, the raw body, the seconds of Retry-After if the server sent it, and its Date header."""

    code: int
    content: bytes
    retry_after: float | None = None
    date: str = ""

    def json(self) -> dict[str, Any]:
        """The body; what is not a JSON object, such as a proxy's error page, becomes a message."""
        if self.object is not None:
            return self.object
        return {"message": self.content[:512].decode(errors="replace").strip()}

    @cached_property
    def object(self) -> dict[str, Any] | None:
        """The body, with `Deep` in place of deeply nested objects; None if it is not a JSON object."""
        try:
            loaded = loads(self.content)
        except ValueError:
            return None
        return loaded if isinstance(loaded, dict) else None


class Client:
    """A session with the API server; use as an async context manager."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._session: aiohttp.ClientSession | None = None
        self._pool: Http1Pool | None = None
        self._lean_headers: dict[tuple[str, str], str] = {}
        self._headers: dict[str, str] = {}
        self._headers_until = 0.0
        self._renewals = 0
        """Those of the connection by which the headers are."""
        self._ids = RequestIds()
        self.fence = Fence()
        """Passed by all requests but GET; closed, they raise Unreachable."""
        self._clock_offset = timedelta(0)
        """The API server's clock minus ours, by the Date header of its answers (rounded down to seconds)."""
        self.hung_lists: dict[str, tuple[str, float]] = {}
        """By collection, what was said of a list that hung, and when: for `hunglists`."""

    def now(self) -> datetime:
        """The API server's time, as far as we know it."""
        return datetime.now(UTC) + self._clock_offset

    async def __aenter__(self) -> Self:
        await self.connection.load()
        self._session = self.connection.session(fence=self.fence)
        self._pool = self.connection.http1_pool(self.fence)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
        if self._pool is not None:
            self._pool.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
    ) -> Answer:
        """Send once; any status is an answer. `path` is already encoded.

        Raises Unreachable, and TooLarge if the answer has more than `most` bytes.
        """
        id, headers = await self._opening(accept)
        if content is not None:
            headers["Content-Type"] = content_type
        try:
            async with self._open.request(method, self._url(path), data=content, headers=headers) as response:
                self._accept(response, id)
                body = await _read(response, most)
        except Fenced as error:
            raise Unreachable(f"{_named(method, path)} is not sent: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{_named(method, path)}: {error or type(error).__name__}") from error
        after = _seconds(response.headers.get("Retry-After", ""))
        return Answer(response.status, body, after, response.headers.get("Date", ""))

    async def lines(
        self,
        path: str,
        *,
        accept: str = "application/json",
        silence: float = 90.0,
        begun: Callable[[], None] | None = None,
    ) -> AsyncIterator[bytes]:
        """The lines of a streaming answer, such as a watch, until the server ends it.

        Calls `begun` once the server has accepted the request: the first line may take a minute. Raises
        ApiError, and Unreachable if nothing arrives for `silence` seconds: bookmarks arrive each minute.
        """
        try:
            async with await self._stream(path, accept, silence) as response:
                if begun is not None:
                    begun()
                async for line in _lines(response):
                    yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{_named('GET', path)}: {error or type(error).__name__}") from error

    async def _stream(self, path: str, accept: str, silence: float) -> aiohttp.ClientResponse:
        id, headers = await self._opening(accept)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        async with asyncio.timeout(REQUEST_SECONDS):
            response = await self._open.get(self._url(path), headers=headers, timeout=timeout)
            try:
                self._accept(response, id)
                if response.status >= 400:
                    raise ApiError(
                        response.status, Answer(response.status, await _read(response, None)).json()
                    )
            except BaseException:
                response.close()
                raise
        return response

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used outside its context manager")
        return self._session

    async def _opening(self, accept: str) -> tuple[str, dict[str, str]]:
        """The id and the headers of a request."""
        if time.monotonic() > self._headers_until or self._renewals != self.connection.renewals:
            await self._renew_headers()
        id = self._ids.next()
        return id, {**self._headers, "Accept": accept, AUDIT_ID: id}

    def _url(self, path: str) -> URL:
        return URL(self.connection.host + path, encoded=True)

    def _accept(self, response: aiohttp.ClientResponse, id: str) -> None:
        """Raises ClientError if this cannot be the API server's answer to the request `id`."""
        if not self._ids.answered(id, response.status, response.headers.get(AUDIT_ID, "")):
            self.distrust()
            raise aiohttp.ClientPayloadError("the server sent the response to another request")

    def distrust(self) -> None:
        """Stop using all current connections, as when answers on one of them do not match their requests."""
        connector = self._open.connector
        if isinstance(connector, InStepConnector):
            connector.distrust()
        if self._pool is not None:
            self._pool.close()

    async def send_lean(
        self, method: str, path: str, *, content: bytes, content_type: str, accept: str
    ) -> Answer:
        """Like `send`, with less than half of its CPU time. Raises Unreachable."""
        if self._pool is None:
            return await self.send(method, path, content=content, content_type=content_type, accept=accept)
        if time.monotonic() > self._headers_until or self._renewals != self.connection.renewals:
            await self._renew_headers()
        headers = self._lean_headers.get((content_type, accept))
        if headers is None:
            own = {**self._headers, "Accept": accept, "Content-Type": content_type}
            lines = (f"{name}: {value}\r\n" for name, value in (*own.items(), *self.connection.impersonation))
            headers = "".join(lines)
            self._lean_headers[content_type, accept] = headers
        try:
            answer = await self._pool.send(method, path, headers, content)
            refuse_redirect(answer.code, "")
        except Fenced as error:
            raise Unreachable(f"{_named(method, path)} is not sent: {error}") from error
        except (Disconnected, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{_named(method, path)}: {error or type(error).__name__}") from error
        return Answer(answer.code, answer.body, _seconds(answer.retry_after))

    async def _renew_headers(self) -> None:
        if self._renewals != self.connection.renewals and self._certified:
            self.distrust()  # connections keep the certificate that they were made with
        self._renewals = self.connection.renewals
        authorization = await self._authorization()
        authorized = {"Authorization": authorization} if authorization else {}
        self._headers = {"User-Agent": f"crdkeeper/{__version__}", **authorized}
        self._lean_headers.clear()
        self._headers_until = time.monotonic() + _TOKEN_SECONDS

    @property
    def _certified(self) -> bool:
        return self.connection.certified

    async def _authorization(self) -> str | None:
        try:
            return await self.connection.authorization()
        except ConfigurationError as error:
            raise NoCredentials(str(error)) from error

    def _set_clock(self, date: str) -> None:
        try:
            self._clock_offset = parsedate_to_datetime(date) - datetime.now(UTC)
        except (ValueError, TypeError):
            return  # none, or without a time zone

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        once: bool = False,
        most: int | None = None,
        lean: bool = False,
    ) -> dict[str, Any]:
        """Send and return the JSON body.

        Retries 429 and 5xx a few times (for reads also a missing answer), and 401 once with reloaded
        credentials. With `once`, only the latter: the caller decides when it tries again. With `lean`, by
        `send_lean`: for small writes, of which there are thousands. Raises ApiError or Unreachable:
        NoCredentials if they cannot be reloaded, TooLarge if the answer has more than `most` bytes, which
        `lean` does not look at.
        """
        content = None if body is None else orjson.dumps(body)
        renewals = self.connection.renewals
        for attempt in range(_READ_ATTEMPTS):
            last = attempt == _READ_ATTEMPTS - 1
            try:
                if lean and content is not None:
                    answer = await self.send_lean(
                        method, path, content=content, content_type=content_type, accept=accept
                    )
                else:
                    answer = await self.send(
                        method, path, content=content, content_type=content_type, accept=accept, most=most
                    )
                if answer.code < 400 and answer.object is None:
                    raise Unreachable(
                        f"{_named(method, path)}: the answer ({answer.code}) is not a JSON object"
                    )
            except Unreachable as error:
                if last or once or method != "GET" or isinstance(error, TooLarge | NoCredentials):
                    raise
                await asyncio.sleep(0.2 * 2**attempt)
                continue
            self._set_clock(answer.date)
            if answer.code < 400:
                return answer.json()
            if answer.code == 401 and attempt == 0:
                try:
                    await self.connection.renew(renewals)
                except ConfigurationError as error:
                    raise NoCredentials(
                        f"{_named(method, path)}: 401, and no new credentials: {error}"
                    ) from error
            elif last or once or not (answer.code == 429 or answer.code >= 500):
                raise ApiError(answer.code, answer.json())
            else:
                await asyncio.sleep(answer.retry_after or 0.2 * 2**attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")


async def find(client: Client, path: str, *, accept: str = "application/json") -> dict[str, Any] | None:
    """The result of a GET; None if there is nothing (404). Otherwise like `Client.request`."""
    try:
        return await client.request("GET", path, accept=accept)
    except ApiError as error:
        if error.code == 404:
            return None
        raise


def _named(method: str, path: str) -> str:
    """A request in messages: without the query, whose continue token names the object where a page ended."""
    return f"{method} {path.partition('?')[0]}"


def _seconds(retry_after: str) -> float | None:
    """Retry-After in seconds; None if there is none, or if it is a date, which no API server sends."""
    if not (retry_after.isascii() and retry_after.isdigit()):
        return None
    return min(float(retry_after[:10]), _LONGEST_WAIT)


async def _read(response: aiohttp.ClientResponse, most: int | None) -> bytes:
    """The body. Raises TooLarge."""
    most = most or _ANSWER_BYTES
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > most:
            raise TooLarge(f"the response is larger than {most >> 20} MiB")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The whole lines of a body. Raises ClientError if one is too large."""
    pending: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        *ended, rest = piece.split(b"\n")
        if ended:
            yield b"".join([*pending, ended[0]])
            for line in ended[1:]:
                yield line
            pending, size = [], 0
        pending.append(rest)
        size += len(rest)
        if size > _EVENT_BYTES:
            raise aiohttp.ClientPayloadError(f"an event is larger than {_EVENT_BYTES >> 20} MiB")
