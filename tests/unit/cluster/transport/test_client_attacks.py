"""The general client against servers that redirect it, or answer out of order or without end."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from kopf._cogs.clients.auth import APIContext

from crdkeeper.cluster.transport import client as client_module
from crdkeeper.cluster.transport import connection as connection_module
from crdkeeper.cluster.transport.client import MERGE_PATCH, METADATA_ONLY, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from tests.unit.cluster.transport.localserver import (
    Handler,
    LocalServer,
    client_of,
    json,
    kubeconfig,
    page,
    serving,
)

Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads are not retried: a test waits for the first failure."""
    monkeypatch.setattr(client_module, "_READ_ATTEMPTS", 1)


def redirecting(to: LocalServer, code: int) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=code, headers={"Location": f"{to.url}{request.path_qs}"})

    return answer


async def lean(client: Client) -> client_module.Answer:
    return await client.send_lean(
        "PATCH", "/x", content=b"{}", content_type=MERGE_PATCH, accept=METADATA_ONLY
    )


async def watched(client: Client) -> None:
    async for _ in client.lines("/x"):
        pass


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("elsewhere", [True, False], ids=["to another origin", "to itself"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.request("GET", "/x"),
        lambda client: client.request("PATCH", "/x", {"secret": 1}, content_type=MERGE_PATCH),
        lambda client: client.send("GET", "/x"),
        lean,
        watched,
    ],
    ids=["get", "patch", "send", "lean", "watch"],
)
async def test_redirects_are_not_followed(
    tmp_path: Path, ask: Callable[[Client], Awaitable[Any]], elsewhere: bool, code: int
) -> None:
    async with serving(json({"metadata": {}})) as other, client_of(tmp_path) as (server, client):
        server.answers.append(redirecting(other if elsewhere else server, code))
        with pytest.raises(Unreachable, match=rf"/x: redirects are not followed: {code}"):
            await ask(client)
    assert (len(server.requests), other.requests) == (1, [])


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("elsewhere", [True, False], ids=["to another origin", "to itself"])
async def test_kopf_follows_no_redirects(tmp_path: Path, elsewhere: bool, code: int) -> None:
    async with serving(json({"metadata": {}})) as other, client_of(tmp_path) as (server, client):
        server.answers.append(redirecting(other if elsewhere else server, code))
        context = APIContext(await client.connection.kopf_login())
        with pytest.raises(aiohttp.ClientConnectionError, match=f"redirects are not followed: {code}"):
            await context.session.request("PATCH", f"{server.url}/x", json={"secret": 1})
        await context.close()
    assert (len(server.requests), other.requests) == (1, [])


