"""The webhook in a pod with several processes: one that is killed takes only its own connections along."""

import base64
import http.client
import json
import operator
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from crdkeeper.cluster.transport.tls import verifying
from tests.certificates import Authority
from tests.cluster.conversion.rules import RULES, crontab_definition, rules_of
from tests.node import pods
from tests.node.deployment import WEBHOOK, Deployment, Pod, until
from tests.unit.webhook.processes.replica import GROUP, children_in, converted, probed, review

NAME: Final = "webhook-processes"
SECONDS: Final = 300.0
CLIENTS: Final = 12


class Replica:
    """A pod like those of the Deployment, with rules and certificate from a Secret, and a CPU limit."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.authority = Authority()

    def manifests(self) -> list[dict[str, Any]]:
        """The Secret and the pod."""
        found = json.loads(self.deployment.kubectl("get", "deployment", WEBHOOK, "--output=json"))
        spec = found["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        container["args"] += ["--rules=/etc/crdkeeper/tls", "--processes=2", "--drain-seconds=0"]
        container["resources"]["limits"] |= {"cpu": "2"}
        (volume,) = (each for each in spec["volumes"] if each["name"] == "tls")
        volume["secret"] = {"secretName": NAME}
        issued = self.authority.issue((NAME,))
        definition = crontab_definition(GROUP, storage="v1", client_config={"url": "https://example.com/"})
        files = {
            "tls.crt": issued.certificate,
            "tls.key": issued.key,
            "crd.json": json.dumps(definition).encode(),
            "rules.json": json.dumps(rules_of(GROUP, RULES)).encode(),
        }
        metadata = {"name": NAME, "namespace": found["metadata"]["namespace"]}
        data = {name: base64.b64encode(content).decode() for name, content in files.items()}
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data},
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        ]

    def found(self) -> dict[str, Any]:
        """The pod in the API."""
        found: dict[str, Any] = json.loads(self.deployment.kubectl("get", "pod", NAME, "--output=json"))
        return found

    def pod(self) -> Pod:
        return Pod.of(self.found())

    def children(self) -> dict[str, int]:
        """The processes by their names, with their ids inside."""
        return children_in(self.deployment.kubectl("logs", NAME))

    def outside(self, pid: int) -> int:
        """The id that the process with this id inside has outside."""
        for each in self.deployment.processes(self.pod()):
            status = Path(f"/proc/{each}/status").read_text()
            (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
            if int(line.split()[-1]) == pid:
                return each
        raise ProcessLookupError(pid)

    def sockets(self, pid: int) -> int:
        """How many sockets the process with this id inside has."""
        found = 0
        for each in Path(f"/proc/{self.outside(pid)}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                found += str(each.readlink()).startswith("socket:")
        return found

    def clients(self) -> list[http.client.HTTPSConnection]:
        """Connections that both processes share: whichever is awake takes the next one."""
        servers = [pid for name, pid in self.children().items() if name.startswith("server ")]
        before = [self.sockets(each) for each in servers]
        made: list[http.client.HTTPSConnection] = []

        def shared() -> bool:
            made.append(self.client())
            assert converted(made[-1], review())
            if len(made) < CLIENTS:
                return False
            return all(map(operator.gt, map(self.sockets, servers), before))

        until(shared, SECONDS, lambda: f"all of {len(made)} connections are one process's")
        return made

    def client(self) -> http.client.HTTPSConnection:
        """A connection to the pod."""
        address = self.found()["status"]["podIP"]
        trusts = verifying(ca_data=self.authority.pem.decode())
        trusts.check_hostname = False
        return http.client.HTTPSConnection(address, 9443, context=trusts, timeout=180)

    def probe(self, path: str) -> str:
        """See `probed`."""
        return probed(self.found()["status"].get("podIP", ""), 8081, path, seconds=30)

    def complete(self) -> bool:
        return "2 of 2 processes serve" in self.probe("/readyz")


@pytest.fixture
def replica(deployment: Deployment) -> Iterator[Replica]:
    made = Replica(deployment)
    pods.apply(deployment.plane.kubectl, *made.manifests())
    try:
        until(made.complete, SECONDS, lambda: deployment.kubectl("logs", NAME, check=False))
        yield made
    finally:
        deployment.kubectl("delete", "pod,secret", NAME, "--ignore-not-found", "--now")


def test_one_process_is_killed_and_the_pod_goes_on(replica: Replica) -> None:
    clients = replica.clients()
    before = replica.children()
    os.kill(replica.outside(before["server 0"]), signal.SIGKILL)
    until(lambda: replica.children()["server 0"] != before["server 0"], SECONDS)
    lost = 0
    for each in clients:
        try:
            assert converted(each, review())
        except (OSError, http.client.HTTPException):
            lost += 1
            each.close()
            assert converted(each, review()), "a new connection is served"
    assert 0 < lost < len(clients), "each of the two had some of the connections"
    until(replica.complete, SECONDS)
    after = replica.children()
    assert {each for each in after if after[each] != before[each]} == {"server 0"}
    os.kill(replica.outside(after["keeper"]), signal.SIGKILL)
    assert all(converted(each, review()) for each in clients), "conversions go on without the keeper"
    until(lambda: replica.children()["keeper"] != after["keeper"] and replica.complete(), SECONDS)
    assert all(converted(each, review(1500)) for each in clients), "the new keeper has the workers"
    assert replica.pod().restarts == 0
