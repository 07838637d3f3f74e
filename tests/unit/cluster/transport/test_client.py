"""How the client handles the answers, failures and silences of a server."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.config import incluster_config

from crdkeeper.cluster.transport import client as client_module
from crdkeeper.cluster.transport import connector
from crdkeeper.cluster.transport.client import (
    MERGE_PATCH,
    Answer,
    ApiError,
    Client,
    NoCredentials,
    Unreachable,
)
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from crdkeeper.cluster.transport.connector import InStepConnector
from tests.certificates import Authority
from tests.unit.cluster.transport.localserver import client_of, failure, hang_up, json, kubeconfig, page

THROTTLED = failure(429, "TooManyRequests", "storage is (re)initializing", {"Retry-After": "1"})
BUSY = failure(429, "TooManyRequests", "Too many requests")
LEADERLESS = failure(500, "", "etcdserver: leader changed")


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client waits between attempts, without really waiting."""
    taken: list[float] = []
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def nap(seconds: float) -> None:
        taken.append(seconds)
        await sleep(0)

    class Asyncio:
        def __getattr__(self, name: str) -> Any:
            return nap if name == "sleep" else getattr(asyncio, name)

    monkeypatch.setattr(client_module, "asyncio", Asyncio())
    return taken


LEAN = pytest.mark.parametrize("lean", [False, True], ids=["", "lean"])


@LEAN
async def test_a_request_says_who_sends_what(tmp_path: Path, lean: bool) -> None:
    async with client_of(tmp_path, json({"answer": 42})) as (server, client):
        answer = await client.request("PATCH", "/apis/x?y=%2F", {"a": 1}, content_type=MERGE_PATCH, lean=lean)
    assert answer == {"answer": 42}
    (request,) = server.requests
    assert (request.method, request.raw_path) == ("PATCH", "/apis/x?y=%2F")
    assert request.headers["Authorization"] == "Bearer first"
    assert request.headers["Content-Type"] == MERGE_PATCH
    assert request.headers["User-Agent"].startswith("crdkeeper/")
    assert server.bodies == [{"a": 1}]


