"""A walk over all objects: page by page, resumable, and no failure loses the counts."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from crdkeeper.api.definitionreport import OBJECTS_MOST, CountInProgress
from crdkeeper.api.meta import format_time
from crdkeeper.cluster.probes import census
from crdkeeper.cluster.probes.census import CensusWalk, Pacer, probe_blockers
from crdkeeper.core.diagnosis.probes import ProbeTrouble
from tests.unit.builders import NOW, definition
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json
from tests.virtualtime import run

PATH = "/apis/example.com/v2/widgets?limit=2"
ENTRY = {"manager": "helm", "operation": "Update", "apiVersion": "example.com/v1"}
BUSY = failure(429, "TooManyRequests", "busy", {"Retry-After": "0"})
EXPIRED = failure(410, "Expired", "too old")


def page(*names: str, token: str = "", finalizers: tuple[str, ...] = ()) -> Handler:
    items: list[dict[str, Any]] = [
        {"metadata": {"name": each, "managedFields": [ENTRY], "finalizers": list(finalizers)}}
        for each in names
    ]
    return json({"metadata": {"resourceVersion": "9", "continue": token}, "items": items})


def walk() -> CensusWalk:
    return CensusWalk(definition(), page=2)


async def test_pages_are_counted_one_by_one(tmp_path: Path) -> None:
    async with client_of(tmp_path, page("a", "b", token="t=1"), page("c")) as (server, client):
        counting = walk()
        assert not await counting.step(client)
        before = counting.census(NOW)
        assert await counting.step(client)
        assert await counting.step(client)
    after = counting.census(NOW)
    assert (before.objects, before.complete, after.objects, after.complete) == (2, False, 3, True)
    assert (after.versions, after.resource_version, after.failure) == ({"v1": 3}, "9", None)
    assert [each.path_qs for each in server.requests] == [PATH, f"{PATH}&continue=t%3D1"]


async def test_a_restarted_one_continues_where_it_was(tmp_path: Path) -> None:
    async with client_of(tmp_path, page("a", "b", token="t=1"), page("c")) as (server, client):
        counting = walk()
        assert counting.progress("x") is None
        assert not await counting.step(client)
        kept = counting.progress("x")
        assert kept is not None
        read = CountInProgress.model_validate(orjson.loads(orjson.dumps(kept.model_dump(mode="json"))))
        resumed = CensusWalk(definition(), page=2, before=read)
        assert await resumed.step(client)
    found = resumed.census(NOW)
    assert (found.objects, found.complete, found.versions) == (3, True, {"v1": 3})
    (use,) = found.uses
    assert (use.manager, use.objects, use.examples) == ("helm", 3, ("a", "b", "c"))
    assert server.requests[-1].path_qs == f"{PATH}&continue=t%3D1"
    assert resumed.progress("x") is None


RECORDED = CountInProgress(about="x", continue_token="old", started_at=NOW, objects=40, versions=[], uses=[])
GONE = failure(404, "NotFound", "not served")
AHEAD = failure(500, "InternalError", "required revision is a future revision", {"Retry-After": "0"})


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits for nothing between its attempts."""
    real = asyncio.sleep

    async def sleep(_: float) -> None:
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)


@pytest.mark.parametrize(
    "refusal", [failure(400, "BadRequest", "no token"), failure(422, "Invalid", "no token"), EXPIRED]
)
async def test_a_recorded_token_that_is_refused_begins_again(tmp_path: Path, refusal: Handler) -> None:
    async with client_of(tmp_path, refusal, page("a")) as (server, client):
        resumed = CensusWalk(definition(), page=2, before=RECORDED)
        assert not await resumed.step(client)
        assert await resumed.step(client)
    assert (resumed.census(NOW).objects, resumed.failure) == (1, None)
    assert [each.query.get("continue") for each in server.requests] == ["old", None]


