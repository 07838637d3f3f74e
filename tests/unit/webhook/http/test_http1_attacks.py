"""The lean HTTP server against attackers: no request, no end, no room, no answer read."""

import asyncio
import time

import pytest

from crdkeeper.webhook.http import http1
from crdkeeper.webhook.http.connection import ClientConnection
from crdkeeper.webhook.http.http1 import Http1Server
from crdkeeper.webhook.http.types import HttpLimits, Response
from tests import virtualtime
from tests.unit.webhook.peers import POST, SECONDS, SLOW, serving, sized, until

OTHER = "127.0.0.2"
"""The source address of attackers."""


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
    async with serving(head_bytes=8000, body_bytes=1000) as made:
        peer = await made.peer()
        await peer.send(raw)
        answered, head, _ = await peer.answer()
        assert answered == status
        assert b"Connection: close" in head
        await peer.send(b"\r\n" + sized(b"smuggled"))
        peer.writer.write_eof()  # which comes after all that
        assert await peer.rest() == b""
        assert made.handled == []
        assert made.refused == [status]
        assert made.held == 0


async def test_who_pauses_with_large_bodies_gives_way_to_others_and_small_ones_have_room_of_their_own() -> (
    None
):
    async with serving(body_bytes=1000, small_bytes=100, held_bytes=1700, linger_seconds=0.1) as made:
        pausing = [await made.peer(OTHER) for _ in range(2)]
        for number, each in enumerate(pausing, 1):
            await each.send(POST + b"Content-Length: 800\r\n\r\n" + b"y" * 700)
            await until(lambda held=700 * number: made.held == held)  # type: ignore[misc]
        peer = await made.peer()
        await peer.send(sized(b"y" * 100))
        assert (await peer.answer())[0] == 200
        assert made.held == 1400
        await peer.send(sized(b"y" * 900))
        assert (await peer.answer())[0] == 200
        status, head, _ = await pausing[0].answer()
        assert (status, b"Retry-After: 1" in head) == (503, True)
        await pausing[1].send(b"y" * 100)
        assert (await pausing[1].answer())[0] == 200
        assert made.held == 0


async def test_one_source_gives_way_for_itself_though_others_came_before() -> None:
    async with serving(body_bytes=1000, small_bytes=100, held_bytes=1500, linger_seconds=0.1) as made:
        early = await made.peer()
        await early.send(POST + b"Content-Length: 400\r\n\r\n" + b"y" * 300)
        await until(lambda: made.held == 300)
        greedy = [await made.peer(OTHER) for _ in range(3)]
        for before, each in enumerate(greedy):
            await each.send(POST + b"Content-Length: 800\r\n\r\n" + b"y" * 700)
            await until(lambda gone=before: (made.held, len(made.refused)) == (1000, gone))  # type: ignore[misc]
        assert [(await each.answer())[0] for each in greedy[:2]] == [503, 503]
        await early.send(b"y" * 100)
        assert (await early.answer())[0] == 200


async def test_bodies_at_work_are_not_given_up() -> None:
    async with serving(body_bytes=1000, small_bytes=0, held_bytes=1500, linger_seconds=0.1) as made:
        at_work, late = await made.peer(), await made.peer(OTHER)
        body = b"y" * 1000
        await at_work.send(b"POST /slow HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n" + body)
        await until(lambda: made.handled == ["/slow"])
        await late.send(sized(body))
        assert (await late.answer())[0] == 503
        made.go_on.set()
        assert (await at_work.answer())[::2] == (200, body)
        assert made.held == 0


@pytest.mark.parametrize(
    "begun",
    [b"P", POST, POST + b"Content-Length: 5\r\n\r\n", POST + b"Content-Length: 5\r\n\r\nhel"],
    ids=["line", "headers", "no body", "half a body"],
)
async def test_a_request_that_does_not_end_is_given_up(begun: bytes) -> None:
    async with serving(progress_seconds=0.1, linger_seconds=0.1) as made:
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


class Told:
    """A transport that keeps what is written."""

    def __init__(self, server: Http1Server) -> None:
        self.said = b""
        self.connection = ClientConnection(server, OTHER)
        self.connection.connection_made(self)  # type: ignore[arg-type]

    def write(self, data: bytes) -> None:
        self.said += data


