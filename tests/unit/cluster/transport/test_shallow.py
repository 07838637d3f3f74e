"""What Kopf gets to read: nothing that its JSON parser fails on, and all else unchanged."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from crdkeeper.cluster.transport.shallow import ShallowContent, ShallowResponse, loaded, shallow

DEEP = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"b"},"spec":' + DEEP + b"}}"
PLAIN = b'{"type": "ADDED", "n": 1.0, "object": [[["' + "ä".encode() + b'"]]]}'


class Content:
    """A body that arrives in pieces."""

    def __init__(self, body: bytes) -> None:
        self._body = body

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


async def as_kopf_reads(body: bytes, content_type: str = "application/json", status: int = 200) -> Any:
    """What `json` of a response returns."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, status=status)

    app = web.Application()
    app.router.add_get("/", answer)
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession(response_class=ShallowResponse) as session,
        session.get(server.make_url("/")) as response,
    ):
        return await response.json()


@pytest.mark.parametrize("text", [PLAIN, EVENT, b'"\\ud800"', b"null", b"18446744073709551615"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_value_is_that_of_pythons_parser(text: bytes, status: int) -> None:
    assert asyncio.run(as_kopf_reads(text, status=status)) == json.loads(shallow(text))


def test_a_body_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(json, "loads", refuse)
    assert loaded(PLAIN.decode())["type"] == "ADDED"


@pytest.mark.parametrize(
    ("body", "content_type", "error"),
    [
        (b"<html>", "text/html", aiohttp.ContentTypeError),
        (PLAIN, "text/html", aiohttp.ContentTypeError),
        (b"no JSON", "application/json", json.JSONDecodeError),
    ],
)
def test_what_is_no_answer_of_an_api_server_is_refused(
    body: bytes, content_type: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        asyncio.run(as_kopf_reads(body, content_type))
