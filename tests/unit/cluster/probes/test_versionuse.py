"""Writers in a list that takes long, and requests that several API servers have counted."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from crdkeeper.api.texts import LINE_BYTES
from crdkeeper.cluster.probes.census import Pacer, Walk
from crdkeeper.cluster.probes.versionuse import CountedRequests, count_writers, read_requests
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.diagnosis.probes import ProbeTrouble
from crdkeeper.core.retirement.writers import WriterTally
from tests import virtualtime
from tests.unit.builders import definition
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json

NOT_FOUND = failure(404, "NotFound", "no such path")
FORBIDDEN = failure(403, "Forbidden", "you may not")
COUNTED = 'apiserver_request_total{group="example.com",resource="widgets",verb="LIST",version="v1"} %d\n'

BEGAN = datetime(2026, 11, 23, 12, tzinfo=UTC)


def listed(after: timedelta, name: str, more: str = "") -> Handler:
    """A page with one object, which was written just before it was listed."""
    now = BEGAN + after
    entry = {"manager": name, "operation": "Apply", "apiVersion": "example.com/v1"}
    found = {"name": name, "managedFields": [entry | {"time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}]}
    body = {"metadata": {"continue": more}, "items": [{"metadata": found}]}
    return json(body, Date=format_datetime(now, usegmt=True))


async def test_a_write_while_objects_are_counted_counts(tmp_path: Path) -> None:
    """The API server forgets a list, and goes on with the objects as they are by then."""
    late = timedelta(minutes=8)
    expired = failure(410, "Expired", "too old", metadata={"continue": "as it is now"})
    pages = listed(timedelta(0), "early", "first"), expired, listed(late, "late")
    async with client_of(tmp_path, json({}, Date=format_datetime(BEGAN, usegmt=True)), *pages) as (_, client):
        await client.request("GET", "/version")
        walk = await count_writers(client, definition(), "v1", Pacer())
    assert (walk.complete, walk.tally.counted) == (True, 2)
    assert walk.tally.newest == BEGAN + late
    assert [(each.manager, each.ahead) for each in walk.tally.writers()] == [("late", ""), ("early", "")]


class Pages:
    """A list of two pages, of which the second one fails at first; the time is virtual."""

    hung_lists: Mapping[str, tuple[str, float]] = {}

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked = 0

    def now(self) -> datetime:
        return BEGAN

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.asked += 1
        second = "continue=" in path
        if second and self.failures:
            raise self.failures.pop(0)
        metadata = {} if second else {"continue": "second"}
        return {"metadata": metadata, "items": [{"metadata": {"name": "a"}}]}


BROKEN = ApiError(500, {"message": "etcdserver: request timed out"})


def walked(pages: Pages) -> Walk[WriterTally]:
    return virtualtime.run(count_writers(cast(Client, pages), definition(), "v1", Pacer()))


@pytest.mark.parametrize("error", [BROKEN, Unreachable("connection refused")], ids=["500", "silent"])
def test_a_page_that_fails_for_a_moment_loses_no_count(error: Exception) -> None:
    walk = walked(Pages(*[error] * 4))
    assert (walk.complete, walk.tally.counted) == (True, 2)


def test_what_lasts_or_is_forbidden_ends_the_count() -> None:
    lasting = Pages(*[BROKEN] * 1000)
    walk = walked(lasting)
    assert (walk.complete, walk.tally.counted) == (False, 1)
    assert lasting.asked < 12
    refused = Pages(ApiError(403, {"message": "forbidden"}))
    assert not walked(refused).complete
    assert refused.asked == 2


def counts(number: int, started: int = 1_700_000_000) -> str:
    return COUNTED % number + f"process_start_time_seconds {started}\n"


async def ask(
    tmp_path: Path, servers: int | None, *behind: tuple[str, str | Handler]
) -> tuple[CountedRequests, int]:
    """What is read of the API servers behind a balancer, and how many connections that took.

    By address and metrics; connections lead to them in turn.
    """
    turn, connections, now = cycle(behind), 0, behind[0]

    async def answer(request: web.Request) -> web.Response:
        nonlocal connections, now
        if request.path == "/api":
            # The first request on each connection.
            connections, now = connections + 1, next(turn)
            if not now[0]:
                return await NOT_FOUND(request)
            return web.json_response({"serverAddressByClientCIDRs": [{"serverAddress": now[0]}]})
        assert request.path == "/metrics"
        return web.Response(text=now[1]) if isinstance(now[1], str) else await now[1](request)

    facts = definition(group="example.com", plural="widgets")
    async with client_of(tmp_path, answer) as (_, client):
        return await read_requests(client, facts, "v1", servers), connections


def numbers(found: CountedRequests) -> dict[str, int]:
    return {each.server: sum(each.counts.values()) for each in found.readers}


async def test_each_of_several_is_read_once(tmp_path: Path) -> None:
    other = ("b:1", counts(9, started=1_700_000_005))
    found, connections = await ask(tmp_path, 2, ("a:1", counts(7)), ("a:1", counts(8)), other)
    assert (numbers(found), found.failure, connections) == ({"a:1": 7, "b:1": 9}, None, 3)


async def test_those_of_one_address_are_told_apart_by_their_start(tmp_path: Path) -> None:
    servers = ("", counts(7)), ("", counts(9, started=1_700_000_005))
    found, connections = await ask(tmp_path, 2, *servers)
    assert [sum(each.counts.values()) for each in found.readers] == [7, 9]
    assert connections == 2


async def test_one_that_says_its_address_the_second_time_is_one(tmp_path: Path) -> None:
    other = ("b:1", counts(9, started=1_700_000_005))
    for first in (("", counts(7)), ("a:1", counts(7))), (("a:1", counts(7)), ("", counts(7))):
        found, connections = await ask(tmp_path, 2, *first, other)
        assert (numbers(found), connections) == ({"a:1": 7, "b:1": 9}, 3)


async def test_the_metrics_of_one_at_two_addresses_are_of_one(tmp_path: Path) -> None:
    # A balancer that chooses for each request shows one's address with the other's metrics.
    other = counts(9, started=1_700_000_005)
    behind = ("a:1", counts(7)), ("b:1", counts(7)), ("a:1", counts(7)), ("a:1", other)
    found, connections = await ask(tmp_path, 2, *behind)
    assert (found.answered, connections) == (2, 4)
    assert {sum(each.counts.values()) for each in found.readers} == {7, 9}


async def test_what_two_say_that_started_at_once_is_kept_but_not_taken_for_two(tmp_path: Path) -> None:
    found, connections = await ask(tmp_path, 2, ("a:1", counts(7)), ("b:1", counts(9)))
    assert (numbers(found), found.answered, connections) == ({"a:1": 7, "b:1": 9}, 1, 8)


async def test_those_that_started_in_the_same_second_are_several(tmp_path: Path) -> None:
    other = counts(9).replace("1700000000", "1.70000000025e+09")
    found, connections = await ask(tmp_path, 2, ("a:1", counts(7)), ("b:1", other))
    assert (numbers(found), connections) == ({"a:1": 7, "b:1": 9}, 2)


async def test_nobody_is_asked_without_end(tmp_path: Path) -> None:
    for servers, most in ((1, 1), (2, 8), (None, 4), (1000, 16)):
        found, connections = await ask(tmp_path, servers, ("a:1", counts(7)))
        assert (numbers(found), connections) == ({"a:1": 7}, most)


async def test_one_that_fails_leaves_what_others_said(tmp_path: Path) -> None:
    found, connections = await ask(tmp_path, 3, ("a:1", counts(7)), ("b:1", FORBIDDEN))
    assert (numbers(found), connections) == ({"a:1": 7}, 2)
    assert found.failure is not None
    assert found.failure.trouble is ProbeTrouble.FORBIDDEN


async def test_an_address_is_bounded(tmp_path: Path) -> None:
    found, _ = await ask(tmp_path, 1, ("x" * 100_000, counts(7)))
    assert len(found.readers[0].server.encode()) <= LINE_BYTES
