"""The lean HTTP server against clients that do everything they may."""

import asyncio
from dataclasses import replace

import pytest

from tests.unit.webhook.peers import POST, SECONDS, SLOW, serving, sized, until


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
        assert made.held == 0


async def test_who_does_not_wait_for_an_answer_gets_that_one_alone() -> None:
    async with serving(linger_seconds=0.1) as made:
        peer = await made.peer()
        await peer.send(sized(b"one") + sized(b"two"))
        assert (await peer.answer())[2] == b"one"
        assert await peer.rest() == b""
        assert made.handled == ["/echo"]


@pytest.mark.parametrize("together", [True, False])
async def test_who_does_not_wait_for_a_slow_answer_gets_that_one_alone(together: bool) -> None:
    async with serving(linger_seconds=0.1) as made:
        peer = await made.peer()
        await peer.send(*([SLOW + SLOW] if together else [SLOW]))
        await until(lambda: made.handled == ["/slow"])
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


async def test_a_client_that_goes_in_the_middle_leaves_nothing_behind() -> None:
    async with serving() as made:
        sending, waiting = await made.peer(), await made.peer()
        await sending.send(POST + b"Content-Length: 1000\r\n\r\n" + b"y" * 900)
        await waiting.send(SLOW)
        await until(lambda: made.held == 902)
        sending.writer.transport.abort()
        waiting.writer.transport.abort()
        await until(lambda: made.held == 0 and made.given_up == 1)
        peer = await made.peer()
        await peer.send(sized(b"hi"))
        assert (await peer.answer())[0] == 200


async def test_idle_connections_are_closed_and_slow_answers_are_not() -> None:
    async with serving(request_seconds=0.1) as made:
        waiting = await made.peer()
        await waiting.send(SLOW)
        await until(lambda: made.handled == ["/slow"])
        # Not sooner: it would be idle until its request is read.
        made.server.limits = replace(made.server.limits, idle_seconds=0.1)
        idle = await made.peer()
        assert await idle.rest() == b""
        await asyncio.sleep(0.2)
        made.go_on.set()
        assert (await waiting.answer())[0] == 200


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
        await until(lambda: made.handled == ["/slow"])
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
