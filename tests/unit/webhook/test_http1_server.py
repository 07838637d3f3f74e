"""The lean HTTP server against clients that do all that clients may, and what they may not."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from crdkeeper.webhook import http1
from crdkeeper.webhook.http1 import Http1Server
from crdkeeper.webhook.http1connection import Answer, Body, Limits

SECONDS = 10.0
POST = b"POST /echo HTTP/1.1\r\nHost: here\r\n"
SLOW = b"POST /slow HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi"


class Peer:
    """A client that sends bytes as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *pieces: bytes) -> None:
        for each in pieces:
            self.writer.write(each)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Status code, head and body of the next answer."""
        async with asyncio.timeout(SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            return int(head[9:12]), head, await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """What comes until the server closes."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


class Serving:
    """A server that answers with what it got; /slow waits until it is let go, /broken fails."""

    def __init__(self, limits: Limits) -> None:
        self.go_on = asyncio.Event()
        self.handled: list[str] = []
        self.refused: list[int] = []
        self.given_up = 0
        self.server = Http1Server(
            self._handle, limits, self._gate, lambda each: self.refused.append(each.status)
        )

    def _handle(self, method: str, path: str, body: Body) -> Answer | Coroutine[Any, Any, Answer]:
        self.handled.append(path)
        if path == "/broken":
            raise ValueError("as told")
        return self._later(body) if path == "/slow" else Answer(bytes(body))

    async def _later(self, body: Body) -> Answer:
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return Answer(bytes(body))

    def _gate(self, method: str, path: str) -> Answer | None:
        return Answer(b"no\n", 404) if path == "/nowhere" else None

    async def peer(self) -> Peer:
        return Peer(*await asyncio.open_connection("127.0.0.1", self.server.port))


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[Serving]:
    made = Serving(Limits(**limits))
    await made.server.start("127.0.0.1", 0)
    try:
        yield made
    finally:
        await made.server.stop(0.0)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "_TICK_SECONDS", 0.02)


def sized(body: bytes, *headers: bytes) -> bytes:
    return POST + b"".join(headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    "pieces",
    [
        [sized(b"hello")],
        [bytes([each]) for each in sized(b"hello")],
        [b"POST /echo?timeout=30s HTTP/1.1\r\nhost: here\r\ncontent-length: 5\r\n\r\n", b"hel", b"lo"],
    ],
    ids=["one piece", "single bytes", "query"],
)
async def test_a_request_in_any_pieces_and_the_next_on_the_same_connection(pieces: list[bytes]) -> None:
    async with serving() as made:
        peer = await made.peer()
        for _ in range(3):
            await peer.send(*pieces)
            status, head, body = await peer.answer()
            assert (status, body) == (200, b"hello")
            assert b"Connection: close" not in head
        assert made.handled == ["/echo"] * 3
        assert made.server.held == 0


async def test_requests_that_come_together_are_answered_in_order() -> None:
    async with serving() as made:
        peer = await made.peer()
        await peer.send(sized(b"one") + sized(b"two"))
        assert [(await peer.answer())[2] for _ in range(2)] == [b"one", b"two"]


@pytest.mark.parametrize("together", [True, False])
async def test_who_does_not_wait_for_a_slow_answer_gets_that_one_alone(together: bool) -> None:
    async with serving() as made:
        peer = await made.peer()
        await peer.send(*([SLOW + SLOW] if together else [SLOW]))
        await _until(lambda: made.handled == ["/slow"])
        if not together:
            await peer.send(sized(b"two"))
            await asyncio.sleep(0.05)
        made.go_on.set()
        status, head, body = await peer.answer()
        assert (status, body) == (200, b"hi")
        assert b"Connection: close" in head
        assert await peer.rest() == b""
        assert made.handled == ["/slow"]


@pytest.mark.parametrize(
    ("head", "stays"),
    [
        (b"POST /echo HTTP/1.0\r\nContent-Length: 2\r\n", False),
        (b"POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n", True),
        (POST + b"Connection: close\r\nContent-Length: 2\r\n", False),
    ],
    ids=["HTTP/1.0", "HTTP/1.0 that stays", "close"],
)
async def test_the_client_says_whether_the_connection_stays(head: bytes, stays: bool) -> None:
    async with serving() as made:
        peer = await made.peer()
        await peer.send(head + b"\r\nhi")
        status, answered, body = await peer.answer()
        assert (status, body, b"Connection: close" in answered) == (200, b"hi", not stays)
        if not stays:
            assert await peer.rest() == b""


