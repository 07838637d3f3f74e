"""A replica of several processes as its own process, with rules and a certificate from files."""

import http.client
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from crdkeeper.cluster.transport.tls import verifying
from tests.certificates import Authority
from tests.cluster.conversion.rules import RULES, crontab_definition, rules_of
from tests.controlplane.ports import Ports
from tests.controlplane.processes import Process

HOST: Final = "127.0.0.1"
GROUP: Final = "processes.example.com"
NAME: Final = f"crontabs.{GROUP}"


_SOONER: Final = (
    "from crdkeeper.__main__ import run; from crdkeeper.webhook.conversion import worker; "
    "from crdkeeper.webhook.processes import keeper, parent, relay; {}; run()"
)


class Several:
    """`crdkeeper webhook --processes`."""

    def __init__(self, directory: Path, processes: int, sooner: str = "") -> None:
        """`sooner` are statements that change what is too long for a test in production, or too short."""
        self.ports, self.directory = Ports(), directory
        self.port, self.probe_port = self.ports.take(), self.ports.take()
        authority = Authority()
        issued = authority.issue((HOST,))
        (directory / "tls.crt").write_bytes(issued.certificate)
        (directory / "tls.key").write_bytes(issued.key)
        definition = crontab_definition(GROUP, storage="v1", client_config={"url": "https://example.com/"})
        documents = [definition, rules_of(GROUP, RULES)]
        (directory / "rules.json").write_text(json.dumps(documents[0]))
        (directory / "more.json").write_text(json.dumps(documents[1]))
        self.trusts = verifying(ca_data=authority.pem.decode())
        flags = {
            "rules": str(directory),
            "tls-cert-file": str(directory / "tls.crt"),
            "tls-private-key-file": str(directory / "tls.key"),
            "listen": f"{HOST}:{self.port}",
            "probe-port": str(self.probe_port),
            "drain-seconds": "0.2",
            "processes": str(processes),
        }
        self.process = Process(
            "webhook",
            Path(sys.executable),
            flags,
            arguments=(*(("-c", _SOONER.format(sooner)) if sooner else ("-m", "crdkeeper")), "webhook"),
            directory=directory,
            ready=lambda: f"{processes} of {processes}" in self.probe("/readyz"),
        )

    def children(self) -> dict[str, int]:
        """See `children_in`."""
        return children_in(self.process.log.read_text())

    def probe(self, path: str) -> str:
        """See `probed`."""
        return probed(HOST, self.probe_port, path, seconds=60)

    def accepted(self, pid: int) -> bool:
        """Whether a process has a connection of a client."""
        lines = [each.split() for each in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        here, established = f":{self.port:04X}", "01"
        sockets = {
            f"socket:[{line[9]}]" for line in lines if line[1].endswith(here) and line[3] == established
        }
        held = set()
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                held.add(str(each.readlink()))
        return not held.isdisjoint(sockets)

    def client(self) -> http.client.HTTPSConnection:
        """A connection that stays with the process that accepted it."""
        return http.client.HTTPSConnection(HOST, self.port, context=self.trusts, timeout=120)

    def close(self) -> None:
        if self.process.running:
            self.process.kill()
        self.ports.close()


def probed(host: str, port: int, path: str, *, seconds: float) -> str:
    """The answer of the port of the probes; empty without one within so many seconds."""
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


def children_in(log: str) -> dict[str, int]:
    """The ids of the processes by their names, as they were started last."""
    found = {}
    for line in log.splitlines():
        if "Started " in line:
            name, _, pid = line.partition("Started ")[2].partition(": process ")
            found[name] = int(pid.rstrip("."))
    return found


def review(objects: int = 1) -> bytes:
    """A ConversionReview of objects of the storage version."""
    stored = [
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "CronTab",
            "metadata": {"name": f"c{number}", "namespace": "default"},
            "spec": {},
        }
        for number in range(objects)
    ]
    request: dict[str, Any] = {"uid": "u", "desiredAPIVersion": f"{GROUP}/v1alpha1", "objects": stored}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    return json.dumps({**kind, "request": request}).encode()


def converted(connection: http.client.HTTPSConnection, body: bytes) -> bool:
    """Whether it is answered with converted objects. Raises OSError and HTTPException."""
    connection.request("POST", f"/convert/{NAME}", body)
    answer = connection.getresponse()
    content = answer.read()
    return answer.status == 200 and json.loads(content)["response"]["result"]["status"] == "Success"


def alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pss(pid: int) -> int:
    """Its proportional memory in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith("Pss:"))
