"""Requests with a known head are answered as if the parser had read it, and strangers gain nothing."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.webhook.http.connection import ClientConnection
from crdkeeper.webhook.http.heads import Around, Head, KnownHeads, split
from crdkeeper.webhook.http.http1 import Http1Server
from crdkeeper.webhook.http.types import Body, HttpLimits, Response
from tests.unit.webhook.peers import POST, serving, sized, until

LIMITS = HttpLimits(head_bytes=400, body_bytes=100, small_bytes=50, held_bytes=120)


class _Forgetful(KnownHeads):
    def get(self, around: Around) -> Head | None:
        return None


@dataclass
class _Transport:
    """Records what the connection does with it."""

    said: list[Any] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        self.said.append(bytes(data))

    def close(self) -> None:
        self.said.append("closed")

    def abort(self) -> None:
        self.said.append("aborted")


def _server() -> Http1Server:
    def echo(method: str, path: str, body: Body, source: str) -> Response:
        return Response(f"{method} {path} {bytes(body)!r} {source}\n".encode())

    def gate(method: str, path: str) -> Response | None:
        return None if path.startswith("/e") else Response(b"no\n", 404)

    return Http1Server(echo, LIMITS, gate)


def _talk(server: Http1Server, connections: list[list[bytes]]) -> list[list[Any]]:
    """What clients, one after the other, get for these pieces of data."""
    talks = []
    for pieces in connections:
        connection, transport = ClientConnection(server, "192.0.2.1"), _Transport()
        connection.connection_made(transport)  # type: ignore[arg-type]
        for piece in pieces:
            connection.data_received(piece)
            transport.said.append((connection.idle, connection.working, server.small.held, server.large.held))
        talks.append(transport.said)
        connection.connection_lost(None)
    return talks


_LINES = st.sampled_from(
    [
        b"Host: here\r\n",
        b"Host: there\r\n",
        b"Connection: close\r\n",
        b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
        b"Expect: 100-continue\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"X: Content-Length: 3\r\n",
        b"X: y\r\n z\r\n",
        b"X: " + b"z" * 300 + b"\r\n",
        b"content-length: 3\r\n",
        b"Content-Length:3\r\n",
        b"broken\r\n",
        b"\r\n",
    ]
)
_STARTS = st.sampled_from(
    [
        b"POST /echo HTTP/1.1\r\n",
        b"GET /e?x HTTP/1.1\r\n",
        b"POST /no HTTP/1.1\r\n",
        b"POST /e HTTP/1.0\r\n",
        b"",
    ]
)
_LENGTHS = st.sampled_from([b"%d", b"0%d", b"+%d", b" %d", b"%d ", b"0000000000000000000%d", b"-%d"])


@st.composite
def _requests(draw: st.DrawFn) -> bytes:
    body = draw(st.sampled_from([b"", b"abc", b"x" * 60, b"y" * 101, b"GET /e HTTP/1.1\r\n\r\n"]))
    length = draw(_LENGTHS if draw(st.integers(0, 3)) == 0 else st.just(b"%d")) % len(body)
    lines = [b"Host: here\r\n", b"Content-Length: " + length + b"\r\n"]
    if draw(st.booleans()):
        lines = draw(st.permutations([*lines, *draw(st.lists(_LINES, max_size=2))]))
    extra = draw(st.sampled_from([b"", b"", b"", b"z"]))
    start = draw(_STARTS) if draw(st.booleans()) else b"POST /echo HTTP/1.1\r\n"
    return start + b"".join(lines) + b"\r\n" + body + extra


@st.composite
def _pieces(draw: st.DrawFn) -> list[bytes]:
    made = []
    for each in draw(st.lists(_requests(), min_size=1, max_size=3)):
        if draw(st.integers(0, 3)) == 0:
            at = draw(st.integers(0, len(each)))
            made += [part for part in (each[:at], each[at:]) if part]
        else:
            made.append(each)
    return made


@given(st.lists(_pieces(), min_size=1, max_size=3))
def test_all_is_answered_as_if_it_was_never_seen_before(connections: list[list[bytes]]) -> None:
    async def both() -> None:
        knowing, forgetful = _server(), _server()
        forgetful.heads = _Forgetful()
        # Twice: the second time, all heads that are accepted are known.
        assert _talk(knowing, connections * 2) == _talk(forgetful, connections * 2)

    asyncio.run(both())


async def test_a_head_is_known_whatever_the_length_of_the_body() -> None:
    async with serving() as made:
        peer = await made.peer()
        for body in (b"first", b"the second", b""):
            await peer.send(sized(body))
            assert (await peer.answer())[2] == body
        assert _known(made.server.heads) == 1


async def test_what_the_gate_refuses_by_now_is_refused() -> None:
    async with serving() as made:
        peer = await made.peer()
        await peer.send(sized(b"hi"))
        assert (await peer.answer())[0] == 200
        made.server.gate = lambda method, path: Response(b"no more\n", 404)
        await peer.send(sized(b"hi"))
        assert (await peer.answer())[0] == 404
        assert made.handled == ["/echo"]


async def test_a_body_that_is_too_large_is_refused() -> None:
    async with serving(body_bytes=10) as made:
        peer = await made.peer()
        for body, status in ((b"small", 200), (b"a large body", 413)):
            await peer.send(sized(body))
            assert (await peer.answer())[0] == status


@pytest.mark.parametrize(
    "request_",
    [
        POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        POST + b"X: " + b"y" * 3000 + b"\r\nContent-Length: 2\r\n\r\nhi",
        POST.replace(b"echo", b"nowhere") + b"Content-Length: 2\r\n\r\nhi",
        POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
    ],
    ids=["asks first", "long", "refused by the gate", "two lengths"],
)
async def test_only_heads_that_are_short_and_accepted_are_kept(request_: bytes) -> None:
    async with serving() as made:
        peer = await made.peer()
        await peer.send(request_)
        await until(lambda: bool(made.handled or made.refused))
        assert _known(made.server.heads) == 0


async def test_strangers_cannot_fill_the_memory_with_heads() -> None:
    async with serving() as made:
        peer = await made.peer()
        for number in range(2000):
            line = b"POST /e%d%s HTTP/1.1\r\nHost: here\r\n" % (number, b"y" * 1800)
            await peer.send(line + b"Content-Length: 2\r\n\r\nhi")
            await peer.answer()
        assert _known(made.server.heads) == 512
        assert _bytes(made.server.heads) < 2 << 20


async def test_nothing_of_a_request_that_is_not_whole_is_kept_besides_its_body() -> None:
    head = POST + b"Content-Length: 100000\r\n\r\n"
    assert split(head + b"x" * 99_999) is None
    assert split(head + b"x" * 100_000) == ((POST + b"Content-Length: ", b"\r\n\r\n"), len(head))


def _known(heads: KnownHeads) -> int:
    return len(heads._known)


def _bytes(heads: KnownHeads) -> int:
    return sum(len(part) for around, head in heads._known.items() for part in (*around, head.path))
