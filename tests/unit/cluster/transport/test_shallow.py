"""What Kopf gets to read: nothing that its JSON parser fails on, and all else unchanged."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import pytest

from crdkeeper.cluster.transport.shallow import ShallowContent, shallow

DEEP = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"b"},"spec":' + DEEP + b"}}"
PLAIN = b'{"type": "ADDED", "n": 1.0, "object": [[["' + "ä".encode() + b'"]]]}'


class Content:
    """A body that arrives in pieces."""

    def __init__(self, body: bytes) -> None:
        self.total_bytes = len(body)
        self._body = body

    async def read(self, n: int = -1) -> bytes:
        return self._body

    async def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        for at in range(0, len(self._body), n):
            yield self._body[at : at + n]


def content(body: bytes) -> Any:
    return ShallowContent(cast(aiohttp.StreamReader, Content(body)))


def test_kopfs_parser_fails_on_deep_values() -> None:
    with pytest.raises(RecursionError):
        # Python 3.13 fails only beyond some 10,000 levels.
        json.loads(b"[" * 200_000 + b"]" * 200_000)


def test_what_is_too_deep_is_left_out() -> None:
    found = json.loads(shallow(EVENT))
    assert found["object"]["metadata"] == {"name": "b"}


@pytest.mark.parametrize("text", [PLAIN, b"", b"no JSON", b"[" * 5_000, b'{"n": 1e400}'])
def test_all_else_is_unchanged(text: bytes) -> None:
    assert shallow(text) == text


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines(size: int, end: bytes) -> None:
    async def read() -> bytes:
        return b"".join(
            [each async for each in content(PLAIN + b"\n" + EVENT + b"\n" + PLAIN + end).iter_chunked(size)]
        )

    first, second, third, *rest = asyncio.run(read()).split(b"\n")
    assert first == third == PLAIN
    assert json.loads(second)["object"]["metadata"] == {"name": "b"}
    assert rest in ([], [b""])


def test_a_whole_body() -> None:
    async def read() -> bytes:
        body: bytes = await content(EVENT).read()
        return body

    assert json.loads(asyncio.run(read()))["type"] == "ADDED"
    assert content(EVENT).total_bytes == len(EVENT)
