"""Client certificates are renewed while a process runs: by exec plugins, or by others who write the files."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
import yaml
from aiohttp import web

from crdkeeper.cluster.transport.client import Client, NoCredentials
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from tests.certificates import Authority, Issued

AUTHORITY = Authority()
FIRST, SECOND = AUTHORITY.issue(), AUTHORITY.issue()


@dataclass(slots=True)
class Server:
    """An API server that accepts one client certificate."""

    port: int = 0
    accepted: Issued = FIRST
    refused: set[int] = field(default_factory=set)
    """The clients' ports whose certificate was not accepted."""

    async def answer(self, request: web.Request) -> web.Response:
        shown = request.get_extra_info("ssl_object").getpeercert(binary_form=True)
        await request.read()
        if shown == ssl.PEM_cert_to_DER_cert(self.accepted.certificate.decode()):
            return web.json_response({})
        self.refused.add(request.get_extra_info("peername")[1])
        return web.json_response({"kind": "Status", "code": 401}, status=401)


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Server]:
    own = AUTHORITY.issue()
    (directory / "own.crt").write_bytes(own.certificate)
    (directory / "own.key").write_bytes(own.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "own.crt", directory / "own.key")
    context.load_verify_locations(cadata=AUTHORITY.pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    server = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def by_files(directory: Path, port: int, issued: Issued) -> Path:
    """A kubeconfig with the files of the certificate, or these renewed."""
    (directory / "client.crt").write_bytes(issued.certificate)
    (directory / "client.key").write_bytes(issued.key)
    return config(directory, port, {"client-certificate": "client.crt", "client-key": "client.key"})


def by_plugin(directory: Path, port: int, issued: Issued) -> Path:
    """A kubeconfig with a plugin that gives the certificate."""
    version = "client.authentication.k8s.io/v1"
    status = {"clientCertificateData": issued.certificate.decode(), "clientKeyData": issued.key.decode()}
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    (directory / "answer").write_bytes(orjson.dumps(credential))
    plugin = {"apiVersion": version, "command": "cat", "args": [str(directory / "answer")]}
    return config(directory, port, {"exec": plugin})


def config(directory: Path, port: int, user: dict[str, object]) -> Path:
    (directory / "ca.crt").write_bytes(AUTHORITY.pem)
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": "ca.crt"}
    path = directory / "config"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("lean", [False, True], ids=["", "lean"])
@pytest.mark.parametrize("write", [by_files, by_plugin])
@pytest.mark.parametrize("by_rsa", [False, True], ids=["", "of another kind"])
async def test_a_renewed_certificate_is_used(
    write: Callable[[Path, int, Issued], Path], lean: bool, by_rsa: bool, tmp_path: Path
) -> None:
    renewed = AUTHORITY.issue(by_rsa=True) if by_rsa else SECOND
    async with serving(tmp_path) as server:
        connection = Connection(write(tmp_path, server.port, FIRST))
        async with Client(connection) as client, Client(connection) as other:

            async def ask() -> None:
                requests = [each.request("PATCH", "/x", {}, lean=lean) for each in [client, other] * 8]
                assert await asyncio.gather(*requests) == [{}] * 16

            await ask()
            server.accepted = renewed
            write(tmp_path, server.port, renewed)
            await ask()
            # A connection that has the former one would be answered 401 for ever.
            server.refused.clear()
            await ask()
            assert server.refused == set()


async def test_kopf_takes_a_renewed_certificate_for_another(tmp_path: Path) -> None:
    """Also in the same files: it would not use again what was refused."""
    async with serving(tmp_path) as server:
        connection = Connection(by_files(tmp_path, server.port, FIRST))
        logins = [await connection.kopf_login(), await connection.kopf_login()]
        server.accepted = SECOND
        by_files(tmp_path, server.port, SECOND)
        logins.append(await connection.kopf_login())
        answer = await logins[-1].aiohttp_session.get(f"{connection.host}/x")
        assert answer.status == 200
        for each in logins:
            await each.aiohttp_session.close()
    assert logins[0] == logins[1] != logins[2]


async def test_a_certificate_without_its_key_is_waited_for(tmp_path: Path) -> None:
    """Its files are not written at the same instant."""
    async with serving(tmp_path) as server:
        connection = Connection(by_files(tmp_path, server.port, FIRST))
        async with Client(connection) as client:
            await client.request("GET", "/x")
            (tmp_path / "client.crt").write_bytes(SECOND.certificate)
            server.accepted = SECOND
            with pytest.raises(NoCredentials, match="KEY_VALUES_MISMATCH"):
                await client.request("GET", "/x")
            server.accepted = FIRST
            client.distrust()
            await client.request("GET", "/x")
            server.accepted = SECOND
            (tmp_path / "client.key").write_bytes(SECOND.key)
            await client.request("GET", "/x")


async def test_at_the_start_it_is_an_error(tmp_path: Path) -> None:
    path = by_files(tmp_path, 1, FIRST)
    (tmp_path / "client.key").write_bytes(SECOND.key)
    with pytest.raises(ConfigurationError, match="KEY_VALUES_MISMATCH"):
        async with Client(Connection(path)):
            pass