async def test_a_connection_is_replaced_after_some_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load balancer chooses a server for each connection: lists must not stay with the first one."""
    monkeypatch.setattr(connector, "REQUESTS_PER_CONNECTION", 3)
    async with client_of(tmp_path, json({})) as (server, client):
        for _ in range(7):
            await client.request("GET", "/x")
        assert (len(server.requests), len(server.connections)) == (7, 3)


async def test_no_connection_is_used_again_that_was_being_made_when_all_were_distrusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of(tmp_path, json({})) as (server, client):
        made_by = client._open.connector
        assert isinstance(made_by, InStepConnector)
        connect = made_by._create_connection

        async def slowly(*all_: Any) -> Any:
            made = await connect(*all_)
            if server.requests == []:
                client.distrust()
            return made

        monkeypatch.setattr(made_by, "_create_connection", slowly)
        for _ in range(3):
            await client.request("GET", "/x")
        assert len(server.requests) == 3
        assert len(server.connections) == 2


@LEAN
async def test_throttled_requests_wait_as_told(tmp_path: Path, naps: list[float], lean: bool) -> None:
    async with client_of(tmp_path, THROTTLED, THROTTLED, json({})) as (server, client):
        await client.request("PATCH", "/x", {}, lean=lean)
    assert len(server.requests) == 3
    assert naps == [1.0, 1.0]


@LEAN
@pytest.mark.parametrize("answer", [THROTTLED, LEADERLESS, hang_up])
async def test_once_means_once(tmp_path: Path, naps: list[float], answer: Any, lean: bool) -> None:
    async with client_of(tmp_path, answer) as (server, client):
        with pytest.raises((ApiError, Unreachable)):
            await client.request("PATCH", "/x", {}, once=True, lean=lean)
        assert len(server.requests) == 1
    assert naps == []


async def test_no_message_has_a_continue_token(tmp_path: Path) -> None:
    """It is the last namespace and name of a page, in base64."""
    path = "/apis/example.com/v1/widgets?limit=5&continue=ZGVmYXVsdC9wcmVjaW91cw"
    async with client_of(tmp_path, page("no API server", 200), hang_up) as (_, client):
        for what in (client.request("PATCH", path, {}), client.request("PATCH", path, {})):
            with pytest.raises(Unreachable, match=r"/widgets: ") as found:
                await what
            assert "continue" not in str(found.value)
        with pytest.raises(Unreachable, match=r"/widgets: ") as found:
            async for _ in client.lines(path):
                pass
        assert "continue" not in str(found.value)


async def test_failures_are_tried_again_ever_later(tmp_path: Path, naps: list[float]) -> None:
    async with client_of(tmp_path, BUSY, LEADERLESS, page("<h1>Bad Gateway</h1>", 502), json({})) as (
        server,
        client,
    ):
        await client.request("GET", "/x")
    assert len(server.requests) == 4
    assert naps == pytest.approx([0.2, 0.4, 0.8])


@pytest.mark.parametrize(
    ("answer", "code"), [(THROTTLED, 429), (LEADERLESS, 500), (page("down", 503), 503)], ids=str
)
@pytest.mark.usefixtures("naps")
async def test_in_the_end_the_failure_is_told(tmp_path: Path, answer: Any, code: int) -> None:
    async with client_of(tmp_path, answer) as (server, client):
        with pytest.raises(ApiError) as raised:
            await client.request("GET", "/x")
    assert raised.value.code == code
    assert len(server.requests) == 4


@pytest.mark.parametrize("code", [400, 403, 404, 405, 409, 410, 413, 422])
async def test_what_will_not_change_is_told_at_once(tmp_path: Path, code: int) -> None:
    body = failure(code, "Reason", "It is so.", details={"name": "w1"})
    async with client_of(tmp_path, body) as (server, client):
        with pytest.raises(ApiError) as raised:
            await client.request("GET", "/x")
    error = raised.value
    assert (error.code, error.reason, error.message) == (code, "Reason", "It is so.")
    assert error.body["details"] == {"name": "w1"}
    assert str(error) == f"{code} Reason: It is so."
    assert len(server.requests) == 1


def accepting(token: str) -> Any:
    async def answer(request: web.Request) -> web.Response:
        handler = (
            json({})
            if request.headers["Authorization"] == f"Bearer {token}"
            else failure(401, "Unauthorized", "Unauthorized")
        )
        return await handler(request)

    return answer


@LEAN
async def test_credentials_are_read_anew_once(tmp_path: Path, lean: bool) -> None:
    async with client_of(tmp_path, accepting("second")) as (server, client):
        kubeconfig(tmp_path, server.url, "second")
        assert await client.request("PATCH", "/x", {}, lean=lean) == {}
        assert await client.request("PATCH", "/x", {}, lean=lean) == {}
    assert len(server.requests) == 3


async def test_credentials_that_stay_wrong_are_told(tmp_path: Path) -> None:
    async with client_of(tmp_path, accepting("another")) as (server, client):
        with pytest.raises(ApiError, match="401 Unauthorized"):
            await client.request("GET", "/x")
    assert len(server.requests) == 2


@LEAN
@pytest.mark.parametrize("method", ["PATCH", "POST"])
async def test_a_write_is_not_repeated_when_there_was_no_answer(
    tmp_path: Path, method: str, lean: bool
) -> None:
    async with client_of(tmp_path, hang_up) as (server, client):
        with pytest.raises(Unreachable, match=f"{method} /x"):
            await client.request(method, "/x", {}, lean=lean)
    assert len(server.requests) == 1


@pytest.mark.usefixtures("naps")
async def test_a_read_is_repeated_until_the_server_is_back(tmp_path: Path) -> None:
    async with client_of(tmp_path, hang_up, hang_up, json({"back": True})) as (_, client):
        assert await client.request("GET", "/x") == {"back": True}


@pytest.mark.usefixtures("naps")
async def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # taken, but not listened to
        path = kubeconfig(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}")
        async with Client(Connection(path)) as client:
            with pytest.raises(Unreachable):
                await client.request("GET", "/x")


async def test_without_a_kubeconfig_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="KUBECONFIG"):
        async with Client(Connection(tmp_path / "missing")):
            pass


async def test_the_clock_is_the_servers(tmp_path: Path) -> None:
    date = "Thu, 01 Jan 2099 00:00:00 GMT"
    async with client_of(tmp_path, json({}, Date=date)) as (_, client):
        assert client.now() < datetime(2099, 1, 1, tzinfo=UTC)
        await client.request("GET", "/x")
        assert client.now() >= datetime(2099, 1, 1, tzinfo=UTC)


async def test_it_cannot_be_used_before_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        await Client(Connection(tmp_path / "missing")).send("GET", "/x")


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"404 page not found\n", {"message": "404 page not found"}),
        (b"<h1>" + b"x" * 1000, {"message": "<h1>" + "x" * 508}),
        (b"[1, 2]", {"message": "[1, 2]"}),
        (b"\xff\xfe", {"message": "\ufffd\ufffd"}),
        (b"", {"message": ""}),
    ],
    ids=["an object", "text", "a long page", "no object", "no text", "nothing"],
)
def test_a_body_is_always_an_object(content: bytes, body: dict[str, Any]) -> None:
    assert Answer(200, content).json() == body


@LEAN
async def test_a_token_of_a_pod_that_cannot_be_read_is_waited_for(
    lean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hasty(incluster_config.InClusterConfigLoader):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)  # type: ignore[no-untyped-call]
            self._token_refresh_period = timedelta(-1)

    token, trusted = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("t")
    trusted.write_bytes(Authority().pem)
    monkeypatch.setattr(incluster_config, "InClusterConfigLoader", Hasty)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(trusted))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name, value in {"HOST": "127.0.0.1", "PORT": "1"}.items():
        monkeypatch.setenv(f"KUBERNETES_SERVICE_{name}", value)
    connection = Connection()
    async with Client(connection) as client:
        token.unlink()
        with pytest.raises(NoCredentials, match="The token cannot be read"):
            await client.request("PATCH", "/x", {}, lean=lean)
        token.write_text("")
        with pytest.raises(NoCredentials, match="The token cannot be read"):
            await client.request("PATCH", "/x", {}, lean=lean)
        token.write_text("renewed")
        assert await connection.authorization() == "Bearer renewed"
