"""crdkeeper as users run it: a separate process, with the account from the manifests."""

import http.client
import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.cluster.harness.preloaded import crdkeeper
from tests.controlplane.cluster import Cluster
from tests.controlplane.ports import Ports

_NUMBERS: Final[Iterator[int]] = count()
_GRACE = 60.0
_PROBE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_LASTING: Final[Mapping[str, str]] = {"lease-duration": "30", "renew-deadline": "25"}
"""A busy machine may let an operator or its API server stand still for ten seconds, after which one with the
default flags gives its Lease up and ends. No kubelet is there to start it again."""
SHIPPED_LEASE: Final[Mapping[str, str]] = {"lease-duration": "15", "renew-deadline": "10"}
"""Flags of a replica whose Lease a test is about: the defaults, as the manifests have it run."""


class Operator:
    """One replica, with its log in a file. It uses the API server of index `server`.

    With the identity of a killed replica it takes over the Lease at once; with another one only when the
    Lease has expired, 30 seconds later. `flags` are further ones of its command: `crdkeeper run`, or
    `crdkeeper compose run` for a composer. `user` is as in Process.
    If it is not to be `preloaded`, it has only what it imports itself.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        identity: str = "operator",
        server: int = 0,
        flags: Mapping[str, str] | None = None,
        user: int | None = None,
        account: str = SERVICE_ACCOUNT,
        command: tuple[str, ...] = ("run",),
        preloaded: bool = True,
    ) -> None:
        self.identity = identity
        self._ports = Ports()
        self._port = self._ports.take()
        kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, account, server=server)
        command_line = {
            "kubeconfig": str(kubeconfig),
            "identity": identity,
            "listen": f"127.0.0.1:{self._port}",
            **_LASTING,
            **(flags or {}),
        }
        self._process = crdkeeper(
            f"{identity}-{next(_NUMBERS)}",
            command_line,
            arguments=command,
            directory=cluster.directory / "operators",
            user=user,
            ready=self.ready,
            preloaded=preloaded,
        )
        self.log = self._process.log

    def start(self, *, wait: bool = True) -> None:
        """Starts it and waits until it is ready: leading and working, or a standby."""
        self._process.start()
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Returns when it is ready; raises with the end of its log if it ended or takes too long."""
        self._process.wait_ready()

    def stop(self, grace: float = _GRACE) -> int | None:
        """Ends it as a kubelet does (SIGTERM, and SIGKILL after a grace period); returns its exit status."""
        self._process.stop(grace)
        return self._process.exit_status

    def close(self) -> None:
        """Ends it finally and releases its port."""
        self.stop()
        self._ports.close()

    def kill(self) -> None:
        """Ends it without a chance to clean up (SIGKILL)."""
        self._process.kill()

    def pause(self) -> None:
        """Stops it (SIGSTOP), with its connections open."""
        self._process.pause()

    def resume(self) -> None:
        """Resumes it (SIGCONT)."""
        self._process.resume()

    @property
    def running(self) -> bool:
        return self._process.running

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Like subprocess.Popen.returncode: None while it runs, negative after a signal."""
        return self._process.exit_status

    def ready(self) -> bool:
        """Whether /readyz reports success."""
        status, _ = self.probe("/readyz")
        return status == http.client.OK

    def leading(self) -> bool:
        """Whether it holds the Lease and works."""
        return self.probe("/readyz") == (http.client.OK, "leading")

    def probe(self, path: str) -> tuple[int, str]:
        """Status and text of /healthz, /readyz or /metrics; status 0 without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PROBE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode().strip()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name whose labels include the given ones."""
        text = self._metrics()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text + "\n")
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def _metrics(self) -> str:
        """What /metrics says; nothing of a process that has ended. One that is slow must not look idle."""
        while True:
            status, text = self.probe("/metrics")
            if status == http.client.OK or not self.running:
                return text
            time.sleep(_PAUSE_SECONDS)

    def requests(self, crd: str) -> int:
        """Rewriting requests that it has sent so far for a resource `plural.group`."""
        return int(self.metric("crdkeeper_migration_requests_total", resource=crd))

    def log_size(self) -> int:
        """The current end of the log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, offset: int = 0) -> str:
        """The log from an offset on."""
        return self.log.read_bytes()[offset:].decode(errors="replace") if self.log.exists() else ""
