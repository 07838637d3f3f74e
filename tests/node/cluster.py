"""A whole cluster in its own machines: control plane, scheduler, DNS, and nodes that run pods."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.controlplane.pids import ProcessId
from tests.controlplane.plane import ControlPlane
from tests.controlplane.probe import answers
from tests.controlplane.processes import Process
from tests.node import configuration, images, leftovers, machines, node, programs
from tests.node.machines import Machine
from tests.node.node import Node

SCHEDULER = "system:kube-scheduler"
DNS = "crdkeeper-test-dns"
READY_SECONDS = 180
_API_SERVER = "10.0.0.1"  # its Service, the first address of their range

DNS_RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: crdkeeper-test-dns
rules:
- apiGroups: ["", "discovery.k8s.io"]
  resources: ["services", "namespaces", "pods", "endpointslices"]
  verbs: ["get", "list", "watch"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: crdkeeper-test-dns
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: crdkeeper-test-dns
subjects:
- kind: User
  name: crdkeeper-test-dns
"""


class NodeCluster:
    """A cluster of that many nodes in its own directory; gone with this process, unless detached.

    Pods reach all of its API servers through the Service `kubernetes`; all else uses the first one, and only
    in `network()`. The images are OCI archives, which each node gets.
    """

    def __init__(
        self,
        directory: Path,
        *,
        nodes: int = 1,
        api_servers: int = 1,
        archives: Sequence[Path] = (),
        detached: bool = False,
    ) -> None:
        self.directory = directory.absolute()
        self.nodes: list[Node] = []
        self._count = nodes
        self._further = [machines.server_address(each) for each in range(1, api_servers)]
        self._detached = detached
        self._programs = programs.find()
        self._archives = (images.pause(), *archives)
        self._machines: list[Machine] = []
        self._others: list[Process] = []
        self._plane: ControlPlane | None = None
        self._record: leftovers.Record | None = None

    @property
    def plane(self) -> ControlPlane:
        """The control plane: kubectl, etcd, and what else tests need of a cluster."""
        if self._plane is None:
            raise RuntimeError("the cluster was not started")
        return self._plane

    @property
    def name(self) -> str:
        """That of its cgroups, unique on this machine."""
        if self._record is None:
            raise RuntimeError("the cluster was not started")
        return self._record.name

    @property
    def logs(self) -> Path:
        """The directory with each program's log."""
        return self.directory / "logs"

    def network(self) -> AbstractContextManager[None]:
        """Moves this thread into the cluster's network: see Machine.network."""
        return self._machines[0].network()

    def kubectl_script(self) -> str:
        """A shell script that is the admin's kubectl, wherever it is called."""
        words = ["nsenter", f"--net=/proc/{self._machines[0].pid}/ns/net", *self.plane.kubectl.command]
        return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'

    def start(self) -> Self:
        """Starts all and returns when all nodes are Ready; stops all if something fails."""
        owner = None if self._detached else ProcessId.of(os.getpid())
        self._record = leftovers.claim(self.directory, owner=owner)
        try:
            self._start_machines(self._record.name)
            with self.network():
                self._start_control_plane()
                self._start_nodes(range(self._count))
                self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends all and removes everything but the logs. Raises LeftBehind if something remains."""
        for machine in self._machines:
            machine.stop()
        for process in self._others:
            process.stop()
        if self._plane is not None:
            self._plane.stop(grace=1.0)  # nothing of it is kept
        if self._record is not None:
            leftovers.remove(self._record)

    def lose(self, index: int) -> None:
        """Switches a node off, like a power failure: everything on it is killed."""
        self._machines[index].stop()

    def recover(self, index: int) -> None:
        """Switches a lost node on again, and returns when it is Ready."""
        machine = self._machines[index]
        machine.start()
        machines.plug_in(self._machines[0], machine, count=self._count)
        with self.network():
            self._start_nodes([index])
            self._wait_ready()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start_machines(self, name: str) -> None:
        for index in range(self._count):
            machine = Machine(name, index, directory=self.directory, detached=self._detached)
            self._machines.append(machine)
            machine.start()
        machines.connect(self._machines, self._further)

    def _start_control_plane(self) -> None:
        first, *others = (each.address for each in self._machines)
        kubelets = {node.user(each.name): ("system:nodes",) for each in self._machines}
        self._plane = ControlPlane(
            self.directory,
            address=first,
            beside=self._further,
            more_addresses=(*others, _API_SERVER),
            users={SCHEDULER: (), DNS: (), node.PROXY: (), **kubelets},
            controllers=("*",),
            extra_apiserver_flags={
                "authorization-mode": "Node,RBAC",
                "enable-admission-plugins": "NodeRestriction",
            },
            extra_controller_manager_flags={
                # It creates this directory, by default in the real machine's /usr.
                "flex-volume-plugin-dir": str(self.directory / "volumeplugins"),
            },
            detached=self._detached,
        )
        self._plane.start()
        self._plane.kubectl("apply", "-f", "-", input=DNS_RIGHTS)
        self._others = [self._scheduler(), self._dns(first)]
        for process in self._others:
            process.start()
        for process in self._others:
            process.wait_ready()

    def _start_nodes(self, indices: Sequence[int]) -> None:
        dns = self._machines[0].address
        started = [Node(self._machines[each], self._programs, self.plane, dns=dns) for each in indices]
        for index, added in zip(indices, started, strict=True):
            self.nodes[index : index + 1] = [added]
            added.start_runtime()
        with ThreadPoolExecutor() as pool:  # unpacking an image takes seconds
            imports = [pool.submit(each.import_image, file) for each in started for file in self._archives]
        for done in imports:
            done.result()
        for each in started:
            each.start()

    def _wait_ready(self) -> None:
        names = [f"node/{each.name}" for each in self._machines]
        timeout = f"--timeout={READY_SECONDS}s"
        self.plane.kubectl("wait", "--for=create", *names, timeout)
        self.plane.kubectl("wait", "--for=condition=Ready", *names, timeout)

    def _scheduler(self) -> Process:
        port = self.plane.take_port()
        flags = {
            "kubeconfig": str(self.plane.kubeconfig_for("scheduler", token=self.plane.pki.tokens[SCHEDULER])),
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": str(port),
            "tls-cert-file": str(self.plane.pki.serving_certificate),
            "tls-private-key-file": str(self.plane.pki.serving_key),
        }
        ready = partial(answers, port, "/healthz", ca_file=self.plane.ca_file)
        return self._process("kube-scheduler", self._programs.kube_scheduler, flags, ready)

    def _dns(self, address: str) -> Process:
        kubeconfig = self.plane.kubeconfig_for("dns", token=self.plane.pki.tokens[DNS])
        file = configuration.write(self.directory / "Corefile", configuration.coredns(address, kubeconfig))
        ready = partial(answers, 8181, "/ready", host=address)
        return self._process("coredns", self._programs.coredns, {"conf": str(file)}, ready)

    def _process(
        self, name: str, program: Path, flags: Mapping[str, str], ready: Callable[[], bool]
    ) -> Process:
        return Process(name, program, flags, directory=self.directory, ready=ready, detached=self._detached)
