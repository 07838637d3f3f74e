"""Requests of the diagnosis: every failure is a fact, and none exceeds its time."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.probes import looking
from crdkeeper.cluster.probes.conversions import probe_conversion
from crdkeeper.cluster.probes.looking import FirstObject, first_object, look
from crdkeeper.cluster.probes.subresources import probe_scale
from crdkeeper.cluster.transport.client import METADATA_ONLY, METADATA_ONLY_LIST, Answer
from crdkeeper.core.diagnosis.conversionfacts import Read, VersionRead, WebhookFacts
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from tests.unit.builders import definition
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, hang_up, json, page, silent

V1, V2 = "/apis/example.com/v1", "/apis/example.com/v2"
OBJECT = "namespaces/ns/widgets/w1"
# Nothing listens on this port, so it refuses at once.
WEBHOOK = WebhookFacts("https://127.0.0.1:1/convert", "", "", 443, b"")
ONE = json({"metadata": {}, "items": [{"metadata": {"name": "w1", "namespace": "ns"}}]})
NONE = json({"metadata": {}, "items": []})
FOUND = json({"metadata": {"name": "w1"}})
BUSY = failure(429, "TooManyRequests", "storage is (re)initializing", {"Retry-After": "0"})


@pytest.mark.parametrize(
    ("answer", "trouble", "message"),
    [
        (failure(401, "Unauthorized", "who are you"), ProbeTrouble.FORBIDDEN, "who are you"),
        (failure(403, "Forbidden", "you may not"), ProbeTrouble.FORBIDDEN, "you may not"),
        (failure(404, "NotFound", "not found"), ProbeTrouble.NOT_FOUND, "not found"),
        (failure(410, "Expired", "too old"), ProbeTrouble.EXPIRED, "too old"),
        (failure(500, "InternalError", "webhook failed"), ProbeTrouble.FAILED, "webhook failed"),
        (failure(504, "Timeout", "timed out"), ProbeTrouble.BUSY, "timed out"),
        (failure(500, "InternalError", "x" * 9999), ProbeTrouble.FAILED, "x" * 1021 + "…"),
        (page("<html>Bad gateway</html>", 502), ProbeTrouble.FAILED, "<html>Bad gateway</html>"),
    ],
)
async def test_refusals(tmp_path: Path, answer: Handler, trouble: ProbeTrouble, message: str) -> None:
    async with client_of(tmp_path, answer) as (server, client):
        found = await look(client, "/x")
    assert isinstance(found, Failure)
    assert (found.trouble, found.message) == (trouble, message)
    assert len(server.requests) == 1


async def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    unavailable = failure(503, "ServiceUnavailable", "wait", {"Retry-After": "0"})
    async with client_of(tmp_path, BUSY, unavailable, FOUND) as (server, client):
        assert isinstance(await look(client, "/x"), Answer)
    assert len(server.requests) == 3


async def test_a_server_that_stays_busy_is_left_alone(tmp_path: Path) -> None:
    async with client_of(tmp_path, BUSY) as (server, client):
        found = await look(client, "/x", seconds=0.2)
    assert found == Failure(ProbeTrouble.BUSY, 429, "storage is (re)initializing")
    assert len(server.requests) == 1


async def test_silence_has_an_end(tmp_path: Path) -> None:
    end = asyncio.Event()
    async with client_of(tmp_path, silent(end)) as (_, client):
        found = await look(client, "/x", seconds=0.1)
        end.set()
    assert found == Failure(ProbeTrouble.SILENT, 0, "no response within 0.1 seconds", late=True)


async def test_a_lost_connection_is_silence(tmp_path: Path) -> None:
    async with client_of(tmp_path, hang_up) as (_, client):
        found = await look(client, "/x")
    assert isinstance(found, Failure)
    assert (found.trouble, found.late) == (ProbeTrouble.SILENT, False)


async def test_the_first_object_is_looked_for_at_the_storage_version(tmp_path: Path) -> None:
    async with client_of(tmp_path, ONE) as (server, client):
        assert await first_object(client, definition()) == FirstObject("ns", "w1")
    assert server.seen == [("GET", f"{V2}/widgets?limit=1")]
    assert server.requests[0].headers["Accept"] == METADATA_ONLY_LIST


async def test_another_version_is_tried_where_one_cannot_be_listed(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(500, "", "no webhook"), ONE) as (server, client):
        assert await first_object(client, definition()) == FirstObject("ns", "w1")
    assert [path for _, path in server.seen] == [f"{V2}/widgets?limit=1", f"{V1}/widgets?limit=1"]


@pytest.mark.parametrize(
    ("answers", "trouble", "requests"),
    [
        ([failure(500, "", "no webhook"), failure(404, "", "gone")], ProbeTrouble.FAILED, 2),
        ([failure(403, "", "no"), ONE], ProbeTrouble.FORBIDDEN, 1),
    ],
)
async def test_no_object_can_be_found(
    tmp_path: Path, answers: list[Handler], trouble: ProbeTrouble, requests: int
) -> None:
    async with client_of(tmp_path, *answers) as (server, client):
        found = await first_object(client, definition())
    assert isinstance(found, Failure)
    assert found.trouble is trouble
    assert len(server.requests) == requests


async def test_what_hung_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "SECONDS", 1.0)
    end = asyncio.Event()
    answers = (silent(end), silent(end), BUSY, BUSY, ONE)
    async with client_of(tmp_path, *answers) as (server, client):
        for _ in range(2):
            found = await first_object(client, definition())
            assert isinstance(found, Failure)
            assert (found.trouble, found.message) == (ProbeTrouble.SILENT, "no response within 1 seconds")
        lists = [f"{V2}/widgets?limit=1", f"{V1}/widgets?limit=1"]
        looks = [f"{each}/widgets?limit=1&fieldSelector=metadata.name%21%3D." for each in (V2, V1)]
        assert [path for _, path in server.seen] == [*lists, *looks]
        monkeypatch.undo()
        assert await first_object(client, definition()) == FirstObject("ns", "w1")
        end.set()


@pytest.mark.parametrize(("served", "asked"), [(("v1", "v2"), [V2]), (("v1",), [V1])])
async def test_a_version_to_avoid_is_listed_only_if_there_is_no_other(
    tmp_path: Path, served: tuple[str, ...], asked: list[str]
) -> None:
    async with client_of(tmp_path, failure(500, "", "no webhook")) as (server, client):
        assert isinstance(await first_object(client, definition(served=served), {"v1"}), Failure)
    assert [path for _, path in server.seen] == [f"{each}/widgets?limit=1" for each in asked]


async def test_a_server_that_is_gone_does_not_hang(tmp_path: Path) -> None:
    async with client_of(tmp_path, *[hang_up] * 4, ONE) as (_, client):
        assert isinstance(await first_object(client, definition()), Failure)
        assert await first_object(client, definition()) == FirstObject("ns", "w1")


async def test_no_version_is_served(tmp_path: Path) -> None:
    async with client_of(tmp_path, ONE) as (server, client):
        found = await first_object(client, definition(served=()))
    assert found == Failure(ProbeTrouble.NOT_FOUND, 404, "no version of widgets.example.com is served")
    assert server.requests == []


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (("v2",), [VersionRead("v1", Read.CONVERTED), VersionRead("v2", Read.STORED)]),
        (("v1", "v2"), [VersionRead("v1", Read.UNCERTAIN), VersionRead("v2", Read.UNCERTAIN)]),
    ],
)
async def test_an_object_is_read_at_each_version(
    tmp_path: Path, stored: tuple[str, ...], expected: list[VersionRead]
) -> None:
    async with client_of(tmp_path, ONE, FOUND) as (server, client):
        found = await probe_conversion(client, definition(stored=stored), WEBHOOK)
    assert (list(found.reads), found.example, found.failure) == (expected, "ns/w1", None)
    # By GET and without a resourceVersion: a LIST is answered from the API server's cache.
    assert sorted(path for _, path in server.seen[1:]) == [f"{V1}/{OBJECT}", f"{V2}/{OBJECT}"]
    assert {each.headers["Accept"] for each in server.requests[1:]} == {METADATA_ONLY}


async def test_no_object_and_no_right(tmp_path: Path) -> None:
    async with client_of(tmp_path, NONE) as (_, client):
        found = await probe_conversion(client, definition(), WEBHOOK)
    assert (found.reads, found.failure) == ((), None)
    async with client_of(tmp_path, failure(403, "", "no")) as (_, client):
        found = await probe_conversion(client, definition(), WEBHOOK)
    assert (found.reads, found.failure) == ((), Failure(ProbeTrouble.FORBIDDEN, 403, "no"))
    assert found.serving is not None
    assert (found.serving.certificate, found.serving.error) == (None, "connection refused")


async def test_an_object_that_goes_meanwhile_proves_nothing(tmp_path: Path) -> None:
    async with client_of(tmp_path, ONE, failure(404, "NotFound", "gone")) as (_, client):
        found = await probe_conversion(client, definition(), WEBHOOK)
    assert found.reads == ()


async def test_scale_is_read_at_each_version_that_has_it(tmp_path: Path) -> None:
    refused = failure(500, "InternalError", "the spec replicas field does not exist")
    async with client_of(tmp_path, ONE, FOUND, refused) as (server, client):
        found = await probe_scale(client, definition(), DeclaredSubresources(scaled=("v1", "v2")))
    assert [path for _, path in server.seen[1:]] == [f"{V1}/{OBJECT}/scale", f"{V2}/{OBJECT}/scale"]
    assert [(each.version, each.example, each.failure is None) for each in found.reads] == [
        ("v1", "ns/w1", True),
        ("v2", "ns/w1", False),
    ]


async def test_scale_is_not_read_at_a_deprecated_version(tmp_path: Path) -> None:
    """The API server would count it, and a retirement take it for a client's."""
    declared = DeclaredSubresources(scaled=("v1", "v2"), deprecated=("v1",))
    async with client_of(tmp_path, ONE, FOUND) as (server, client):
        found = await probe_scale(client, definition(), declared)
    assert [path for _, path in server.seen[1:]] == [f"{V2}/{OBJECT}/scale"]
    assert [each.version for each in found.reads] == ["v2"]


@pytest.mark.parametrize(
    ("answers", "failed"),
    [([NONE], False), ([failure(403, "", "no")], True), ([ONE, failure(404, "", "gone")], False)],
)
async def test_no_scale_to_read(tmp_path: Path, answers: list[Any], failed: bool) -> None:
    async with client_of(tmp_path, *answers) as (_, client):
        found = await probe_scale(client, definition(), DeclaredSubresources(scaled=("v1",)))
    assert (found.reads, found.failure is not None) == ((), failed)
