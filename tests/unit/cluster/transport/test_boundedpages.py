"""Pages whose size is up to tenants: the limit follows the size of what is there."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from crdkeeper.cluster.transport.boundedpages import PageSize, bounded_page
from crdkeeper.cluster.transport.client import ApiError, Client, TooLarge
from crdkeeper.cluster.transport.deadlines import TooSlow
from crdkeeper.core.conversion.nesting import loads
from tests import virtualtime
from tests.unit.cluster.transport.localserver import client_of, failure, json

SMALL, LARGE = json({"metadata": {}, "items": []}), json({"metadata": {}, "items": ["x" * 2_000]})
EXPIRED = failure(410, "Expired", metadata={"continue": "another"})


def size() -> PageSize:
    return PageSize(480, 480, 500, 1_000)


async def test_fewer_are_requested_until_there_is_room_and_from_then_on(tmp_path: Path) -> None:
    async with client_of(tmp_path, LARGE, LARGE, SMALL) as (server, client):
        found = size()
        await bounded_page(client, "/things", "", found)
        await bounded_page(client, "/things", "next", found)
        assert [each for _, each in server.seen] == [
            "/things?limit=480",
            "/things?limit=120",
            "/things?limit=30",
            "/things?limit=30&continue=next",
        ]


async def test_one_object_without_room_is_the_end(tmp_path: Path) -> None:
    async with client_of(tmp_path, LARGE) as (server, client):
        with pytest.raises(TooLarge):
            await bounded_page(client, "/things", "", size())
        assert [each.rpartition("=")[2] for _, each in server.seen] == ["480", "120", "30", "7", "1"]


@pytest.mark.parametrize(("length", "limit"), [(10, 49), (100, 4), (1_000, 1)])
def test_the_next_page_has_about_the_wanted_size(length: int, limit: int) -> None:
    found = PageSize(40, 480, 500)
    found.fit(["x" * (length - 3)] * 20)
    assert found.limit == limit
    found.fit([])
    assert found.limit == limit, "an empty page says nothing about others"


def test_what_is_nested_deeply_has_a_size_too() -> None:
    found = PageSize(40, 480, 50_000)
    found.fit([loads("[" * 5_000 + "]" * 5_000)] * 20)
    assert found.limit == 4


def test_a_page_grows_only_step_by_step() -> None:
    found = PageSize(10, 480, 1 << 20)
    limits = []
    for _ in range(4):
        found.fit(["x"])
        limits.append(found.limit)
    assert limits == [40, 160, 480, 480]


def test_the_next_page_takes_about_half_of_the_time() -> None:
    found = PageSize(100, 480, 1 << 20, seconds=10.0)
    limits = []
    for took in (8.0, 2.0, 20.0, 400.0):
        found.took = took
        found.fit(["x"] * 100)
        limits.append(found.limit)
    assert limits == [62, 248, 25, 1]


def test_a_page_that_takes_too_long_is_smaller_next_time() -> None:
    requested: list[int] = []

    class Slow:
        async def request(self, method: str, path: str, **_: Any) -> Any:
            requested.append(int(path.rpartition("=")[2]))
            await asyncio.sleep(0.1 * requested[-1])
            return {"metadata": {}, "items": []}

    async def story() -> None:
        found, slow = PageSize(480, 480, 500, 1_000, 10.0), cast(Client, Slow())
        for _ in range(2):
            with pytest.raises(TooSlow, match="no page within 10 seconds"):
                await bounded_page(slow, "/things", "", found, what="no page")
        await bounded_page(slow, "/things", "", found)
        assert found.took == pytest.approx(3.0)

    virtualtime.run(story())
    assert requested == [480, 120, 30]


@pytest.mark.parametrize("seconds", [None, 10.0])
async def test_fewer_are_requested_if_there_is_a_limit_of_time_and_the_server_fails(
    tmp_path: Path, seconds: float | None
) -> None:
    async with client_of(tmp_path, failure(500, "InternalError")) as (_, client):
        found = PageSize(480, 480, 500, 1_000, seconds)
        with pytest.raises(ApiError, match="500"):
            await bounded_page(client, "/things", "", found)
        assert found.limit == (480 if seconds is None else 120)


async def test_the_list_goes_on_where_its_token_has_expired(tmp_path: Path) -> None:
    async with client_of(tmp_path, EXPIRED, SMALL) as (server, client):
        await bounded_page(client, "/things", "old", size())
        assert server.seen[1] == ("GET", "/things?limit=480&continue=another")


async def test_tokens_that_expire_at_once_are_no_loop(tmp_path: Path) -> None:
    async with client_of(tmp_path, EXPIRED) as (server, client):
        with pytest.raises(ApiError, match="410"):
            await bounded_page(client, "/things", "old", size())
        assert len(server.seen) == 2


async def test_only_what_the_server_sends_decides(tmp_path: Path) -> None:
    async def slow(request: web.Request) -> web.Response:
        limit = int(request.query["limit"])
        return web.json_response({"metadata": {}, "items": ["x" * 90] * limit})

    async with client_of(tmp_path, slow) as (_, client):
        found = size()
        body = await bounded_page(client, "/things", "", found)
        assert len(body["items"]) == found.limit == 7
