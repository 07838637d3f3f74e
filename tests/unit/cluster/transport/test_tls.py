"""Which API servers the operator trusts: exactly those that kubectl trusts.

Each case covers all three clients: aiohttp's, the lean one and Kopf's.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web
from kubernetes.aio.config import incluster_config

from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.cluster.transport.tls import verifying
from tests.certificates import Authority, Issued

ROOT = Authority("root")
MIDDLE = Authority("middle", above=ROOT)
OTHER = Authority("other")
SAME_NAME = Authority("root")
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@dataclass(frozen=True)
class Case:
    """An API server's certificate, and the kubeconfig's settings for it."""

    served: Issued
    trusted: bytes
    server_name: str | None = None


ACCEPTED = {
    "an authority without key identifiers": Case(ROOT.issue(), ROOT.pem),
    "an intermediate authority alone": Case(MIDDLE.issue(), MIDDLE.pem),
    "one of several authorities": Case(ROOT.issue(), OTHER.pem + ROOT.pem),
    "a server of another name, named": Case(ROOT.issue(["kubernetes"]), ROOT.pem, "kubernetes"),
}
REFUSED = {
    "another authority": Case(ROOT.issue(), OTHER.pem),
    "another authority of the same name": Case(ROOT.issue(), SAME_NAME.pem),
    "an authority above that did not sign": Case(MIDDLE.issue(), OTHER.pem),
    "another address": Case(ROOT.issue(["127.0.0.2"]), ROOT.pem),
    "another name": Case(ROOT.issue(["kubernetes"]), ROOT.pem),
    "another name than the one named": Case(ROOT.issue(), ROOT.pem, "kubernetes"),
    "a common name": Case(ROOT.issue([], common_name="kubernetes"), ROOT.pem, "kubernetes"),
    "one that expired": Case(ROOT.issue(begin=YESTERDAY, lifetime=timedelta(hours=1)), ROOT.pem),
}


async def by_session(connection: Connection) -> None:
    async with connection.session() as session, session.get(f"{connection.host}/version") as answer:
        answer.raise_for_status()


async def by_lean_client(connection: Connection) -> None:
    pool = connection.http1_pool()
    assert pool is not None
    try:
        assert (await pool.send("GET", "/version", "", b"")).code == 200
    finally:
        pool.close()


async def by_kopf(connection: Connection) -> None:
    login = await connection.kopf_login()
    async with (
        login.aiohttp_session as session,
        session.get(f"{connection.host}/version") as answer,
    ):
        answer.raise_for_status()


WAYS = {"session": by_session, "lean": by_lean_client, "kopf": by_kopf}
every_way = pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)


@asynccontextmanager
async def connected(case: Case, directory: Path) -> AsyncIterator[Connection]:
    """A server with the certificate, and the connection that its kubeconfig describes."""
    async with served(case, directory, "127.0.0.1") as port:
        connection = Connection(_kubeconfig(directory, case, port))
        await connection.load()
        yield connection


@asynccontextmanager
async def served(case: Case, directory: Path, host: str) -> AsyncIterator[int]:
    """The port of a server with the certificate."""
    names = directory / "tls.crt", directory / "tls.key"
    for name, content in zip(names, (case.served.certificate, case.served.key), strict=True):
        name.write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*names)
    application = web.Application()
    application.router.add_get("/version", _version)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, host, 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _version(_: web.Request) -> web.Response:
    return web.json_response({})


def _kubeconfig(directory: Path, case: Case, port: int) -> Path:
    (directory / "ca.crt").write_bytes(case.trusted)
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(directory / "ca.crt")}
    if case.server_name is not None:
        cluster["tls-server-name"] = case.server_name
    path = directory / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        ),
        encoding="utf-8",
    )
    return path


@every_way
@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
async def test_accepted(case: Case, ask: Callable[[Connection], Awaitable[None]], tmp_path: Path) -> None:
    async with connected(case, tmp_path) as connection:
        await ask(connection)


@every_way
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
async def test_refused(case: Case, ask: Callable[[Connection], Awaitable[None]], tmp_path: Path) -> None:
    async with connected(case, tmp_path) as connection:
        with pytest.raises((ssl.SSLCertVerificationError, aiohttp.ClientConnectorCertificateError)):
            await ask(connection)


@every_way
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
async def test_a_pod_in_a_cluster_of_ipv6(
    ask: Callable[[Connection], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(ROOT.issue(["::1"]), ROOT.pem)
    token, trusted = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("t")
    trusted.write_bytes(case.trusted)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(trusted))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    async with served(case, tmp_path, "::1") as port:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "::1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(port))
        connection = Connection()
        await connection.load()
        assert connection.host == f"https://[::1]:{port}"
        await ask(connection)


async def test_the_same_credentials_are_equal(tmp_path: Path) -> None:
    """Otherwise Kopf would continue with credentials that were refused, as if they were new."""
    async with connected(ACCEPTED["an authority without key identifiers"], tmp_path) as connection:
        logins = [await connection.kopf_login() for _ in range(2)]
        assert logins[0] == logins[1]
        for each in logins:
            await each.aiohttp_session.close()


def test_messages_about_a_connection_are_the_same_each_time() -> None:
    """aiohttp puts the context's repr into them, and conditions take them over."""
    assert repr(verifying()) == repr(verifying()) == "verified"
