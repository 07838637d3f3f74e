"""The controllers of the benchmark of composites: ours, and kro's, each installed as documented."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from tests.benchmark import compositesubject as subject
from tests.benchmark.server import Server
from tests.cluster.harness.installation import MANIFESTS, NAMESPACE, install
from tests.cluster.harness.operator import Operator
from tests.controlplane.build import Module, build
from tests.controlplane.plane import ControlPlane
from tests.controlplane.probe import answers
from tests.controlplane.processes import Process

Json = Any
_ACCOUNT: Final = "crdkeeper-composer"
_KRO: Final = Module("kro", Path(__file__).parent / "kro", ("controller",))
_KRO_MODULE: Final = "github.com/kubernetes-sigs/kro"
_RAISED: Final = {
    "dynamic-controller-concurrent-reconciles": "16",
    "dynamic-controller-rate-limiter-rate-limit": "1000",
    "dynamic-controller-rate-limiter-burst-limit": "1000",
    "client-qps": "1000",
    "client-burst": "1500",
}
_TIMEOUT: Final = 120.0
_COMPOSED: Final = (("", ["configmaps", "serviceaccounts", "services"]), ("apps", ["deployments"]))


class Contestant(Protocol):
    """A controller that serves an API. Its process runs from `start` to `stop`."""

    title: str
    group: str
    user: str
    """As the API server knows it."""

    def define(self, objects: int, note: str) -> None:
        """Apply the API, or change it; returns when it is served."""

    def change(self, objects: int, note: str) -> None:
        """Let the template have another note; does not wait."""

    def remove(self) -> None:
        """Remove the API, without instances; the controller has to run."""

    def start(self) -> None:
        """Start the process; returns when it is ready."""

    def stop(self) -> None:
        """End it."""

    @property
    def pid(self) -> int:
        """Of the process."""


class Ours:
    """`crdkeeper compose run`."""

    title = "crdkeeper"
    group = "ours.example.com"
    user = f"system:serviceaccount:{NAMESPACE}:{_ACCOUNT}"
    _NAME = "apps"

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._server = Server(plane.kubeconfig)
        install(plane)
        install(plane, MANIFESTS / "composer")
        rules = [
            {"apiGroups": [group], "resources": list(kinds), "verbs": ["*"]}
            for group, kinds in ((self.group, ["*"]), *_COMPOSED)
        ]
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "composer-benchmark",
                "labels": {"rbac.crdkeeper.dev/aggregate-to-composer": "true"},
            },
            "rules": rules,
        }
        _apply(plane, role)
        self._process = Operator(plane, identity="composer", account=_ACCOUNT, command=("compose", "run"))

    def define(self, objects: int, note: str) -> None:
        definition = subject.definition(self.group)
        _apply(self._plane, definition)
        _wait(self._plane, "compositeresourcedefinition", definition["metadata"]["name"], "Ready")
        self.change(objects, note)
        _wait(self._plane, "composition", self._NAME, "Valid")

    def change(self, objects: int, note: str) -> None:
        _apply(self._plane, subject.composition(self.group, self._NAME, objects, note))

    def remove(self) -> None:
        self._plane.kubectl("delete", "composition", self._NAME)
        self._plane.kubectl("delete", "compositeresourcedefinition", f"{subject.PLURAL}.{self.group}")

    def start(self) -> None:
        self._process.start()

    def stop(self) -> None:
        if self._process.running:
            self._process.stop()

    @property
    def pid(self) -> int:
        return self._process.pid


class Kro:
    """kro's controller, with its defaults or with what limits it raised."""

    group = "kro.example.com"
    user = "system:serviceaccount:kro-system:kro"
    _NAME = "apps.kro.example.com"

    def __init__(self, plane: ControlPlane, *, raised: bool) -> None:
        self.title = "kro, raised" if raised else "kro"
        self._plane = plane
        program = build(_KRO) / "controller"
        port = plane.take_port()
        flags = {
            "kubeconfig": str(_account_of_kro(plane)),
            "health-probe-bind-address": f"127.0.0.1:{port}",
            "metrics-bind-address": "0",
            # As the chart has it.
            "zap-log-level": "info",
            "zap-devel": "false",
            # Else a restart waits for the Lease.
            "leader-elect": "false",
            "allow-crd-deletion": "true",
            **(_RAISED if raised else {}),
        }
        self._process = Process(
            f"kro{'-raised' if raised else ''}",
            program,
            flags,
            directory=plane.directory,
            ready=partial(answers, port, "/readyz"),
        )

    def define(self, objects: int, note: str) -> None:
        self.change(objects, note)
        _wait(self._plane, "resourcegraphdefinition", self._NAME, "Ready")

    def change(self, objects: int, note: str) -> None:
        _apply(self._plane, subject.graph(self.group, self._NAME, objects, note))

    def remove(self) -> None:
        self._plane.kubectl("delete", "resourcegraphdefinition", self._NAME)

    def start(self) -> None:
        self._process.start()
        self._process.wait_ready()

    def stop(self) -> None:
        self._process.stop()

    @property
    def pid(self) -> int:
        return self._process.pid


def _account_of_kro(plane: ControlPlane) -> Path:
    """kro's CRDs and its account, with the rights of its chart: all of them."""
    found = subprocess.run(
        ["go", "list", "-m", "-json", _KRO_MODULE],
        cwd=_KRO.directory,
        capture_output=True,
        text=True,
        check=True,
    )
    plane.kubectl("apply", "--server-side", "-f", f"{json.loads(found.stdout)['Dir']}/helm/crds")
    account = {"name": "kro", "namespace": "kro-system"}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    rbac = "rbac.authorization.k8s.io"
    for each in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": account["namespace"]}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "kro"}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kro"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "kro"},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ):
        _apply(plane, each)
    return plane.service_account_kubeconfig(account["namespace"], account["name"])


def _apply(plane: ControlPlane, value: Mapping[str, Json]) -> None:
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(value))


def _wait(plane: ControlPlane, resource: str, name: str, condition: str) -> None:
    plane.kubectl("wait", resource, name, f"--for=condition={condition}", f"--timeout={_TIMEOUT:.0f}s")


def until(holds: Callable[[], bool], what: str, seconds: float) -> None:
    """Returns when it holds; raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.2)
