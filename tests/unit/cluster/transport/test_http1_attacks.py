"""The lean HTTP client against servers that pass off an answer as that to another request.

What it accepts as the answer to a patch is the evidence of a migration.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crdkeeper.cluster.transport.http1 import BODY_BYTES, HEAD_BYTES, Disconnected
from tests.unit.cluster.transport.test_http1 import OK, answering, patch, serving

EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nRetry-After: 9\r\n\r\n"


def ok(text: str, headers: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(text)}\r\n\r\n{text}".encode()


@pytest.mark.parametrize(
    "before",
    [b"HTTP/1.1 100 Continue\r\n\r\n", EARLY_HINTS, EARLY_HINTS * 3, b"HTTP/1.1 199 Later\r\n\r\n"],
    ids=["100", "103", "several", "unknown"],
)
@pytest.mark.parametrize("pieces", [1, 2, 1000])
async def test_an_interim_answer_is_not_the_answer(before: bytes, pieces: int) -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        raw = before + ok(f"answer {number}")
        size = -(-len(raw) // pieces)
        for start in range(0, len(raw), size):
            writer.write(raw[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        return True

    async with serving(answer) as (server, pool):
        for number in (1, 2, 3):
            assert await patch(pool) == (200, f"answer {number}".encode(), "")
        assert server.connections == 1


@pytest.mark.parametrize(
    "stray",
    [ok("stray"), EARLY_HINTS, b"HTTP/1.1 2", b"\r\n", b"x"],
    ids=["an answer", "an interim answer", "a beginning", "a line end", "a byte"],
)
async def test_a_connection_that_speaks_unasked_is_not_used_again(stray: bytes) -> None:
    spoken = asyncio.Event()
    now = asyncio.Event()

    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(ok(f"answer {number}"))
        await writer.drain()
        if number == 1:
            await now.wait()
            writer.write(stray)
            await writer.drain()
            spoken.set()
        return True

    async with serving(answer) as (server, pool):
        assert await patch(pool) == (200, b"answer 1", "")
        now.set()
        await spoken.wait()
        async with asyncio.timeout(60):
            await server.ended.wait()
        assert await patch(pool) == (200, b"answer 2", "")
        assert await patch(pool) == (200, b"answer 3", "")
        assert server.connections == 2


@pytest.mark.parametrize(
    "extra",
    [ok("another"), EARLY_HINTS, b"HTTP/1.1", b"x", b"\r\nx"],
    ids=["an answer", "an interim answer", "a beginning", "a byte", "after a line end"],
)
async def test_an_answer_with_something_behind_it_is_not_believed(extra: bytes) -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(ok(f"answer {number}") + (extra if number == 1 else b""))
        return True

    async with serving(answer) as (server, pool):
        with pytest.raises(Disconnected, match="more than one response"):
            await patch(pool)
        assert await patch(pool) == (200, b"answer 2", "")
        assert (server.connections, len(server.requests)) == (2, 2)


async def test_the_answer_to_another_request_is_not_believed() -> None:
    """As if stray bytes were in flight when the request was sent."""

    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        id = server.ids[-2 if number == 3 else -1]
        writer.write(ok(f"answer {number}", f"Audit-Id: {id}\r\n"))
        return True

    async with serving(answer) as (server, pool):
        assert await patch(pool) == (200, b"answer 1", "")
        assert await patch(pool) == (200, b"answer 2", "")
        with pytest.raises(Disconnected, match="another request"):
            await patch(pool)
        assert await patch(pool) == (200, b"answer 4", "")
        assert (server.connections, len(set(server.ids))) == (2, 4)


async def test_ids_that_a_proxy_keeps_from_the_server_do_not_matter() -> None:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(ok(f"answer {number}", f"Audit-Id: 00000000-0000-4000-8000-00000000000{number}\r\n"))
        return True

    async with serving(answer) as (server, pool):
        assert [await patch(pool) for _ in range(2)] == [(200, b"answer 1", ""), (200, b"answer 2", "")]
        assert server.connections == 1


def endless(start: bytes, piece: bytes) -> Callable[[int, asyncio.StreamWriter], Awaitable[bool]]:
    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(start)
        while True:
            writer.write(piece)
            await writer.drain()

    return answer


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "piece", "message"),
    [
        (b"", EARLY_HINTS * 100, "headers are too large"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Y: " + b"z" * 100 + b"\r\n", "headers are too large"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 1000, "headers are too large"),
        (b"HTTP/1.1 200 ", b"O" * 1000, "headers are too large"),
        (CHUNKED, b"%x\r\n" % 65536 + b"x" * 65536 + b"\r\n", "response is too large"),
        (CHUNKED, b"1\r\nx\r\n" * 1000, "headers are too large"),
        (CHUNKED + b"1;a=", b"x" * 1000, "headers are too large"),
        (CHUNKED + b"0\r\n", b"X-Y: z\r\n" * 100, "headers are too large"),
        (CHUNKED + b"0\r\nX: ", b"x" * 1000, "headers are too large"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536, "response is too large"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, "response is too large"),
    ],
    ids=[
        "interim answers",
        "headers",
        "a header",
        "a status line",
        "chunks",
        "small chunks",
        "a chunk's extension",
        "trailers",
        "a trailer",
        "a long body",
        "a body without a length",
    ],
)
async def test_an_answer_without_end_is_given_up(start: bytes, piece: bytes, message: str) -> None:
    async with serving(endless(start, piece)) as (_, pool):
        with pytest.raises(Disconnected, match=message):
            await patch(pool)


async def test_an_answer_may_be_large() -> None:
    text = "x" * (BODY_BYTES - 1)
    async with serving(answering(ok(text, f"X-Long: {'y' * (HEAD_BYTES - 1000)}\r\n"))) as (_, pool):
        assert await patch(pool) == (200, text.encode(), "")


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 0\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5001 + b"\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\nContent-Length: 4\n\nbody",
    ],
    ids=["upgrade", "two lengths", "other lengths", "huge length", "negative", "line feeds"],
)
async def test_an_answer_that_can_be_read_in_two_ways_is_none(raw: bytes) -> None:
    async with serving(answering(raw)) as (_, pool):
        with pytest.raises(Disconnected):
            await patch(pool)


async def test_a_connection_that_ends_within_an_interim_answer_was_used() -> None:
    """The server had read the request: this client must not send it again."""

    async def answer(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(ok("first") if number == 1 else EARLY_HINTS)
        await writer.drain()
        return number == 1

    async with serving(answer) as (server, pool):
        await patch(pool)
        with pytest.raises(Disconnected, match="connection lost"):
            await patch(pool)
        assert len(server.requests) == 2
