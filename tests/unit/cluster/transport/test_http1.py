"""The lean HTTP client against a server that answers in every way a real one may."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from crdkeeper.cluster.transport import http1
from crdkeeper.cluster.transport.http1 import Disconnected, Http1Pool

Answer = Callable[[int, asyncio.StreamWriter], Awaitable[bool]]
"""Answers the request of that number; False closes the connection after it."""


class Server:
    """Reads requests one after the other, and sends the answers."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = asyncio.Event()

    @property
    def ids(self) -> list[str]:
        """The Audit-ID of each request."""
        heads = (each.partition(b"\r\n\r\n")[0].decode() for each in self.requests)
        return [head.partition("\r\nAudit-ID: ")[2].partition("\r\n")[0] for head in heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                if not await self._answer(len(self.requests), writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.ended.set()
            writer.close()


@asynccontextmanager
async def serving(answer: Answer, seconds: float = 60.0) -> AsyncIterator[tuple[Server, Http1Pool]]:
    server = Server(answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    pool = Http1Pool("127.0.0.1", port, None, None, connect_seconds=60.0, request_seconds=seconds)
    try:
        yield server, pool
    finally:
        pool.close()
        listening.close()


def answering(raw: bytes, *, stay: bool = True) -> Answer:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(raw)
        await writer.drain()
        return stay

    return answer


async def patch(pool: Http1Pool) -> tuple[int, bytes, str]:
    return (await pool.send("PATCH", "/x?y=1", "Accept: application/json\r\n", b"{}"))[:3]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (OK, (200, b"body", "")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbod\r\n1\r\ny\r\n0\r\n\r\n",
            (200, b"body", ""),
        ),
        (
            b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n",
            (429, b"", "7"),
        ),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", (404, b"", "")),
    ],
    ids=["length", "chunked", "retry-after", "empty"],
)
async def test_answers_are_read_and_the_connection_is_used_again(
    raw: bytes, expected: tuple[int, bytes, str]
) -> None:
    async with serving(answering(raw)) as (server, pool):
        assert [await patch(pool), await patch(pool)] == [expected, expected]
        assert server.connections == 1


async def test_a_connection_is_replaced_after_some_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "REQUESTS_PER_CONNECTION", 3)
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as (server, pool):
        for _ in range(7):
            assert await patch(pool) == (200, b"{}", "")
        assert (len(server.requests), server.connections) == (7, 3)


async def test_no_connection_is_used_after_a_close() -> None:
    """Nor one that was waiting for an answer then."""
    asked, closed = asyncio.Event(), asyncio.Event()

    async def answer(_: int, writer: asyncio.StreamWriter) -> bool:
        asked.set()
        await closed.wait()
        writer.write(OK)
        return True

    async with serving(answer) as (server, pool):
        asking = asyncio.create_task(patch(pool))
        await asked.wait()
        pool.close()
        closed.set()
        await asking
        await patch(pool)
        assert server.connections == 2


async def test_no_connection_is_used_after_a_close_that_was_just_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(answering(OK)) as (server, pool):
        connect = pool._connect

        async def slowly() -> Any:
            connection = await connect()
            if server.requests == []:
                pool.close()
            return connection

        monkeypatch.setattr(pool, "_connect", slowly)
        for _ in range(3):
            await patch(pool)
        assert server.connections == 2


async def test_the_request_is_complete() -> None:
    async with serving(answering(OK)) as (server, pool):
        await patch(pool)
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        assert head.split(b"\r\n")[0] == b"PATCH /x?y=1 HTTP/1.1"
        assert b"Accept: application/json" in head.split(b"\r\n")
        assert head.split(b"\r\n")[1].startswith(b"Host: 127.0.0.1:")
        assert body == b"{}"


async def test_a_retry_after_of_one_answer_is_not_taken_for_that_of_the_next() -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        throttled = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
        writer.write(throttled if number == 1 else OK)
        return True

    async with serving(answer) as (_, pool):
        assert [await patch(pool), await patch(pool)] == [(429, b"", "7"), (200, b"body", "")]


async def test_as_many_connections_as_requests_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        await both.wait()
        writer.write(OK)
        return True

    async with serving(answer) as (server, pool):
        await asyncio.gather(patch(pool), patch(pool))
        await asyncio.gather(patch(pool), patch(pool))
        assert server.connections == 2


async def test_a_server_that_closes_is_not_asked_on_that_connection_again() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(closing)) as (server, pool):
        await patch(pool)
        await patch(pool)
        assert server.connections == 2


async def test_a_request_that_met_an_idle_connection_being_closed_is_sent_once_more() -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        if number == 2:
            return False  # closed without an answer, on the connection that answered the first
        writer.write(OK)
        return True

    async with serving(answer) as (server, pool):
        assert [await patch(pool), await patch(pool)] == [(200, b"body", ""), (200, b"body", "")]
        assert (server.connections, len(server.requests)) == (2, 3)


async def test_a_first_request_without_an_answer_is_an_error() -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        return False

    async with serving(answer) as (server, pool):
        with pytest.raises(Disconnected, match="connection lost"):
            await patch(pool)
        assert len(server.requests) == 1


async def test_a_late_answer_is_not_taken_for_that_of_another_request() -> None:
    release = asyncio.Event()

    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        if number == 1:
            await release.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
        else:
            writer.write(OK)
        return True

    async with serving(answer, seconds=0.2) as (server, pool):
        with pytest.raises(Disconnected, match="no response in time"):
            await patch(pool)
        release.set()
        assert await patch(pool) == (200, b"body", "")
        assert server.connections == 2


async def test_what_is_no_http_is_an_error() -> None:
    async with serving(answering(b"SSH-2.0-OpenSSH_9.6\r\n")) as (_, pool):
        with pytest.raises(Disconnected, match="not HTTP"):
            await patch(pool)


async def test_nobody_listening_is_an_error() -> None:
    pool = Http1Pool("127.0.0.1", 1, None, None, connect_seconds=60.0, request_seconds=60.0)
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await patch(pool)