@pytest.mark.usefixtures("at_once")
async def test_a_recorded_token_that_the_server_fails_at_twice_begins_again(tmp_path: Path) -> None:
    async with client_of(tmp_path, AHEAD) as (server, client):
        resumed = CensusWalk(definition(), page=2, before=RECORDED)
        assert await resumed.step(client)
        assert resumed.failure is not None
        assert not await resumed.step(client)
        server.answers[:] = [page("a")]
        assert await resumed.step(client)
    assert resumed.census(NOW).objects == 1
    assert resumed.started is not None
    assert resumed.started > NOW
    tokens = [each.query.get("continue") for each in server.requests]
    assert set(tokens[:-1]) == {"old"}
    assert tokens[-1] is None


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("refusal", [failure(403, "Forbidden", "no"), GONE, BUSY])
async def test_a_failure_that_is_not_about_the_token_keeps_it(tmp_path: Path, refusal: Handler) -> None:
    async with client_of(tmp_path, refusal) as (server, client):
        resumed = CensusWalk(definition(), page=2, before=RECORDED)
        for _ in range(3):
            assert await resumed.step(client)
            assert resumed.failure is not None
        server.answers[:] = [page("a")]
        assert await resumed.step(client)
    assert resumed.census(NOW).objects == 41
    assert {each.query.get("continue") for each in server.requests} == {"old"}


async def test_more_objects_than_a_record_may_have_are_not_kept(tmp_path: Path) -> None:
    """Who forged a record cannot make the report one that the API server refuses."""
    forged = RECORDED.model_copy(update={"objects": OBJECTS_MOST})
    async with client_of(tmp_path, page("a", token="t")) as (_, client):
        resumed = CensusWalk(definition(), page=2, before=forged)
        assert resumed.progress("x") is not None
        await resumed.step(client)
    assert resumed.census(NOW).objects == OBJECTS_MOST + 1
    assert resumed.progress("x") is None


async def test_later_a_request_that_is_refused_is_a_failure(tmp_path: Path) -> None:
    refusal = failure(400, "BadRequest", "no")
    async with client_of(tmp_path, page("a", token="t"), refusal) as (_, client):
        resumed = CensusWalk(definition(), page=2, before=RECORDED)
        assert not await resumed.step(client)
        assert await resumed.step(client)
    assert resumed.failure is not None
    assert resumed.census(NOW).objects == 41


async def test_what_no_api_server_sends_is_not_kept(tmp_path: Path) -> None:
    """An aggregated one may, and the report must remain acceptable."""
    long = {
        "manager": "m" * 129,
        "operation": "Update",
        "apiVersion": "example.com/" + "v" * 64,
        "time": "9" * 70,
    }
    shown = {**ENTRY, "time": "9" * 70}
    item = {"metadata": {"name": "n" * 400, "managedFields": [long, shown]}}
    body = {"metadata": {"continue": "t" * 4096}, "items": [item]}
    async with client_of(tmp_path, json(body)) as (_, client):
        counting = walk()
        await counting.step(client)
    kept = counting.progress("x")
    assert kept is not None
    assert [(each.manager, each.last, each.examples) for each in kept.uses] == [("helm", "", [])]
    assert [each.version for each in kept.versions] == ["v1"]
    CountInProgress.model_validate(kept.model_dump(mode="json"))

    async with client_of(tmp_path, json({**body, "metadata": {"continue": "t" * 4097}})) as (_, client):
        counting = walk()
        await counting.step(client)
    assert counting.progress("x") is None


async def test_a_time_that_a_tenant_made_up_does_not_end_it(tmp_path: Path) -> None:
    forged = {**ENTRY, "time": "0000-01-01T00:00:00Z"}
    answer = json({"metadata": {}, "items": [{"metadata": {"name": "a", "managedFields": [forged]}}]})
    async with client_of(tmp_path, answer) as (_, client):
        counting = walk()
        assert await counting.step(client)
    (use,) = counting.census(NOW).uses
    assert use.last is not None
    assert format_time(use.last) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (failure(403, "Forbidden", "no"), ProbeTrouble.FORBIDDEN),
        (failure(404, "NotFound", "no such version"), ProbeTrouble.NOT_FOUND),
        (BUSY, ProbeTrouble.BUSY),
        (failure(500, "InternalError", "no webhook", {"Retry-After": "0"}), ProbeTrouble.FAILED),
    ],
)
async def test_after_a_failure_it_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Handler, trouble: ProbeTrouble
) -> None:
    real = asyncio.sleep

    async def at_once(_: float) -> None:
        await real(0)

    async with client_of(tmp_path, page("a", "b", token="t"), answer) as (server, client):
        counting = walk()
        assert not await counting.step(client)
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "sleep", at_once)
            assert await counting.step(client)
        found = counting.census(NOW)
        assert found.failure is not None
        assert (found.failure.trouble, found.complete, found.objects) == (trouble, False, 2)
        server.answers[:] = [page("c")]
        assert await counting.step(client)
    found = counting.census(NOW)
    assert (found.failure, found.complete, found.objects) == (None, True, 3)
    assert server.requests[-1].path_qs == f"{PATH}&continue=t"


