"""The CronTabs of a cluster, converted by `crdkeeper webhook` without an operator."""

import json
import time
from collections.abc import Callable
from typing import Any

from tests.cluster.conversion.rules import ConversionWebhook, crontab_definition
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError

SECONDS = 120.0


FULL: dict[str, dict[str, Any]] = {
    "v1": {
        "host": "localhost",
        "port": 1234,
        "schedule": "* * * * */5",
        "replicas": 3,
        "containers": [
            {"name": "web", "image": "nginx", "memory": "1Gi"},
            {"name": "db", "image": "postgres"},
        ],
    },
    "v1beta1": {
        "host": "localhost",
        "port": "1234",
        "cronSpec": "* * * * */5",
        "replicas": 3,
        "containers": [
            {"name": "web", "image": "nginx", "memoryMiB": 1024},
            {"name": "db", "image": "postgres"},
        ],
    },
    "v1alpha1": {
        "hostPort": "localhost:1234",
        "cronSpec": "* * * * */5",
        "containers": {"web": {"image": "nginx"}, "db": {"image": "postgres"}},
    },
}


class CronTabs:
    """The CRD in the cluster, and its objects, through kubectl."""

    def __init__(self, plane: Cluster, group: str, webhook: ConversionWebhook) -> None:
        self.plane, self.group, self._webhook = plane, group, webhook
        self.store("v1")
        name = f"crd/crontabs.{group}"
        plane.kubectl.wait_established(name)
        until(self._served)

    def _served(self) -> bool:
        """Whether clients can discover every version, and read it; KubectlError until then."""
        return all(self.get(each) for each in self._webhook.specs)

    def store(self, version: str) -> None:
        """Apply the CRD with this storage version."""
        definition = crontab_definition(
            self.group,
            storage=version,
            client_config=self._webhook.client_config,
            specs=self._webhook.specs,
        )
        self.plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))

    def object(self, version: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": "CronTab",
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
        }

    def apply(self, version: str, name: str, spec: dict[str, Any], *flags: str) -> str:
        body = json.dumps(self.object(version, name, spec))
        return self.plane.kubectl("apply", *flags, "-f", "-", input=body)

    def create(self, version: str, specs: dict[str, dict[str, Any]]) -> None:
        items = [self.object(version, name, spec) for name, spec in specs.items()]
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        self.plane.kubectl("create", "-f", "-", input=body)

    def get(self, version: str, *names: str) -> Any:
        resource = f"crontabs.{version}.{self.group}"
        return json.loads(self.plane.kubectl("get", resource, *names, "-o", "json"))

    def spec(self, version: str, name: str) -> Any:
        return self.get(version, name)["spec"]

    def remove(self) -> None:
        self.plane.kubectl("delete", "crd", f"crontabs.{self.group}", "--timeout=120s", check=False)


def until(holds: Callable[[], object]) -> None:
    """Wait until something is true; errors in the meantime are ignored."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            if holds():
                return
        except KubectlError:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.1)
