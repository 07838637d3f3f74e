"""Watches: one event per line, resumed where the stream ended, with an error if that is not possible."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from aiohttp import web

from crdkeeper.cluster.transport import watches
from crdkeeper.cluster.transport.client import ApiError, Client, NoCredentials, Unreachable
from crdkeeper.cluster.transport.watches import REFUSED_SECONDS, follow, watch
from tests import virtualtime
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, hang_up, page

PATH = "/apis/crdkeeper.dev/v1alpha1/definitionreports"


def event(type_: str, version: int, name: str = "a") -> dict[str, Any]:
    return {"type": type_, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}


def stream(*events: dict[str, Any], broken: bool = False) -> Handler:
    """Sends the events in pieces that do not end at line breaks, then ends."""

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
    """Follows until it ends with an error."""
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


async def test_an_object_of_any_depth_holds_up_no_other(tmp_path: Path) -> None:
    text = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"6"},"x":' + b'{"x":' * 3000 + b"1"
    text += b"}" * 3000 + b"}}"

    async def deep(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(text + b"\n" + orjson.dumps(event("ADDED", 7)) + b"\n")
        return response

    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    seen: list[tuple[str, str]] = []
    async with client_of(tmp_path, deep, stream(expired)) as (_, client):  # type: ignore[arg-type]
        with pytest.raises(ApiError):
            await events_of(client, seen)
    assert seen == [("ADDED", "6"), ("ADDED", "7")]


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
        stream({"type": "ADDED"}),
        stream({"type": "ADDED", "object": {"metadata": None}}),
        page("<html>", 200),
    ],
    ids=[
        "no answer",
        "503",
        "429",
        "an error in the stream",
        "an empty stream",
        "no object",
        "no metadata",
        "a proxy's page",
    ],
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
    """A server that ends each watch at once does not get thousands of requests."""

    class Broken:
        asked = 0

        async def lines(self, _: str, **__: Any) -> AsyncIterator[bytes]:
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


class Course:
    """The API server's answers, one after the other; then silence."""

    def __init__(self, *says: Exception | list[dict[str, Any]] | str) -> None:
        """For a list its resourceVersion or its error, for a watch its events or its refusal."""
        self.says = list(says)
        self.asked: list[tuple[float, str]] = []
        """When there was a list, and when a watch from which version."""
        self.saw: list[str] = []
        self.heard: list[str] = []

    def _next(self) -> Exception | list[dict[str, Any]] | str | None:
        return (
            self.says.pop(0)
            if len(self.says) > 1 or not isinstance(self.says[0], Exception)
            else self.says[0]
        )

    async def load(self) -> str:
        self.asked.append((virtualtime.now(), "list"))
        said = self._next()
        if isinstance(said, Exception):
            raise said
        assert isinstance(said, str)
        return said

    async def lines(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        self.asked.append((virtualtime.now(), path.rpartition("=")[2]))
        said = self._next() if self.says else None
        if isinstance(said, Exception):
            raise said
        for each in said or ():
            yield orjson.dumps(each)
        if said is None:
            await asyncio.sleep(10_000.0)

    async def take(self, type_: str, found: dict[str, Any]) -> None:
        self.saw.append(f"{type_} {found['metadata']['resourceVersion']}")

    def play(self, seconds: float = 5000.0) -> None:
        async def main() -> None:
            async with asyncio.timeout(seconds):
                await follow(cast(Client, self), PATH, self.load, self.take, heard=self.heard.append)

        virtualtime.run(main())

    def played(self, seconds: float = 5000.0) -> None:
        """Like `play`, and it would have continued."""
        with pytest.raises(TimeoutError):
            self.play(seconds)


def refusal(code: int) -> ApiError:
    return ApiError(code, {"message": "no"})


def expired() -> dict[str, Any]:
    return {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


def test_a_version_that_is_too_old_is_answered_by_a_list_at_once() -> None:
    course = Course("5", [event("ADDED", 6), expired()], "9", [event("DELETED", 10), expired()], "12")
    course.played()
    assert course.saw == ["ADDED 6", "DELETED 10"]
    assert course.asked == [(0.0, each) for each in ("list", "5", "list", "9", "list", "12")]


def test_versions_that_are_always_too_old_are_listed_again_more_and_more_rarely() -> None:
    course = Course(*[said for _ in range(100) for said in ("5", [expired()])])
    course.played(600.0)
    assert len(course.asked) < 60


@pytest.mark.parametrize("error", [refusal(403), refusal(404), Unreachable("away"), refusal(401)])
def test_a_refusal_is_waited_out_and_all_is_listed_again(error: Exception) -> None:
    course = Course("5", [event("ADDED", 6)], error, error, "9", [event("ADDED", 10)])
    if isinstance(error, Unreachable):
        course.says.insert(2, refusal(403))  # only a watch waits for the server
    course.played()
    assert course.saw == ["ADDED 6", "ADDED 10"]
    assert any("no" in each or "away" in each for each in course.heard)
    assert course.heard[-1] == ""


@pytest.mark.parametrize("error", [refusal(401), NoCredentials("no token")])
def test_credentials_that_are_refused_for_long_end_it(error: Exception) -> None:
    course = Course("5", refusal(401), error)
    with pytest.raises(type(error)) as raised:
        course.play()
    assert raised.value is error
    last = course.asked[-1][0]
    assert REFUSED_SECONDS <= last < REFUSED_SECONDS + 60.0


@pytest.mark.parametrize("in_between", [refusal(403), "5"])
def test_credentials_that_are_accepted_once_in_a_while_do_not_end_it(in_between: Exception | str) -> None:
    says: list[Any] = [refusal(401)] * 15
    course = Course(*[*says, in_between] * 10)
    course.played(1500.0)


def test_what_is_no_answer_of_the_api_server_ends_it() -> None:
    with pytest.raises(KeyError):
        Course("5", [event("ADDED", 6)], KeyError("items")).play()
