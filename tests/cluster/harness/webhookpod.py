"""`crdkeeper webhook` as in the Deployment: with its own account, and the Secret mounted as files."""

import base64
import http.client
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Final

from tests.cluster.harness.installation import NAMESPACE
from tests.cluster.harness.preloaded import crdkeeper
from tests.controlplane.cluster import Cluster
from tests.controlplane.ports import Ports

SECRET: Final = "crdkeeper-webhook-tls"
WEBHOOK_ACCOUNT: Final = "crdkeeper-webhook"
_NUMBERS: Final[Iterator[int]] = count()
_PAUSE_SECONDS: Final = 0.1


class SecretVolume:
    """The files of a Secret in a directory, kept up to date like a kubelet does."""

    def __init__(self, cluster: Cluster, directory: Path, secret: str = SECRET) -> None:
        self.directory = directory
        self._cluster = cluster
        self._secret = secret
        self._ended = threading.Event()
        self._watch: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._sync, daemon=True)
        directory.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Start to follow the Secret, which need not exist yet."""
        self._thread.start()

    def close(self) -> None:
        """Leave the files as they are."""
        self._ended.set()
        while self._thread.is_alive():
            if self._watch is not None:
                self._watch.kill()
            self._thread.join(_PAUSE_SECONDS)

    def _sync(self) -> None:
        command = [
            *self._cluster.kubectl.command,
            *("get", "secrets", f"--namespace={NAMESPACE}", f"--field-selector=metadata.name={self._secret}"),
            *("--watch", '--output=jsonpath={.data}{"\\n"}'),
        ]
        # A watch ends with its API server, and now and then.
        while not self._ended.wait(_PAUSE_SECONDS):
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as self._watch:
                assert self._watch.stdout is not None
                for line in self._watch.stdout:
                    self._write(json.loads(line))

    def _write(self, data: Mapping[str, str]) -> None:
        for name, value in data.items():
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
        self.process = crdkeeper(
            f"webhook-{next(_NUMBERS)}",
            {
                "kubeconfig": str(cluster.service_account_kubeconfig(NAMESPACE, WEBHOOK_ACCOUNT)),
                "tls-cert-file": str(self.volume.directory / "tls.crt"),
                "tls-private-key-file": str(self.volume.directory / "tls.key"),
                "listen": f"127.0.0.1:{self.port}",
                "probe-port": str(self.probe_port),
                "drain-seconds": str(drain_seconds),
                "processes": str(processes),
            },
            arguments=("webhook",),
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