class RawServer:
    """Answers each request with bytes of a test's choice."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.heads: list[str] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                await self._answer(len(self.heads), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    @property
    def id(self) -> str:
        """The Audit-ID of the last request."""
        return self.heads[-1].partition("\r\nAudit-ID: ")[2].partition("\r\n")[0]


@asynccontextmanager
async def raw(directory: Path, answer: Answer) -> AsyncIterator[tuple[RawServer, Client]]:
    server = RawServer(answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()[:2]
    try:
        async with Client(Connection(kubeconfig(directory, f"http://{host}:{port}"))) as client:
            yield server, client
    finally:
        listening.close()


def ok(body: Any, headers: str = "") -> bytes:
    content = orjson.dumps(body)
    return f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(content)}\r\n\r\n".encode() + content


EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"


async def test_an_interim_answer_is_not_the_answer(tmp_path: Path) -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(EARLY_HINTS * 3 + ok({"answer": number}))

    async with raw(tmp_path, answer) as (_, client):
        assert [await client.request("GET", "/x") for _ in "12"] == [{"answer": 1}, {"answer": 2}]


async def believe(client: Client, path: str) -> dict[str, Any] | None:
    try:
        return await client.request("GET", path)
    except Unreachable:
        return None


@pytest.mark.parametrize(
    "stray", [ok({"stray": 1}), b"HTTP/1.1 2", b"x"], ids=["answer", "beginning", "byte"]
)
@pytest.mark.parametrize("later", [False, True], ids=["with the answer", "later"])
async def test_what_a_server_says_unasked_is_not_believed(tmp_path: Path, stray: bytes, later: bool) -> None:
    now, spoken = asyncio.Event(), asyncio.Event()

    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        path = server.heads[-1].split(" ")[1]
        extra = stray if not later and number == 1 else b""
        writer.write(ok({"path": path}, f"Audit-Id: {server.id}\r\n") + extra)
        await writer.drain()
        if later and number == 1:
            await now.wait()
            writer.write(stray)
            await writer.drain()
            spoken.set()

    async with raw(tmp_path, answer) as (server, client):
        assert await believe(client, "/x") == (None if stray == b"x" and not later else {"path": "/x"})
        now.set()
        if later:
            await spoken.wait()
        believed = [await believe(client, path) for path in ("/a", "/b", "/c", "/d")]
        assert all(
            found in (None, {"path": f"/{each}"}) for each, found in zip("abcd", believed, strict=True)
        )
        assert believed[2:] == [{"path": "/c"}, {"path": "/d"}]


async def test_a_server_that_speaks_first_is_not_asked(tmp_path: Path) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.write(ok({"stray": 1}))
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()[:2]
    async with Client(Connection(kubeconfig(tmp_path, f"http://{host}:{port}"))) as client:
        await believe(client, "/x")
    listening.close()
    assert connections < 5


@pytest.mark.parametrize("ask", [lambda client: client.request("GET", "/x"), watched], ids=["get", "watch"])
async def test_the_answer_to_another_request_is_not_believed(
    tmp_path: Path, ask: Callable[[Client], Awaitable[Any]]
) -> None:
    ids: list[str] = []

    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        ids.append(server.id)
        writer.write(ok({"answer": number}, f"Audit-Id: {ids[-2 if number == 2 else -1]}\r\n"))

    async with raw(tmp_path, answer) as (server, client):
        assert await client.request("GET", "/x") == {"answer": 1}
        with pytest.raises(Unreachable, match="another request"):
            await ask(client)
        assert await client.request("GET", "/x") == {"answer": 3}
        assert server.connections == 2


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n" % 65536 + b"x" * 65536 + b"\r\n"


@pytest.mark.parametrize(
    ("start", "piece", "message"),
    [
        (CHUNKED, CHUNK, "larger than"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, "larger than"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536, "larger than"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Y: " + b"z" * 100 + b"\r\n", None),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 1000, None),
        (CHUNKED + b"0\r\n", b"X-Y: z\r\n" * 100, None),
        (CHUNKED + b"0\r\nX: ", b"x" * 1000, None),
        (b"", EARLY_HINTS * 100, None),
    ],
    ids=[
        "chunks",
        "without a length",
        "a long body",
        "headers",
        "a header",
        "trailers",
        "a trailer",
        "interim answers",
    ],
)
@pytest.mark.parametrize("ask", [lambda client: client.request("GET", "/x"), watched], ids=["get", "watch"])
async def test_an_answer_without_end_is_given_up(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[Client], Awaitable[Any]],
    start: bytes,
    piece: bytes,
    message: str | None,
) -> None:
    monkeypatch.setattr(client_module, "_ANSWER_BYTES", 8 << 20)
    monkeypatch.setattr(client_module, "_EVENT_BYTES", 8 << 20)
    for each in (client_module, connection_module):
        monkeypatch.setattr(each, "REQUEST_SECONDS", 2.0 if message is None else 60.0)

    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(piece)
            await writer.drain()

    async with raw(tmp_path, answer) as (_, client):
        with pytest.raises(Unreachable, match=message):
            await ask(client)


@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
async def test_an_answer_that_unpacks_to_too_much_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(client_module, "_ANSWER_BYTES", 8 << 20)
    bomb = packed(b" " * (64 << 20))
    coding = "gzip" if packed is gzip.compress else "deflate"

    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(bomb)}\r\n\r\n"
        writer.write(head.encode() + bomb)

    tracemalloc.start()
    try:
        async with raw(tmp_path, answer) as (_, client):
            with pytest.raises(Unreachable, match="larger than"):
                await client.request("GET", "/x")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


async def test_lines_are_whole_however_they_come(tmp_path: Path) -> None:
    text = b"".join(b"%d" % number * number + b"\n" for number in range(200)) + b"cut off"

    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for start in range(0, len(text), 7):
            writer.write(text[start : start + 7])
            await writer.drain()
        writer.close()

    async with raw(tmp_path, answer) as (_, client):
        assert [line async for line in client.lines("/x")] == text.split(b"\n")[:-1]


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("7", 7.0),
        ("9" * 5001, 300.0),
        ("\u00b2", None),
        ("-1", None),
        ("1.5", None),
        ("Fri, 01 Jan 2100 00:00:00 GMT", None),
    ],
    ids=["seconds", "ages", "no digit", "negative", "a fraction", "a date"],
)
@pytest.mark.parametrize("by_lean", [True, False])
async def test_how_long_to_wait_has_a_limit(
    tmp_path: Path, after: str, seconds: float | None, by_lean: bool
) -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(
            f"HTTP/1.1 429 No\r\nRetry-After: {after}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")
        )

    async with raw(tmp_path, answer) as (_, client):
        found = await (lean(client) if by_lean else client.send("GET", "/x"))
    assert found.retry_after == seconds


@pytest.mark.parametrize(
    "date", ["soon", "", "Fri, 99 Jan 2100 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 -0000"]
)
async def test_a_date_that_is_none_does_not_matter(tmp_path: Path, date: str) -> None:
    async with client_of(tmp_path, json({}, Date=date)) as (_, client):
        before = client.now()
        await client.request("GET", "/x")
        assert (client.now() - before).total_seconds() < 3600


@pytest.mark.parametrize("body", [page("<h1>Welcome</h1>", 200), json([1]), json("x"), page("", 200)])
async def test_a_success_without_an_object_is_none(tmp_path: Path, body: Handler) -> None:
    async with client_of(tmp_path, body) as (_, client):
        with pytest.raises(Unreachable, match="not a JSON object"):
            await client.request("GET", "/x")
