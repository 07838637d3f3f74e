"""Requests to the API server: one thin layer over aiohttp.

`kubernetes.aio` builds model objects and checks them on both ways, several times the cost of the request
itself. `request` is the comfortable way, `send` the bare one, and `send_lean` the one for the writes of a
migration, which are sent by the million.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from yarl import URL

from crdkeeper import __version__
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.cluster.connection import CONNECT_SECONDS, Connection
from crdkeeper.cluster.http1 import Disconnected, Http1Pool
from crdkeeper.core.servermessages import message_of

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_ONLY_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_READ_ATTEMPTS = 4
_TOKEN_SECONDS = 30.0


class ApiError(Exception):
    """The API server answered with an error (metav1.Status).

    `message` shows no values of objects and is cut to a bound: it goes into status, Events and logs.
    """

    def __init__(self, code: int, body: Mapping[str, Any]) -> None:
        self.code = code
        self.body = body
        self.reason = bounded(str(body.get("reason") or ""), LINE_BYTES)
        self.message = message_of(body, f"HTTP {code}")
        super().__init__(f"{code} {self.reason}: {self.message}")


class Unreachable(Exception):
    """No answer from the API server: refused, reset or timed out."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status code, the raw body, the seconds of Retry-After if the server sent it, and its Date header."""

    code: int
    content: bytes
    retry_after: float | None = None
    date: str = ""

    def json(self) -> dict[str, Any]:
        """The body; what is no JSON object, such as a proxy's error page, becomes a message."""
        try:
            loaded = orjson.loads(self.content)
        except ValueError:
            loaded = None
        if isinstance(loaded, dict):
            return loaded
        return {"message": self.content[:512].decode(errors="replace").strip()}


class Client:
    """A session with the API server; use as an async context manager."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._session: aiohttp.ClientSession | None = None
        self._pool: Http1Pool | None = None
        self._lean_headers: dict[tuple[str, str], str] = {}
        self._headers: dict[str, str] = {}
        self._headers_until = 0.0
        self._clock_offset = timedelta(0)
        """The API server's clock minus ours, by the Date header of its answers (rounded down to seconds)."""

    def now(self) -> datetime:
        """The time by the API server's clock, as far as we know it."""
        return datetime.now(UTC) + self._clock_offset

    async def __aenter__(self) -> Self:
        await self.connection.load()
        self._session = self.connection.session()
        self._pool = self.connection.http1_pool()
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
    ) -> Answer:
        """Send once; any status is an answer. `path` is already encoded. Raises Unreachable."""
        if self._session is None:
            raise RuntimeError("the client is used outside of its context manager")
        if time.monotonic() > self._headers_until:
            await self._renew_headers()
        headers = {**self._headers, "Accept": accept}
        if content is not None:
            headers["Content-Type"] = content_type
        url = URL(self.connection.host + path, encoded=True)
        try:
            async with self._session.request(method, url, data=content, headers=headers) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{method} {path}: {error or type(error).__name__}") from error
        after = response.headers.get("Retry-After", "")
        date = response.headers.get("Date", "")
        return Answer(response.status, body, float(after) if after.isdigit() else None, date)

    async def lines(self, path: str, *, silence: float = 90.0) -> AsyncIterator[bytes]:
        """The lines of an answer that goes on, as of a watch, until the server ends it.

        Raises ApiError, and Unreachable if nothing comes for `silence` seconds: a bookmark comes each minute.
        """
        if self._session is None:
            raise RuntimeError("the client is used outside of its context manager")
        if time.monotonic() > self._headers_until:
            await self._renew_headers()
        headers = {**self._headers, "Accept": "application/json"}
        url = URL(self.connection.host + path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        try:
            async with self._session.get(url, headers=headers, timeout=timeout) as response:
                if response.status >= 400:
                    raise ApiError(response.status, Answer(response.status, await response.read()).json())
                pending = b""
                async for chunk in response.content.iter_any():
                    *whole, pending = (pending + chunk).split(b"\n")
                    for line in whole:
                        yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"GET {path}: {error or type(error).__name__}") from error

    async def send_lean(
        self, method: str, path: str, *, content: bytes, content_type: str, accept: str
    ) -> Answer:
        """As `send`, at less than half of its CPU time. Raises Unreachable."""
        if self._pool is None:
            return await self.send(method, path, content=content, content_type=content_type, accept=accept)
        if time.monotonic() > self._headers_until:
            await self._renew_headers()
        headers = self._lean_headers.get((content_type, accept))
        if headers is None:
            all_headers = {**self._headers, "Accept": accept, "Content-Type": content_type}
            headers = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
            self._lean_headers[content_type, accept] = headers
        try:
            code, body, after = await self._pool.send(method, path, headers, content)
        except (Disconnected, TimeoutError, OSError) as error:
            raise Unreachable(f"{method} {path}: {error or type(error).__name__}") from error
        return Answer(code, body, float(after) if after.isdigit() else None)

    async def _renew_headers(self) -> None:
        authorization = await self.connection.authorization()
        self._headers = {"User-Agent": f"crdkeeper/{__version__}"}
        if authorization:
            self._headers["Authorization"] = authorization
        self._lean_headers.clear()
        self._headers_until = time.monotonic() + _TOKEN_SECONDS

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        """Send and return the JSON body.

        429 and 5xx are tried again a few times (reads also when there was no answer), 401 once with
        credentials read anew. Raises ApiError or Unreachable.
        """
        content = None if body is None else orjson.dumps(body)
        for attempt in range(_READ_ATTEMPTS):
            last = attempt == _READ_ATTEMPTS - 1
            try:
                answer = await self.send(
                    method, path, content=content, content_type=content_type, accept=accept
                )
            except Unreachable:
                if last or method != "GET":
                    raise
                await asyncio.sleep(0.2 * 2**attempt)
                continue
            if answer.date:
                self._clock_offset = parsedate_to_datetime(answer.date) - datetime.now(UTC)
            if answer.code < 400:
                return answer.json()
            if answer.code == 401 and attempt == 0:
                await self.connection.load()
                self._headers_until = 0.0
            elif last or not (answer.code == 429 or answer.code >= 500):
                raise ApiError(answer.code, answer.json())
            else:
                await asyncio.sleep(answer.retry_after or 0.2 * 2**attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")


async def find(client: Client, path: str, *, accept: str = "application/json") -> dict[str, Any] | None:
    """What a GET answers; None where nothing is (404). Otherwise as `Client.request`."""
    try:
        return await client.request("GET", path, accept=accept)
    except ApiError as error:
        if error.code == 404:
            return None
        raise