async def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async with serving() as made:
        peer = await made.peer()
        await peer.send(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await peer.send(b"hi")
        assert (await peer.answer())[2] == b"hi"


@pytest.mark.parametrize(
    ("path", "size", "status"), [(b"/nowhere", 2, 404), (b"/echo", 2000, 413)], ids=["path", "size"]
)
async def test_a_client_that_asks_first_is_refused_before_it_sends(
    path: bytes, size: int, status: int
) -> None:
    async with serving(body_bytes=1000) as made:
        peer = await made.peer()
        line = b"POST %s HTTP/1.1\r\nHost: here\r\n" % path
        await peer.send(line + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % size)
        assert (await peer.answer())[0] == status
        assert made.refused == [status]


CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"\r\n2\r\nhi\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (POST + CHUNKED + CHUNKS, 411),
        (POST + CHUNKED + b"Content-Length: 2\r\n" + CHUNKS, 411),
        (POST + b"Content-Length: 2\r\n" + CHUNKED + CHUNKS, 400),
        (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", 400),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", 400),
        (POST + b"Content-Length : 2\r\n\r\nhi", 400),
        (POST + b"Content-Length: +2\r\n\r\nhi", 400),
        (POST + b"Content-Length: -2\r\n\r\nhi", 400),
        (POST + b"Content-Length: 2,2\r\n\r\nhi", 400),
        (POST + b"Content-Length: 99999999999999999999\r\n\r\nhi", 400),
        (POST + b"Content-Length: " + b"9" * 5001 + b"\r\n\r\nhi", 400),
        (POST + b"Content-Length: " + b"0" * 5001 + b"\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi", 411),
        (POST + b"Transfer-Encoding: xchunked\r\n" + CHUNKS, 411),
        (POST + b"Transfer-Encoding: chunked, identity\r\n" + CHUNKS, 400),
        (POST + CHUNKED + b"\r\n0\r\n" + b"X: y\r\n" * 100_000, 411),
        (b"POST /echo HTTP/1.0\r\n" + CHUNKED + CHUNKS, 411),
        (b"POST /echo\r\n\r\n", 400),
        (POST + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nhi", 400),
        (b"POST /echo HTTP/1.1\nHost: here\nContent-Length: 2\n\nhi", 400),
        (b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", 400),
        (POST + b"Host: there\r\nContent-Length: 2\r\n\r\nhi", 400),
        (POST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"hello\r\n\r\n", 400),
        (POST + b"X: " + b"y" * 9000 + b"\r\n\r\n", 431),
        (POST + b"X: y\r\n" * 1500, 431),
        (b"POST /" + b"y" * 9000, 431),
        (b"POST /nowhere HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi", 404),
        (POST + b"Content-Length: 1001\r\n\r\n", 413),
    ],
)
async def test_what_is_no_request_is_refused_and_nothing_after_it_is_read(raw: bytes, status: int) -> None:
    limits = {"head_bytes": 8000, "body_bytes": 1000, "linger_seconds": 0.1}
    async with serving(**limits) as made:
        peer = await made.peer()
        await peer.send(raw)
        answered, head, _ = await peer.answer()
        assert answered == status
        assert b"Connection: close" in head
        await peer.send(b"\r\n" + sized(b"smuggled"))
        assert await peer.rest() == b""
        assert made.handled == []
        assert made.refused == [status]
        assert made.server.held == 0


async def test_the_head_may_come_with_a_large_body() -> None:
    async with serving(head_bytes=200) as made:
        peer = await made.peer()
        await peer.send(sized(b"y" * 100_000))
        assert (await peer.answer())[2] == b"y" * 100_000


async def test_who_sends_on_after_a_refusal_can_read_it() -> None:
    async with serving(body_bytes=1000) as made:
        peer = await made.peer()
        size = 20 << 20
        await peer.send(POST + b"Content-Length: %d\r\n\r\n" % size, *[b"y" * (1 << 20)] * 20)
        assert (await peer.answer())[0] == 413


async def test_bodies_together_are_bounded() -> None:
    async with serving(body_bytes=1000, held_bytes=1500) as made:
        first, second = await made.peer(), await made.peer()
        await first.send(POST + b"Content-Length: 1000\r\n\r\n" + b"y" * 900)
        await _until(lambda: made.server.held == 900)
        await second.send(POST + b"Content-Length: 1000\r\n\r\n" + b"y" * 900)
        status, head, _ = await second.answer()
        assert (status, b"Retry-After: 1" in head) == (503, True)
        await first.send(b"y" * 100)
        assert (await first.answer())[0] == 200
        assert made.server.held == 0


async def test_a_client_that_goes_in_the_middle_leaves_nothing_behind() -> None:
    async with serving() as made:
        sending, waiting = await made.peer(), await made.peer()
        await sending.send(POST + b"Content-Length: 1000\r\n\r\n" + b"y" * 900)
        await waiting.send(SLOW)
        await _until(lambda: made.server.held == 902)
        sending.writer.transport.abort()
        waiting.writer.transport.abort()
        await _until(lambda: made.server.held == 0 and made.given_up == 1)
        peer = await made.peer()
        await peer.send(sized(b"hi"))
        assert (await peer.answer())[0] == 200


@pytest.mark.parametrize(
    "begun",
    [b"P", POST, POST + b"Content-Length: 5\r\n\r\n", POST + b"Content-Length: 5\r\n\r\nhel"],
    ids=["line", "headers", "no body", "half a body"],
)
async def test_a_request_that_does_not_end_is_given_up(begun: bytes) -> None:
    async with serving(request_seconds=0.1, linger_seconds=0.1) as made:
        peer = await made.peer()
        await peer.send(begun)
        assert (await peer.answer())[0] == 408
        assert await peer.rest() == b""


async def test_dribbling_does_not_prolong_a_request() -> None:
    async with serving(request_seconds=0.3, linger_seconds=0.1) as made:
        peer = await made.peer()
        await peer.send(POST)

        async def dribble() -> None:
            while True:
                await peer.send(b"X: y\r\n")
                await asyncio.sleep(0.01)

        dribbling = asyncio.create_task(dribble())
        assert (await peer.answer())[0] == 408
        dribbling.cancel()


async def test_idle_connections_are_closed_and_slow_answers_are_not() -> None:
    async with serving(idle_seconds=0.1, request_seconds=0.1) as made:
        idle, waiting = await made.peer(), await made.peer()
        await waiting.send(SLOW)
        assert await idle.rest() == b""
        await asyncio.sleep(0.2)
        made.go_on.set()
        assert (await waiting.answer())[0] == 200


async def test_a_client_that_does_not_take_its_answers_is_given_up() -> None:
    async with serving(request_seconds=0.2) as made:
        peer = await made.peer()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        body = b"y" * (4 << 20)

        async def send_for_ever() -> None:
            while True:
                await peer.send(sized(body))

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_for_ever(), SECONDS)
        assert made.server.held == 0


