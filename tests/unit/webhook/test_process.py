"""The webhook as a process: how it ends, and with what status."""

import http.client
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane.ports import Ports
from tests.controlplane.probe import answers
from tests.controlplane.processes import Process
from tests.unit.cluster.transport.localserver import kubeconfig


class Started:
    """`crdkeeper webhook` on its own ports, for an API server that does not answer."""

    def __init__(self, directory: Path) -> None:
        self.ports = Ports()
        self.probe_port, nobody = self.ports.take(), self.ports.take()
        flags = {
            "kubeconfig": str(kubeconfig(directory, f"http://127.0.0.1:{nobody}")),
            "tls-cert-file": str(directory / "tls.crt"),
            "tls-private-key-file": str(directory / "tls.key"),
            "listen": f"127.0.0.1:{self.ports.take()}",
            "probe-port": str(self.probe_port),
        }
        self.process = Process(
            "webhook",
            Path(sys.executable),
            flags,
            arguments=("-m", "crdkeeper", "webhook"),
            directory=directory,
            ready=partial(answers, self.probe_port, "/healthz"),
        )
        self.process.start()
        self.process.wait_ready()

    def readyz(self) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.probe_port, timeout=60)
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        assert answer.status == 503
        return answer.read().decode()

    def close(self) -> None:
        if self.process.running:
            self.process.kill()
        self.ports.close()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    made = Started(tmp_path)
    yield made
    made.close()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def test_told_to_stop_while_the_api_server_is_away_it_ends(started: Started) -> None:
    assert "not compiled yet" in started.readyz()
    assert within(60.0, lambda: "connect" in started.process.log.read_text())
    started.process.terminate()
    assert within(60.0, lambda: not started.process.running), started.process.log.read_text()
    assert started.process.exit_status == 0
