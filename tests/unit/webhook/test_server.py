"""The webhook's certificate and its end, as seen by clients. No rules are needed for that."""

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.supervision import TaskEnded
from crdkeeper.webhook import server
from crdkeeper.webhook.changes.clusterpolicies import ClusterPolicies, PolicySource
from crdkeeper.webhook.http.types import HttpLimits
from crdkeeper.webhook.routes import affordable
from crdkeeper.webhook.rules.rulebook import RuleBook
from crdkeeper.webhook.server import WebhookOptions, WebhookProcess
from tests.certificates import Authority
from tests.cluster.harness import eventually
from tests.controlplane.ports import Ports
from tests.unit.cluster.transport.localserver import kubeconfig

AUTHORITY = Authority()
REQUEST = b"POST /convert/unknown.example.com HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"


class Files(RuleBook):
    """A rule source without files that ends when a test says so, and that may lag."""

    def __init__(self) -> None:
        super().__init__(())
        self.end = asyncio.Event()
        self.behind = (0.0, "")

    async def run(self, loaded: Callable[[], None]) -> None:
        loaded()
        await self.end.wait()
        raise ConfigurationError("no token")

    def unseen(self) -> tuple[float, str]:
        return self.behind


class Served:
    """A running webhook, and its files."""

    def __init__(self, options: WebhookOptions, policies: PolicySource | None = None) -> None:
        self.options = options
        self.stop = asyncio.Event()
        self.rules = Files()
        issued = AUTHORITY.issue()
        self.replace(issued.certificate, issued.key)
        self.trusts = verifying(ca_data=AUTHORITY.pem.decode())
        self.webhook = WebhookProcess(options, self.rules, policies)
        self.running = asyncio.create_task(self.webhook.run(self.stop))

    def replace(self, certificate: bytes, key: bytes) -> None:
        self.options.certificate.write_bytes(certificate)
        self.options.key.write_bytes(key)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.options.port, ssl=self.trusts)

    async def certificate(self) -> bytes:
        """The certificate presented to a new connection. Raises OSError."""
        _, writer = await self.connect()
        try:
            shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            return shown
        finally:
            writer.transport.abort()

    async def probe(self, path: str) -> bytes:
        """The answer of the probes' port; empty without one."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.options.probe_port)
        except OSError:
            return b""
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    async def until_ready(self, says: bytes) -> None:
        """Returns once /readyz answers with that."""

        async def so() -> bool:
            return says in await self.probe("/readyz")

        await eventually(so)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(server, "REFRESH_SECONDS", 0.02)
    monkeypatch.setattr(server, "NOTICE_SECONDS", 0.05)
    ports = Ports()
    options = WebhookOptions(
        tmp_path / "tls.crt",
        tmp_path / "tls.key",
        host="127.0.0.1",
        port=ports.take(),
        probe_port=ports.take(),
    )
    served = Served(options)

    async def listens() -> bool:
        try:
            return bool(await served.certificate())
        except OSError:
            return False

    await eventually(listens)
    yield served
    served.stop.set()
    async with asyncio.timeout(30):
        await asyncio.wait({served.running})
    ports.close()


async def test_rules_that_are_not_followed_any_more_end_it_once_its_clients_have_left(served: Served) -> None:
    reader, writer = await served.connect()
    served.rules.end.set()
    await served.until_ready(b"rules: ConfigurationError('no token')")
    writer.write(REQUEST)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
    await reader.read()
    writer.close()
    with pytest.raises(TaskEnded, match="no token"):
        await asyncio.wait_for(served.running, 30)


async def test_a_port_that_serves_no_more_ends_it_at_once(served: Served) -> None:
    _, writer = await served.connect()
    for task in served.webhook._conversions._tasks:
        task.cancel()
    with pytest.raises(TaskEnded, match="conversions: it was cancelled"):
        await asyncio.wait_for(served.running, 30)
    writer.close()


async def test_it_serves_on_while_changes_of_the_rules_may_be_missed(served: Served) -> None:
    await served.until_ready(b"200 OK")
    served.rules.behind = (12.0, "503 : away")
    answer = await served.probe("/readyz")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"may have been missed for 12 s: 503 : away\n")
    assert b"crdkeeper_conversion_rules_stale_seconds 12.0" in await served.probe("/metrics")
    served.rules.behind = (0.0, "")
    assert b"missed" not in await served.probe("/readyz")
    assert b"crdkeeper_conversion_rules_stale_seconds 0.0" in await served.probe("/metrics")


async def test_only_rules_that_are_bad_since_the_start_keep_it_out_of_the_service(served: Served) -> None:
    await served.until_ready(b"200 OK")
    served.rules.problems["rules.yaml"] = "no YAML"
    assert (await served.probe("/readyz")).startswith(b"HTTP/1.1 200 ")
    assert b"crdkeeper_conversion_rule_problems 1.0" in await served.probe("/metrics")
    served.rules.blocking.add("rules.yaml")
    answer = await served.probe("/readyz")
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b"rules.yaml: no YAML\n")


async def test_it_serves_at_all_addresses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    issued = AUTHORITY.issue()
    (tmp_path / "tls.crt").write_bytes(issued.certificate)
    (tmp_path / "tls.key").write_bytes(issued.key)
    webhook = WebhookProcess(
        WebhookOptions(tmp_path / "tls.crt", tmp_path / "tls.key", port=0, probe_port=0, drain_seconds=0.0),
        Files(),
    )
    stop = asyncio.Event()
    with caplog.at_level("INFO"):
        running = asyncio.create_task(webhook.run(stop))

        async def listens() -> bool:
            return "Listening on" in caplog.text

        await eventually(listens)
    port = webhook._conversions.port
    everywhere = socket.has_dualstack_ipv6()
    assert f"Listening on {'[::]' if everywhere else '0.0.0.0'}:{port}." in caplog.text
    for host in ("127.0.0.1", "::1")[: 1 + everywhere]:
        for each in (port, webhook._probes.port):
            _, writer = await asyncio.open_connection(host, each)
            writer.close()
    stop.set()
    await asyncio.wait_for(running, 30)


async def test_files_that_do_not_fit_together_leave_the_old_certificate_in_use(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    before = await served.certificate()
    new = AUTHORITY.issue()
    served.replace(new.certificate, AUTHORITY.issue().key)

    async def noticed() -> bool:
        return "The new certificate cannot be used" in caplog.text

    await eventually(noticed)
    assert await served.certificate() == before
    served.replace(new.certificate, new.key)

    async def renewed() -> bool:
        return await served.certificate() == ssl.PEM_cert_to_DER_cert(new.certificate.decode())

    await eventually(renewed)


async def test_a_client_that_is_connected_can_still_ask_before_the_end(served: Served) -> None:
    """If it closed first, a request could be on its way, which an API server does not repeat."""
    reader, writer = await served.connect()
    served.stop.set()
    await served.until_ready(b"stopping")
    await asyncio.sleep(4 * server.NOTICE_SECONDS)
    assert not reader.at_eof()
    writer.write(REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    assert b"Connection: close" in head
    await reader.read()
    writer.close()


@pytest.mark.parametrize(
    ("limit", "raised", "connections"),
    [((1024, 4096), 1350, 1000), ((1024, 1024), 1024, 674), ((4096, 4096), None, 1000), ((64, 128), 128, 1)],
)
def test_there_are_descriptors_for_all_connections(
    limit: tuple[int, int], raised: int | None, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one no connection could be accepted, and nobody would have to give way."""
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limit)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: made.append(limits))
    assert affordable(HttpLimits()).connections == connections
    assert made == ([] if raised is None else [(raised, limit[1])])


async def test_it_is_not_ready_to_judge_changes_without_a_certificate(tmp_path: Path) -> None:
    """A Service would send API servers to it, and changes would pass."""
    ports = Ports()
    files = (tmp_path / "tls.crt", tmp_path / "tls.key")
    options = WebhookOptions(*files, host="127.0.0.1", port=ports.take(), probe_port=ports.take())
    policies = ClusterPolicies(Connection(kubeconfig(tmp_path, "http://127.0.0.1:1")))
    served = Served(options, policies)
    for each in files:
        each.unlink()
    await served.until_ready(b"converting nothing")
    policies._saw_policy("p", {"metadata": {"name": "p"}, "spec": {"protection": {"deletion": "Deny"}}})
    await served.until_ready(b" 503 ")
    assert f"waiting for {files[0]}".encode() in await served.probe("/readyz")
    served.stop.set()
    async with asyncio.timeout(30):
        await served.running
    ports.close()
