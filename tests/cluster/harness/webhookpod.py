"""`crdkeeper webhook` as in the Deployment: with its own account, and the Secret mounted as files."""

import base64
import http.client
import json
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from tests.cluster.harness.installation import NAMESPACE
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError
from tests.controlplane.ports import Ports
from tests.controlplane.processes import Process

SECRET: Final = "crdkeeper-webhook-tls"
WEBHOOK_ACCOUNT: Final = "crdkeeper-webhook"
_NUMBERS: Final[Iterator[int]] = count()
_SYNC_SECONDS: Final = 0.5


class SecretVolume:
    """The files of a Secret in a directory, kept up to date like a kubelet does."""

    def __init__(self, cluster: Cluster, directory: Path, secret: str = SECRET) -> None:
        self.directory = directory
        self._cluster = cluster
        self._secret = secret
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sync, daemon=True)
        directory.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Start to follow the Secret, which need not exist yet."""
        self._thread.start()

    def close(self) -> None:
        """Leave the files as they are."""
        self._ended.set()
        self._thread.join()

    def _sync(self) -> None:
        while not self._ended.wait(_SYNC_SECONDS):
            try:
                text = self._cluster.kubectl("get", "secret", self._secret, "-n", NAMESPACE, "-o", "json")
            except KubectlError:
                continue
            for name, value in (json.loads(text).get("data") or {}).items():
                temporary = self.directory / f".{name}"
                temporary.write_bytes(base64.b64decode(value))
                temporary.replace(self.directory / name)


class WebhookPod:
    """One replica on a port of its own."""

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        *,
        user: int | None = None,
        drain_seconds: float = 0,
        processes: int = 1,
    ) -> None:
        self._ports = Ports()
        self.port, self.probe_port = self._ports.take(), self._ports.take()
        self.url = f"https://127.0.0.1:{self.port}"
        self.volume = SecretVolume(cluster, directory / "tls")
        self.volume.start()
        self.process = Process(
            f"webhook-{next(_NUMBERS)}",
            Path(sys.executable),
            {
                "kubeconfig": str(cluster.service_account_kubeconfig(NAMESPACE, WEBHOOK_ACCOUNT)),
                "tls-cert-file": str(self.volume.directory / "tls.crt"),
                "tls-private-key-file": str(self.volume.directory / "tls.key"),
                "listen": f"127.0.0.1:{self.port}",
                "probe-port": str(self.probe_port),
                "drain-seconds": str(drain_seconds),
                "processes": str(processes),
            },
            arguments=("-m", "crdkeeper", "webhook"),
            directory=directory,
            ready=self.ready,
            user=user,
        )

    def start(self) -> None:
        """Start it; the Secret need not exist yet."""
        self.process.start()
        self.process.wait_ready()

    def ready(self) -> bool:
        """Whether /readyz reports success."""
        connection = http.client.HTTPConnection("127.0.0.1", self.probe_port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def close(self) -> None:
        """End it."""
        self.process.stop()
        self.volume.close()
        self._ports.close()
