"""Lists that hung: for some minutes none is sent again that the API server could not answer."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from crdkeeper.cluster.transport import hunglists
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.hunglists import hung, uncached, would_hang
from tests import virtualtime
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, hang_up, json, silent

ALL = "/apis/example.com/v1/widgets"
SAID = "no answer within 10 seconds"
LOOK = ("GET", f"{ALL}?limit=1&fieldSelector=metadata.name%21%3D.")
NOT_READY = failure(429, "TooManyRequests", "storage is (re)initializing", {"Retry-After": "30"})


async def test_what_has_not_hung_is_not_asked_about(tmp_path: Path) -> None:
    async with client_of(tmp_path, NOT_READY) as (server, client):
        hung(client, ALL, SAID)
        assert not await would_hang(client, ALL.replace("widgets", "gadgets"))
    assert server.seen == []


async def test_it_would_hang_as_long_as_the_cache_is_not_ready(tmp_path: Path) -> None:
    async with client_of(tmp_path, NOT_READY) as (server, client):
        hung(client, ALL, SAID)
        for _ in range(2):
            assert await would_hang(client, ALL) == SAID
        assert await uncached(client, ALL) == "storage is (re)initializing"
    assert server.seen == [LOOK] * 3


async def test_no_answer_is_no_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunglists, "_SECONDS", 0.1)
    end = asyncio.Event()
    async with client_of(tmp_path, silent(end)) as (_, client):
        hung(client, ALL, SAID)
        assert await would_hang(client, ALL) == SAID
        end.set()


async def test_a_server_that_is_gone_is_not_said_to_hang(tmp_path: Path) -> None:
    async with client_of(tmp_path, hang_up) as (_, client):
        hung(client, ALL, SAID)
        assert "Server disconnected" in await would_hang(client, ALL)


@pytest.mark.parametrize("answer", [json({}), failure(403, "Forbidden", "no"), failure(404), failure(500)])
async def test_it_may_be_listed_again_once_anything_else_is_answered(tmp_path: Path, answer: Handler) -> None:
    async with client_of(tmp_path, answer) as (server, client):
        hung(client, ALL, SAID)
        for _ in range(2):
            assert not await would_hang(client, ALL)
    assert server.seen == [LOOK]


async def test_the_oldest_is_forgotten_of_very_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunglists, "_MOST", 2)
    async with client_of(tmp_path, NOT_READY) as (_, client):
        for each in ("a", "b", "b", "c"):
            hung(client, each, SAID)
        assert list(client.hung_lists) == ["b", "c"]


class Unready:
    """An API server whose cache never becomes ready: one object is not converted."""

    def __init__(self) -> None:
        self.hung_lists: dict[str, tuple[str, float]] = {}

    async def request(self, *_: Any, **__: Any) -> Any:
        raise ApiError(429, {"message": "storage is (re)initializing"})


def test_a_cache_that_never_becomes_ready_does_not_block_lists_for_ever() -> None:
    async def story(client: Client) -> None:
        hung(client, ALL, SAID)
        await asyncio.sleep(299.0)
        assert await would_hang(client, ALL) == SAID
        await asyncio.sleep(2.0)
        assert not await would_hang(client, ALL)
        hung(client, ALL, SAID)
        await asyncio.sleep(299.0)
        assert await would_hang(client, ALL) == SAID

    virtualtime.run(story(cast(Client, Unready())))