async def test_for_one_connection_too_many_the_one_that_waited_longest_goes() -> None:
    async with serving(connections=3) as made:
        at_work, sending, idle = await made.peer(), await made.peer(), await made.peer()
        await at_work.send(SLOW)
        await sending.send(POST)
        await _until(lambda: made.handled == ["/slow"])
        others = []
        for gone in (idle, sending):
            others.append(await made.peer())
            await others[-1].send(SLOW)
            await _until(lambda: len(made.handled) == 1 + len(others))
            assert await gone.rest() == b""
        # All are at work: this one is too many.
        assert await (await made.peer()).rest() == b""
        made.go_on.set()
        assert (await at_work.answer())[0] == 200


async def test_what_fails_is_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as made:
        peer = await made.peer()
        await peer.send(b"POST /broken HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n")
        status, _, body = await peer.answer()
        assert (status, body) == (500, b"internal error\n")
        assert "as told" in caplog.text
        await peer.send(sized(b"hi"))
        assert (await peer.answer())[0] == 200


async def test_draining_sends_clients_elsewhere_and_loses_nothing() -> None:
    async with serving() as made:
        used, at_work, idle = await made.peer(), await made.peer(), await made.peer()
        await at_work.send(SLOW)
        await _until(lambda: made.handled == ["/slow"])
        made.server.draining, port = True, made.server.port
        await used.send(sized(b"hi"))
        status, head, _ = await used.answer()
        assert (status, b"Connection: close" in head) == (200, True)
        assert await used.rest() == b""
        stopping = asyncio.create_task(made.server.stop(SECONDS))
        assert await idle.rest() == b""
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)
        made.go_on.set()
        assert (await at_work.answer())[:1] == (200,)
        await asyncio.wait_for(stopping, SECONDS)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
