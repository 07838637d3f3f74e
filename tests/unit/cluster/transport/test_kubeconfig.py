"""Which cluster a kubeconfig leads to, and as whom: as kubectl has it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web
from kubernetes.aio.config import incluster_config

from crdkeeper.cluster.transport.client import Client, NoCredentials, Unreachable
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from tests.certificates import Authority
from tests.unit.cluster.transport.localserver import Handler, failure, json, serving

Json = Any


def config(
    path: Path,
    current: str = "this",
    user: Mapping[str, Json] | None = None,
    cluster: Mapping[str, Json] | None = None,
    **servers: str,
) -> Path:
    """A kubeconfig with a context for each server, all with the same user and details of the cluster."""
    names = servers or {"this": "https://this.example.com"}
    document = {
        "current-context": current,
        "contexts": [{"name": each, "context": {"cluster": each, "user": "u"}} for each in names],
        "clusters": [
            {"name": name, "cluster": {"server": at, **(cluster or {})}} for name, at in names.items()
        ],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else dict(user)}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


class Plugin:
    """An exec plugin that gives a token, or fails, and leaves a line for each run."""

    def __init__(self, directory: Path) -> None:
        self._answer, self._runs = directory / "answer", directory / "runs"
        self.user = {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "sh",
                "args": ["-c", f"echo ran >> {self._runs}; . {self._answer}"],
            }
        }
        self.gives("first")

    def gives(self, token: str) -> None:
        """From now on."""
        version = self.user["exec"]["apiVersion"]
        self.says({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}})

    def says(self, credential: Json) -> None:
        """Whatever it is."""
        self._answer.write_text(f"echo '{orjson.dumps(credential).decode()}'")

    def fails(self) -> None:
        """From now on, with a message in red."""
        self._answer.write_text(r"printf '\033[31mlog in\nagain' >&2; exit 3")

    @property
    def runs(self) -> int:
        """How often it was run."""
        return len(self._runs.read_text().splitlines())


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def accepting(*tokens: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        accepted = request.headers.get("Authorization") in [f"Bearer {each}" for each in tokens]
        return await (json({}) if accepted else failure(401, "Unauthorized"))(request)

    return answer


def use(monkeypatch: pytest.MonkeyPatch, *files: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))


@pytest.mark.parametrize("first", ["", "one"])
async def test_the_first_of_several_files_says_which_cluster(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = config(tmp_path / "1", first, one="https://one.example.com", two="https://first.example.com")
    two = config(tmp_path / "2", "two", two="https://two.example.com")
    three = config(tmp_path / "3", "three", three="https://three.example.com")
    use(monkeypatch, tmp_path / "missing", one, two, three)
    connection = Connection()
    await connection.load()
    # The entry of that name, too, is that of the first file that has one.
    assert connection.host == ("https://one.example.com" if first else "https://first.example.com")
    named = Connection(context="three")
    await named.load()
    assert named.host == "https://three.example.com"


async def test_another_current_context_does_not_move_what_runs(tmp_path: Path) -> None:
    """Neither when credentials are read again, nor for a second client."""
    path = tmp_path / "config"
    async with (
        serving(failure(401, "Unauthorized"), json({})) as ours,
        serving(json({})) as theirs,
        Client(Connection(config(path, "ours", ours=ours.url, theirs=theirs.url))) as client,
    ):
        config(path, "theirs", {"token": "renewed"}, ours=ours.url, theirs=theirs.url)
        await client.request("PATCH", "/x", {})
        async with Client(client.connection) as second:
            await second.request("GET", "/y")
    assert theirs.requests == []
    assert [each.path for each in ours.requests] == ["/x", "/x", "/y"]
    assert [each.headers["Authorization"] for each in ours.requests[1:]] == ["Bearer renewed"] * 2


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"server": "https://elsewhere.example.com"}, "the server of the context 'this'"),
        ({"proxy-url": "http://proxy.example.com"}, "the proxy-url of"),
        ({"certificate-authority-data": "b3RoZXI="}, "the certificate authority of"),
        ({"insecure-skip-tls-verify": True}, "the insecure-skip-tls-verify of"),
        ({"tls-server-name": "elsewhere"}, "the tls-server-name of"),
    ],
)
async def test_nothing_is_sent_where_the_kubeconfig_leads_later(
    cluster: Mapping[str, Json], words: str, tmp_path: Path
) -> None:
    connection = Connection(config(tmp_path / "config"))
    await connection.load()
    config(tmp_path / "config", user={"token": "theirs"}, cluster=cluster)
    with pytest.raises(ConfigurationError, match=words):
        await connection.renew(connection.renewals)
    with pytest.raises(ConfigurationError, match=words):
        await connection.kopf_login()
    await connection.load()
    assert connection.host == "https://this.example.com"
    assert await connection.authorization() == "Bearer t"
    config(tmp_path / "config", user={"token": "renewed"})
    await connection.renew(connection.renewals)
    assert await connection.authorization() == "Bearer renewed"


IMPERSONATION = {
    "as": "jürgen",
    "as-uid": "1",
    "as-groups": ["a", "b c"],
    "as-user-extra": {"A_b~": ["z"], "Acme.com/Pro%ject ü": ["x", "y"]},
}
IMPERSONATED = [
    ("Impersonate-User", "jürgen"),
    ("Impersonate-Uid", "1"),
    ("Impersonate-Group", "a"),
    ("Impersonate-Group", "b c"),
    ("Impersonate-Extra-A_b~", "z"),
    ("Impersonate-Extra-Acme.com%2FPro%25ject%20%C3%BC", "x"),
    ("Impersonate-Extra-Acme.com%2FPro%25ject%20%C3%BC", "y"),
]
"""As kubectl 1.37 sends it."""


async def ask_simply(client: Client) -> None:
    await client.request("GET", "/x")


async def ask_by_lean_client(client: Client) -> None:
    assert client.connection.http1_pool() is not None
    await client.request("PATCH", "/x", {}, lean=True)


async def ask_by_watch(client: Client) -> None:
    async for _ in client.lines("/x"):
        pass


async def ask_by_kopf(client: Client) -> None:
    login = await client.connection.kopf_login()
    async with login.aiohttp_session as session:
        await session.get(f"{login.server}/x", headers={"Accept": "application/json"})


@pytest.mark.parametrize("ask", [ask_simply, ask_by_lean_client, ask_by_watch, ask_by_kopf])
async def test_requests_are_made_in_the_name_of_whom_the_kubeconfig_says(
    ask: Callable[[Client], Awaitable[None]], tmp_path: Path
) -> None:
    async with serving(json({})) as server:
        user = {"token": "t", **IMPERSONATION}
        async with Client(Connection(config(tmp_path / "config", user=user, this=server.url))) as client:
            await ask(client)
            await ask(client)
    assert len(server.requests) == 2
    for each in server.requests:
        assert each.headers["Authorization"] == "Bearer t"
        assert [found for found in each.headers.items() if "Impersonate" in found[0]] == IMPERSONATED


async def test_whose_token_is_another_is_not_impersonated(tmp_path: Path) -> None:
    async with serving(json({})) as server:
        connection = Connection(config(tmp_path / "config", user=IMPERSONATION, this=server.url))
        await connection.load()
        async with connection.session(anonymous=True) as session:
            await session.get(f"{server.url}/x")
    assert [each for each in server.requests[0].headers if "Impersonate" in each] == []


async def test_nobody_else_is_impersonated_later(tmp_path: Path) -> None:
    connection = Connection(config(tmp_path / "config", user={"as": "weak"}))
    await connection.load()
    config(tmp_path / "config", user={"token": "t"})
    with pytest.raises(ConfigurationError, match="the impersonated user of the context 'this'"):
        await connection.renew(connection.renewals)
    assert connection.impersonation == (("Impersonate-User", "weak"),)


async def test_impersonation_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    connection = Connection(config(tmp_path / "config", user={"as": "a\r\nAuthorization: b"}))
    with pytest.raises(ConfigurationError, match="a value of as that cannot be sent"):
        await connection.load()


@pytest.mark.parametrize("ask", [ask_simply, ask_by_watch, ask_by_kopf])
@pytest.mark.parametrize("named", [True, False], ids=["of the kubeconfig", "of the environment"])
async def test_requests_go_by_the_proxy(
    named: bool, ask: Callable[[Client], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(json({})) as proxy:
        cluster = {"proxy-url": proxy.url} if named else {}
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1" if named else proxy.url)
        path = config(tmp_path / "config", cluster=cluster, this="http://api.example.com")
        async with Client(Connection(path)) as client:
            await ask(client)
    assert [each.host for each in proxy.requests] == ["api.example.com"]


async def test_the_environment_exempts_servers_from_its_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    connection = Connection(config(tmp_path / "config", this="https://api.example.com"))
    await connection.load()
    assert connection.http1_pool() is None
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,.example.com")
    connection = Connection(config(tmp_path / "config", this="https://api.example.com"))
    await connection.load()
    assert connection.http1_pool() is not None


async def test_a_pod_goes_by_the_proxy_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As controllers in Go do."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(Authority().pem)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example.com")
    for exempt in ("", "10.0.0.0/8"):
        monkeypatch.setenv("NO_PROXY", exempt)
        connection = Connection()
        await connection.load()
        assert (connection.http1_pool() is None) == (not exempt)


async def test_a_proxy_that_cannot_be_used_is_named_without_its_password(tmp_path: Path) -> None:
    path = config(tmp_path / "config", cluster={"proxy-url": "socks5://me:secret@127.0.0.1:1080"})
    with pytest.raises(ConfigurationError, match=r"'socks5://127\.0\.0\.1:1080'") as raised:
        await Connection(path).load()
    assert "secret" not in str(raised.value)


async def test_nobody_is_told_the_password_of_the_proxy(tmp_path: Path) -> None:
    async with serving(json({})) as proxy:  # which is none, and does not know CONNECT
        cluster = {"proxy-url": proxy.url.replace("http://", "http://me:secret@")}
        path = config(tmp_path / "config", cluster=cluster, this="https://api.example.com")
        async with Client(Connection(path)) as client:
            with pytest.raises(Unreachable, match="the proxy responds with status 404") as raised:
                await client.request("PATCH", "/x", {})
    chain: BaseException | None = raised.value
    while chain is not None:
        assert "secret" not in str(chain)
        chain = chain.__cause__


@pytest.mark.parametrize("written", ["clusters:\n- name: a\n- cluster:\n", "users:\n- user: {}\n", "[]"])
async def test_a_kubeconfig_that_is_just_being_written_is_waited_for(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(accepting("renewed")) as server:
        more = tmp_path / "more"
        use(monkeypatch, config(tmp_path / "config", this=server.url), config(more, other="https://other"))
        async with Client(Connection()) as client:
            more.write_text(written)
            with pytest.raises(NoCredentials, match=r"401, and no new credentials: .* is malformed"):
                await client.request("GET", "/x")
            with pytest.raises(ConfigurationError, match="is malformed"):
                await Connection().load()
            config(more, other="https://other")
            config(tmp_path / "config", user={"token": "renewed"}, this=server.url)
            assert await client.request("GET", "/x") == {}


async def test_without_its_plugin_nobody_is_asked(tmp_path: Path, plugin: Plugin, caplog: Any) -> None:
    """It would be as system:anonymous."""
    plugin.fails()
    connection = Connection(config(tmp_path / "config", user=plugin.user))
    with pytest.raises(ConfigurationError) as raised:
        await connection.load()
    said = str(raised.value)
    assert said.startswith("The exec plugin 'sh' gave no credentials: exec: process returned 3. ")
    assert r"log in\nagain" in said
    assert said.isprintable()
    assert caplog.messages == []
    plugin.gives("first")
    await connection.load()
    assert await connection.authorization() == "Bearer first"


@pytest.mark.parametrize("status", [{}, {"token": ""}, {"clientCertificateData": "x"}, None])
async def test_a_plugin_that_gives_nothing_has_failed(tmp_path: Path, plugin: Plugin, status: Json) -> None:
    plugin.says({**plugin.user["exec"], "kind": "ExecCredential", "status": status})
    with pytest.raises(ConfigurationError, match=r"^The exec plugin 'sh' gave no credentials"):
        await Connection(config(tmp_path / "config", user=plugin.user)).load()


async def test_other_credentials_do_without_the_plugin(tmp_path: Path, plugin: Plugin) -> None:
    plugin.fails()
    connection = Connection(config(tmp_path / "config", user={**plugin.user, "token": "t"}))
    await connection.load()
    assert await connection.authorization() == "Bearer t"


async def test_credentials_that_cannot_be_renewed_are_waited_for(tmp_path: Path, plugin: Plugin) -> None:
    async with (
        serving(accepting("second")) as server,
        Client(Connection(config(tmp_path / "config", user=plugin.user, this=server.url))) as client,
    ):
        plugin.fails()
        for _ in range(2):
            with pytest.raises(NoCredentials, match=r"^GET /x: 401, and no new credentials: The exec plugin"):
                await client.request("GET", "/x?a")
        plugin.gives("second")
        assert await client.request("GET", "/x") == {}
    assert [each.headers.get("Authorization") for each in server.requests] == [
        *["Bearer first"] * 3,
        "Bearer second",
    ]


@pytest.mark.parametrize("renewed", [True, False])
async def test_many_that_are_refused_at_once_renew_once(
    tmp_path: Path, plugin: Plugin, renewed: bool
) -> None:
    connection = Connection(config(tmp_path / "config", user=plugin.user))
    async with serving(accepting("second")) as server:
        config(tmp_path / "config", user=plugin.user, this=server.url)
        async with Client(connection) as client, Client(connection) as other:
            if renewed:
                plugin.gives("second")
            else:
                plugin.fails()
            requests = [each.request("GET", "/x") for each in (client, other) for _ in range(10)]
            answers = await asyncio.gather(*requests, return_exceptions=True)
    assert plugin.runs == 2  # once at the start
    assert {type(each) for each in answers} == {dict if renewed else NoCredentials}