def test_a_body_must_go_on_at_some_rate() -> None:
    size = 10_000

    async def story() -> None:
        limits = HttpLimits(progress_bytes=1000, progress_seconds=1.0, linger_seconds=SECONDS)
        server = Http1Server(lambda *_: Response(b"hi"), limits)
        steady, slow = Told(server), Told(server)
        for each in (steady, slow):
            each.connection.data_received(POST + b"Content-Length: %d\r\n\r\n" % size)

        async def dribble() -> None:
            while True:
                slow.connection.data_received(b"y")
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(each) for each in (server._tick(), dribble())]
        for _ in range(size // 1000):
            steady.connection.data_received(b"y" * 1000)
            await asyncio.sleep(0.15)
        assert virtualtime.now() > 1.0
        assert steady.said.startswith(b"HTTP/1.1 200 ")
        assert slow.said.startswith(b"HTTP/1.1 408 ")
        for task in tasks:
            task.cancel()

    virtualtime.run(story())


async def test_a_client_that_does_not_take_its_answers_is_given_up() -> None:
    async with serving(progress_seconds=0.2, linger_seconds=0.1) as made:
        peer = await made.peer()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        body = b"y" * (4 << 20)

        async def send_for_ever() -> None:
            while True:
                await peer.send(sized(body))

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_for_ever(), SECONDS)
        assert made.held == 0


async def test_large_answers_that_nobody_takes_are_bounded_together() -> None:
    size = 8 << 20
    async with serving(held_bytes=100 << 20, unsent_bytes=2 * size) as made:
        greedy = [await made.peer(OTHER) for _ in range(4)]
        for number, each in enumerate(greedy, 1):
            each.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await each.send(sized(b"y" * size))
            await until(lambda number=number: len(made.handled) == number)  # type: ignore[misc]
            assert made.server.unsent.held <= 2 * size
        peer = await made.peer()
        await peer.send(sized(b"y" * size))
        assert (await peer.answer())[2] == b"y" * size
        assert made.server.unsent.held <= size
        for each in greedy[:3]:
            each.writer.transport.resume_reading()  # type: ignore[attr-defined]
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await each.answer()


async def test_for_one_connection_too_many_the_one_that_waited_longest_goes() -> None:
    async with serving(connections=3) as made:
        at_work, sending, idle = await made.peer(), await made.peer(), await made.peer()
        await at_work.send(SLOW)
        await sending.send(POST)
        await until(lambda: made.handled == ["/slow"])
        others = []
        for gone in (idle, sending):
            others.append(await made.peer())
            await others[-1].send(SLOW)
            await until(lambda: len(made.handled) == 1 + len(others))
            assert await gone.rest() == b""
        # All are in use: this one is too many.
        assert await (await made.peer()).rest() == b""
        made.go_on.set()
        assert (await at_work.answer())[0] == 200


async def test_who_asked_for_something_stays_and_who_did_not_goes() -> None:
    async with serving(connections=4) as made:
        known = [await made.peer() for _ in range(3)]
        for each in known:
            await each.send(sized(b"hi"))
            assert (await each.answer())[0] == 200
        strangers = [await made.peer(OTHER) for _ in range(20)]
        for each in strangers[:-1]:
            assert await each.rest() == b""
        for each in known:
            await each.send(sized(b"hi"))
            assert (await each.answer())[0] == 200


async def test_the_source_with_the_most_connections_gives_way() -> None:
    async with serving(connections=12) as made:
        few, many = [await made.peer()], []
        for _ in range(20):
            many.append(await made.peer(OTHER))
            await many[-1].send(sized(b"hi"))
            assert (await many[-1].answer())[0] == 200
        few.append(await made.peer())
        for each in few:
            await each.send(sized(b"hi"))
            assert (await each.answer())[0] == 200
        for each in many[:9]:
            assert await each.rest() == b""


async def test_unfinished_handshakes_take_no_connection_from_anybody() -> None:
    async with serving(tls=True, connections=3, handshakes=5) as made:
        known = [await made.peer() for _ in range(3)]
        for each in known:
            await each.send(sized(b"hi"))
            assert (await each.answer())[0] == 200
        silent = [await made.stranger(OTHER) for _ in range(50)]
        for each in silent[:45]:
            assert await each.rest() == b""
        slow = await made.stranger("127.0.0.1")
        silent += [await made.stranger(OTHER) for _ in range(50)]
        for each in known:
            await each.send(sized(b"hi"))
            assert (await each.answer())[0] == 200
        # The source with the most connections gives one up, so this one is still there.
        await slow.send(b"\x16\x03")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await slow.reader.read()


@pytest.mark.parametrize("path", [b"/echo\x9b31m", b"/echo\xe2\x80\xae"], ids=["escape", "direction"])
async def test_a_path_that_could_not_be_logged_is_refused(path: bytes) -> None:
    async with serving(linger_seconds=0.1) as made:
        peer = await made.peer()
        await peer.send(b"POST %s HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n" % path)
        assert (await peer.answer())[0] == 400
        assert made.handled == []


async def test_who_was_not_looked_at_for_a_while_is_not_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped, or got no CPU, first reads what clients sent meanwhile."""
    monkeypatch.setattr(http1, "_LATE_SECONDS", 0.05)
    async with serving(progress_seconds=0.1) as made:
        peer = await made.peer()
        await peer.send(POST + b"Content-Length: 2\r\n\r\nh")
        await until(lambda: made.held == 1)
        await peer.send(b"i")
        time.sleep(0.3)  # noqa: ASYNC251
        assert (await peer.answer())[0] == 200
