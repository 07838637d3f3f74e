"""Requests by the tokens of others: never with a certificate or token of ours."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from crdkeeper.cluster.transport.client import Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.cluster.transport.connector import InStepConnector
from crdkeeper.cluster.transport.requestids import AUDIT_ID
from crdkeeper.cluster.transport.tokenclient import TokenSession, TokenSource
from tests.certificates import Authority

AUTHORITY = Authority("root")


class Fixed(TokenSource):
    """Always the same token."""

    def __init__(self, value: str) -> None:
        self.value = value

    async def token(self) -> str:
        return self.value

    async def renew(self, refused: str) -> str:
        raise AssertionError(refused)


@asynccontextmanager
async def composer(directory: Path) -> AsyncIterator[Client]:
    """A client with a certificate, of a server that says how each request is authenticated.

    At /other, it sends an answer that has the id of another request.
    """
    issued = AUTHORITY.issue()
    files = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": AUTHORITY.pem}
    for name, content in files.items():
        (directory / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    context.load_verify_locations(directory / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL

    async def answer(request: web.Request) -> web.Response:
        certificate = request.get_extra_info("peercert")
        token = request.headers.get("Authorization")
        id = request.headers[AUDIT_ID] if request.path != "/other" else "another"
        return web.json_response({"certificate": bool(certificate), "token": token}, headers={AUDIT_ID: id})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    user = {"client-certificate": str(directory / "tls.crt"), "client-key": str(directory / "tls.key")}
    value = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {"name": "c", "cluster": {"server": url, "certificate-authority": str(directory / "ca.crt")}}
        ],
        "users": [{"name": "u", "user": user}],
    }
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    try:
        async with Client(Connection(path)) as client:
            yield client
    finally:
        await runner.cleanup()


async def test_a_token_is_sent_without_our_certificate(tmp_path: Path) -> None:
    async with composer(tmp_path) as own, TokenSession(own) as session:
        assert await own.request("GET", "/a") == {"certificate": True, "token": None}
        one, other = (session.client(Fixed(each)) for each in ("one", "other"))
        for client, token in ((one, "one"), (other, "other"), (one, "one")):
            for method in ("GET", "PATCH"):
                expected = {"certificate": False, "token": f"Bearer {token}"}
                assert await client.request(method, "/a", {}) == expected
        assert (await one.send_lean("PUT", "/a", content=b"{}", content_type="a", accept="b")).code == 200


async def test_their_connections_outlast_our_certificate(tmp_path: Path) -> None:
    """They do not show it, and there may be thousands of accounts."""
    async with composer(tmp_path) as own, TokenSession(own) as session:
        await own.connection.renew(own.connection.renewals)
        for token in ("one", "other"):
            await session.client(Fixed(token)).send("GET", "/a")
        connector = session.client(Fixed("third"))._open.connector
        assert isinstance(connector, InStepConnector)
        assert list(connector._used.values()) == [2]


async def test_writes_end_with_our_own(tmp_path: Path) -> None:
    async with composer(tmp_path) as own, TokenSession(own) as session:
        client = session.client(Fixed("one"))
        own.fence.close("another one leads")
        with pytest.raises(Unreachable, match="another one leads"):
            await client.send("PATCH", "/a", content=b"{}")
        assert (await client.send("GET", "/a")).code == 200


async def test_the_first_answer_to_an_account_may_not_be_that_to_another_request(tmp_path: Path) -> None:
    async with composer(tmp_path) as own, TokenSession(own) as session:
        await own.request("GET", "/a")
        for token in ("one", "other"):
            client = session.client(Fixed(token))
            for _ in range(2):
                with pytest.raises(Unreachable, match="another request"):
                    await client.send("GET", "/other")
            assert (await client.send("GET", "/a")).code == 200
