"""The two webhooks of the conversion benchmark as processes: crdkeeper's, and one written by hand in Go."""

import base64
import http.client
import json
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from crdkeeper.cluster.transport.tls import verifying
from tests.benchmark import goprograms
from tests.benchmark.conversionsubject import definition, rules
from tests.certificates import Authority
from tests.controlplane.ports import Ports
from tests.controlplane.probe import answers
from tests.controlplane.processes import Process

LOOPBACK: Final = "127.0.0.1"
GO: Final = "Go, by hand"
SERVICE_NAMESPACE: Final = "default"


class Contestant:
    """A webhook that converts the CronTabs of its own API group."""

    def __init__(self, title: str, name: str, authority: Authority, directory: Path) -> None:
        self.title = title
        self.name = name
        self.group = f"{name}.conversion.example.com"
        self.resource = f"crontabs.{self.group}"
        self.path = f"/convert/{self.resource}"
        self._authority = authority
        self._directory = directory / name
        self._directory.mkdir(parents=True)
        self._ports = Ports()
        self.port = self._ports.take()
        self.ca_file = self._directory / "ca.crt"
        self.ca_file.write_bytes(authority.pem)
        self._certificate, self._key = self._directory / "tls.crt", self._directory / "tls.key"
        issued = authority.issue((LOOPBACK, f"{name}.{SERVICE_NAMESPACE}.svc"))
        self._certificate.write_bytes(issued.certificate)
        self._key.write_bytes(issued.key)
        self.process = self._make()

    @property
    def service(self) -> dict[str, Any]:
        """A Service that is this process: through a Service, API servers use HTTP/1.1 as in production."""
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": self.name, "namespace": SERVICE_NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": LOOPBACK, "ports": [{"port": self.port}]},
        }

    @property
    def client_config(self) -> dict[str, Any]:
        """How an API server reaches it."""
        service = {
            "name": self.name,
            "namespace": SERVICE_NAMESPACE,
            "path": self.path,
            "port": self.port,
        }
        return {"service": service, "caBundle": base64.b64encode(self._authority.pem).decode()}

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self.process.start()
        self.process.wait_ready()

    def close(self) -> None:
        """End it."""
        self.process.stop()
        self._ports.close()

    def convert(self, body: bytes) -> Any:
        """The answer to a ConversionReview."""
        context = verifying(ca_file=self.ca_file)
        connection = http.client.HTTPSConnection(LOOPBACK, self.port, context=context, timeout=30)
        try:
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{self.title}: {response.status} {answer[:500]!r}")
        return json.loads(answer)

    def _make(self) -> Process:
        raise NotImplementedError


class Ours(Contestant):
    """`crdkeeper webhook`, with the rules in a file."""

    def __init__(self, authority: Authority, directory: Path, processes: int = 1) -> None:
        self._processes = processes
        title = "crdkeeper" if processes == 1 else f"crdkeeper, {processes} processes"
        super().__init__(title, f"ours{processes}", authority, directory)

    def _make(self) -> Process:
        folder = self._directory / "rules"
        folder.mkdir()
        documents = [definition(self.group, {"url": "https://example.com/"}), rules(self.group)]
        (folder / "all.yaml").write_text(yaml.safe_dump_all(json.loads(json.dumps(documents))))
        self._probe_port = self._ports.take()
        flags = {
            "rules": str(folder),
            "tls-cert-file": str(self._certificate),
            "tls-private-key-file": str(self._key),
            "listen": f"{LOOPBACK}:{self.port}",
            "probe-port": str(self._probe_port),
            "drain-seconds": "0",
            "processes": str(self._processes),
        }
        return Process(
            "crdkeeper-webhook",
            Path(sys.executable),
            flags,
            arguments=("-m", "crdkeeper", "webhook"),
            directory=self._directory,
            ready=self._serves,
        )

    def _serves(self) -> bool:
        """By all its processes."""
        if self._processes == 1:
            return answers(self._probe_port, "/readyz")
        try:
            return f"{self._processes} of {self._processes} processes serve" in self._probe("/readyz")
        except OSError:
            return False

    def _probe(self, path: str) -> str:
        connection = http.client.HTTPConnection(LOOPBACK, self._probe_port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def counted(self) -> tuple[int, int, int]:
        """How many ConversionReviews it has answered, of how many objects, on how many connections."""
        text = self._probe("/metrics")
        return (
            _sum(text, "crdkeeper_conversion_requests_total"),
            _sum(text, "crdkeeper_conversion_objects_total"),
            _sum(text, "crdkeeper_webhook_connections_total"),
        )


class ByHand(Contestant):
    """The webhook in `gowebhook`."""

    def __init__(self, authority: Authority, directory: Path) -> None:
        super().__init__(GO, "byhand", authority, directory)

    def _make(self) -> Process:
        flags = {
            "tls-cert-file": str(self._certificate),
            "tls-private-key-file": str(self._key),
            "listen": f"{LOOPBACK}:{self.port}",
        }
        return Process(
            "go-webhook",
            goprograms.build() / "webhook",
            flags,
            directory=self._directory,
            ready=self._listens,
        )

    def _listens(self) -> bool:
        context = verifying(ca_file=self.ca_file)
        connection = http.client.HTTPSConnection(LOOPBACK, self.port, context=context, timeout=5)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == http.HTTPStatus.NOT_FOUND
        except OSError:
            return False
        finally:
            connection.close()


def _sum(text: str, name: str) -> int:
    lines = [line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return int(sum(float(line.rpartition(" ")[2]) for line in lines))
