"""Watches: one event for each line, resumed where the stream ended, and told when that is not possible."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from aiohttp import web

from crdkeeper.cluster.transport import watches
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.watches import watch
from tests import virtualtime
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, hang_up

PATH = "/apis/crdkeeper.dev/v1alpha1/definitionreports"


def event(type_: str, version: int, name: str = "a") -> dict[str, Any]:
    return {"type": type_, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}


def stream(*events: dict[str, Any], broken: bool = False) -> Handler:
    """Sends the events in pieces that do not end where lines do, and ends."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        text = b"".join(orjson.dumps(each) + b"\n" for each in events)
        for begin in range(0, len(text), 7):
            await response.write(text[begin : begin + 7])
        if broken:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer  # type: ignore[return-value]


async def events_of(client: Client, into: list[tuple[str, str]]) -> None:
    """Follows until it ends by an error."""
    async for type_, found in watch(client, PATH, "5"):
        into.append((type_, found["metadata"]["resourceVersion"]))


async def test_it_goes_on_where_the_stream_ended(tmp_path: Path) -> None:
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    answers = (
        stream(event("ADDED", 6), event("MODIFIED", 7)),
        stream(event("BOOKMARK", 20)),
        stream(event("DELETED", 21), expired),
    )
    seen: list[tuple[str, str]] = []
    async with client_of(tmp_path, *answers) as (server, client):
        with pytest.raises(ApiError) as error:
            await events_of(client, seen)
    assert error.value.code == 410
    assert seen == [("ADDED", "6"), ("MODIFIED", "7"), ("DELETED", "21")]
    asked = [each.query["resourceVersion"] for each in server.requests]
    assert asked == ["5", "7", "20"]


async def test_a_refusal_is_an_error(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(403, "Forbidden", "no")) as (_, client):
        with pytest.raises(ApiError) as error:
            await events_of(client, [])
    assert error.value.code == 403


@pytest.mark.parametrize(
    "trouble",
    [
        hang_up,
        failure(503, "ServiceUnavailable", "away"),
        failure(429, "TooManyRequests", "busy"),
        stream({"type": "ERROR", "object": {"kind": "Status", "code": 500}}),
        stream(),
    ],
    ids=["no answer", "503", "429", "an error in the stream", "an empty stream"],
)
async def test_trouble_is_waited_out_where_it_was(
    tmp_path: Path, trouble: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_FIRST_PAUSE", 0.0)
    end = stream(event("DELETED", 9), {"type": "ERROR", "object": {"kind": "Status", "code": 410}})
    answers = (stream(event("ADDED", 6), broken=True), trouble, trouble, trouble, end)
    seen: list[tuple[str, str]] = []
    async with client_of(tmp_path, *answers) as (server, client):
        with pytest.raises(ApiError) as error:
            await events_of(client, seen)
    assert error.value.code == 410
    assert seen == [("ADDED", "6"), ("DELETED", "9")]
    assert [each.query["resourceVersion"] for each in server.requests] == ["5", "6", "6", "6", "6"]


def test_pauses_grow() -> None:
    """A server that ends each watch at once is not asked thousands of times."""

    class Broken:
        asked = 0

        async def lines(self, _: str) -> AsyncIterator[bytes]:
            self.asked += 1
            raise Unreachable("refused")
            yield b""

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(600.0):
                await events_of(cast(Client, broken), [])

    broken = Broken()
    virtualtime.run(main())
    assert broken.asked < 30