async def test_silence_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "PAGE_SECONDS", 0.1)
    end = asyncio.Event()

    async def later(_: web.Request) -> web.Response:
        await end.wait()
        return web.Response()

    async with client_of(tmp_path, later) as (_, client):
        counting = walk()
        assert await counting.step(client)
        end.set()
    assert counting.failure is not None
    assert (counting.failure.trouble, counting.failure.message) == (
        ProbeTrouble.SILENT,
        "no response within 0.1 seconds",
    )


async def test_an_expired_list_goes_on_where_the_server_offers(tmp_path: Path) -> None:
    offer = failure(410, "Expired", "too old", metadata={"continue": "new"})
    async with client_of(tmp_path, page("a", token="t"), offer, page("b")) as (_, client):
        counting = walk()
        assert not await counting.step(client)
        assert await counting.step(client)
    assert counting.census(NOW).objects == 2


async def test_an_expired_list_begins_anew(tmp_path: Path) -> None:
    answers = [page("a", token="t"), EXPIRED, page("a", "b", token="u"), page("c")]
    async with client_of(tmp_path, *answers) as (server, client):
        counting = walk()
        while not await counting.step(client):
            pass
    # No object counts twice.
    assert (counting.census(NOW).objects, counting.complete) == (3, True)
    assert server.requests[2].path_qs == PATH


async def test_a_list_that_keeps_expiring_is_given_up(tmp_path: Path) -> None:
    async with client_of(tmp_path, EXPIRED) as (server, client):
        counting = walk()
        while not await counting.step(client):
            pass
    assert counting.failure is not None
    assert counting.failure.trouble is ProbeTrouble.EXPIRED
    assert len(server.requests) == 4


async def test_no_version_is_served(tmp_path: Path) -> None:
    async with client_of(tmp_path, page("a")) as (server, client):
        counting = CensusWalk(definition(served=()))
        assert await counting.step(client)
    assert counting.failure is not None
    assert counting.failure.trouble is ProbeTrouble.NOT_FOUND
    assert server.requests == []


async def test_blockers_are_looked_for_in_a_bounded_number_of_pages(tmp_path: Path) -> None:
    endless = page("a", "b", token="t", finalizers=("x/y",))
    async with client_of(tmp_path, endless) as (server, client):
        found = await probe_blockers(client, definition(), pages=3)
    assert (found.objects, found.complete, len(server.requests)) == (6, False, 3)
    assert found.finalizers[0].objects == 6


async def test_blockers_that_may_not_be_seen(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(403, "Forbidden", "no")) as (_, client):
        found = await probe_blockers(client, definition())
    assert found.failure is not None
    assert (found.failure.trouble, found.objects) == (ProbeTrouble.FORBIDDEN, 0)


def test_walks_share_the_pace() -> None:
    async def turns() -> list[float]:
        pacer, loop = Pacer(pages_per_second=2.0), asyncio.get_running_loop()
        times: list[float] = []

        async def walking() -> None:
            for _ in range(2):
                await pacer.turn()
                times.append(loop.time())

        begin = loop.time()
        await asyncio.gather(walking(), walking())
        await asyncio.sleep(10)
        await pacer.turn()
        times.append(loop.time())
        return [each - begin for each in times]

    assert run(turns()) == [0.0, 0.5, 1.0, 1.5, 11.5]
