"""A whole control plane: etcd, one or more API servers on it, and the controllers that a test needs."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.controlplane import binaries, flags, kubeconfig, pki
from tests.controlplane.cluster import Cluster
from tests.controlplane.etcd import Etcd
from tests.controlplane.flags import Flags
from tests.controlplane.pki import LOOPBACK
from tests.controlplane.ports import Ports
from tests.controlplane.probe import answers
from tests.controlplane.processes import GRACE, Process

CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
    "endpointslice-controller",
    "disruption-controller",
    "storage-version-migrator-controller",
)


class ApiServer(Process):
    """One kube-apiserver, with its `url` and an admin's `kubeconfig` for it.

    The controllers use the first one: while that is paused, they do nothing.
    """

    def __init__(
        self,
        name: str,
        program: Path,
        server_flags: Flags,
        *,
        secrets: pki.Pki,
        directory: Path,
        hostname: str | None,
        detached: bool,
    ) -> None:
        address, port = server_flags["bind-address"], int(server_flags["secure-port"])
        ask = partial(answers, port, host=address, ca_file=secrets.ca_file, token=secrets.admin_token)
        super().__init__(
            name,
            program,
            server_flags,
            directory=directory,
            # A new cluster is ready a moment before its namespaces exist, but tests start immediately.
            ready=lambda: ask("/readyz") and ask("/api/v1/namespaces/default"),
            hostname=hostname,
            detached=detached,
        )
        self.url = f"https://{address}:{port}"
        self.kubeconfig = kubeconfig.write(
            directory / "kubeconfigs" / f"{name}.kubeconfig",
            url=self.url,
            ca_file=secrets.ca_file,
            token=secrets.admin_token,
        )

    def upgrade(self) -> None:
        """Has it emulate no older version from its next start on."""
        self.command = [each for each in self.command if not each.startswith("--emulated-version=")]


class ControlPlane(Cluster):
    """A control plane in its own directory; gone with the process that created it, unless detached.

    `api_servers` after the first run with other host names, because each server's identity Lease is named
    after its host. They listen at `address`, each at its own port; `beside` has addresses of further ones,
    at the port of the first, so that all of these are endpoints of the Service `kubernetes`. Their
    certificate is also valid for `more_addresses`, and `users`, each with their groups, get tokens
    (`pki.tokens`). `emulated_version` ("1.34") makes all programs
    behave like that minor version. The extra flags are by name without dashes and override ours.
    `controllers=()` runs no controller manager. With `fsync`, etcd waits for the disk, as in real clusters.
    """

    def __init__(
        self,
        directory: Path,
        *,
        api_servers: int = 1,
        address: str = LOOPBACK,
        beside: Sequence[str] = (),
        more_addresses: Sequence[str] = (),
        users: Mapping[str, Sequence[str]] | None = None,
        controllers: Sequence[str] = CONTROLLERS,
        emulated_version: str | None = None,
        extra_apiserver_flags: Mapping[str, str] | None = None,
        extra_controller_manager_flags: Mapping[str, str] | None = None,
        fsync: bool = False,
        detached: bool = False,
    ) -> None:
        self.directory = directory.absolute()
        self._binaries = binaries.find()
        self._detached = detached
        self._emulated_version = emulated_version
        self._ports = Ports()
        addresses = (address, *beside, *more_addresses)
        self.pki = pki.create(self.directory / "pki", addresses=addresses, users=users)
        self._etcd_port = self._ports.take()
        self.etcd_process = self._make_etcd(fsync=fsync)
        ports = [self._ports.take() for _ in range(api_servers)]
        places = [*((address, port) for port in ports), *((each, ports[0]) for each in beside)]
        self._api_servers = [
            self._make_api_server(i, *place, extra_apiserver_flags or {}) for i, place in enumerate(places)
        ]
        self._controller_manager: Process | None = None
        if controllers:
            self._controller_manager = self._make_controller_manager(
                controllers, extra_controller_manager_flags or {}
            )

    @property
    def url(self) -> str:
        return self._api_servers[0].url

    @property
    def ca_file(self) -> Path:
        return self.pki.ca_file

    @property
    def kubeconfig(self) -> Path:
        return self._api_servers[0].kubeconfig

    @property
    def etcd(self) -> Etcd:
        return Etcd(self._etcd_port)

    @property
    def api_servers(self) -> Sequence[ApiServer]:
        return self._api_servers

    @property
    def controller_manager(self) -> Process | None:
        return self._controller_manager

    @property
    def logs(self) -> Path:
        """The directory with each program's log."""
        return self.directory / "logs"

    def take_port(self) -> int:
        """A free port for an additional program, reserved until the control plane ends."""
        return self._ports.take()

    def move_controllers(self, elsewhere: Callable[[Path], Path]) -> None:
        """Before the start: the controllers get the kubeconfig that this makes of theirs."""
        if self._controller_manager is not None:
            command = self._controller_manager.command
            at, flag = next((at, each) for at, each in enumerate(command) if each.startswith("--kubeconfig="))
            command[at] = f"--kubeconfig={elsewhere(Path(flag.partition('=')[2]))}"

    def start(self) -> Self:
        """Starts all programs and returns when they serve; stops all if one fails."""
        try:
            self.etcd_process.start()
            self.etcd_process.wait_ready()
            for server in self._api_servers:
                server.start()
                # Their metrics say when they started, in hundredths of a second: no two at once.
                time.sleep(0.05)
            for server in self._api_servers:
                server.wait_ready()
            if self._controller_manager:
                self._controller_manager.start()
                self._controller_manager.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self, grace: float = GRACE) -> None:
        """Ends all programs in order of dependency, and waits until they are gone. Files remain."""
        clients = [*([self._controller_manager] if self._controller_manager else []), *self._api_servers]
        for process in clients:
            process.terminate()
        for process in (*clients, self.etcd_process):
            process.stop(grace)
        self._ports.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _kubectl_program(self) -> Path:
        return self._binaries.kubectl

    def _make_etcd(self, *, fsync: bool) -> Process:
        return Process(
            "etcd",
            self._binaries.etcd,
            flags.etcd(
                self.directory / "etcd",
                client_port=self._etcd_port,
                peer_port=self._ports.take(),
                fsync=fsync,
            ),
            directory=self.directory,
            ready=partial(answers, self._etcd_port, "/health"),
            detached=self._detached,
        )

    def _make_api_server(self, index: int, address: str, port: int, extra: Mapping[str, str]) -> ApiServer:
        name = f"kube-apiserver-{index}"
        own_flags = flags.kube_apiserver(
            self.pki,
            self.directory / name,
            etcd_url=f"http://{LOOPBACK}:{self._etcd_port}",
            address=address,
            port=port,
            emulated_version=self._emulated_version,
        )
        return ApiServer(
            name,
            self._binaries.kube_apiserver,
            {**own_flags, **extra},
            secrets=self.pki,
            directory=self.directory,
            hostname=name if index else None,
            detached=self._detached,
        )

    def _make_controller_manager(
        self, controllers: Sequence[str], extra: Mapping[str, str]
    ) -> Process | None:
        program = self._binaries.kube_controller_manager
        if program is None:
            warnings.warn(
                f"there is no kube-controller-manager beside {self._binaries.kube_apiserver}: the plane runs "
                "without controllers (no garbage is collected, namespaces never end)",
                stacklevel=3,
            )
            return None
        name, port = "kube-controller-manager", self._ports.take()
        own_flags = flags.kube_controller_manager(
            self.pki,
            self.directory / name,
            kubeconfig=self.kubeconfig_for(name, token=self.pki.controller_manager_token),
            port=port,
            controllers=controllers,
            emulated_version=self._emulated_version,
        )
        return Process(
            name,
            program,
            {**own_flags, **extra},
            directory=self.directory,
            ready=partial(answers, port, "/healthz", ca_file=self.ca_file),
            detached=self._detached,
        )
