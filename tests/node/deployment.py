"""crdkeeper on a cluster as its users have it: installed from its manifests, in pods."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.cluster.harness.installation import MANIFESTS, NAMESPACE, install
from tests.controlplane.plane import ControlPlane
from tests.node import cgroups
from tests.node.cluster import NodeCluster

OPERATOR: Final = "crdkeeper-operator"
WEBHOOK: Final = "crdkeeper-webhook"
COMPOSER: Final = "crdkeeper-composer"
DEPLOYMENTS: Final = (OPERATOR, WEBHOOK)
"""Of manifests/; the composer has its own."""
REPLICAS: Final = 2
READY_SECONDS: Final = 240

_T = TypeVar("_T")


@dataclass(frozen=True)
class Pod:
    """A pod of a Deployment that is not being deleted."""

    name: str
    uid: str
    node: str
    ready: bool
    restarts: int
    request: str
    """The memory that it requests, as in the manifest."""

    @classmethod
    def of(cls, found: dict[str, Any]) -> "Pod":
        """From the API."""
        (container,) = found["spec"]["containers"]
        statuses = found["status"].get("containerStatuses") or []
        return cls(
            name=found["metadata"]["name"],
            uid=found["metadata"]["uid"],
            node=found["spec"].get("nodeName", ""),
            ready=bool(statuses) and all(each["ready"] for each in statuses),
            restarts=sum(each["restartCount"] for each in statuses),
            request=container["resources"]["requests"]["memory"],
        )


class Deployment:
    """An installation on a cluster, and operations on its pods. Use it in the cluster's network."""

    def __init__(self, cluster: NodeCluster) -> None:
        self.cluster = cluster
        self.plane: ControlPlane = cluster.plane

    def kubectl(self, *words: str, **options: Any) -> str:
        """kubectl in crdkeeper's namespace."""
        return self.plane.kubectl(f"--namespace={NAMESPACE}", *words, **options)

    def apply(self) -> None:
        """Installs it with the documented command, and returns when all pods are ready."""
        install(self.plane)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Returns when each Deployment has all its replicas, from its newest template, ready."""
        self._wait_ready(*DEPLOYMENTS)

    def apply_composer(self) -> None:
        """Installs the composer beside it, and returns when its pods are ready."""
        self.plane.kubectl("apply", "--server-side", f"--kustomize={MANIFESTS / 'composer'}")
        self._wait_ready(COMPOSER)

    def delete_composites(self) -> None:
        """Deletes all composites and definitions, while the composer may still see the composites."""
        for kind in ("composite", "cxrd"):  # the first one is the category of all composites
            self.plane.kubectl("delete", kind, "--all", "--all-namespaces", "--timeout=180s", check=False)

    def delete_composer(self) -> None:
        """Uninstalls the composer, which is refused while there are definitions."""
        manifests = f"--kustomize={MANIFESTS / 'composer'}"
        self.plane.kubectl("delete", manifests, "--ignore-not-found", "--timeout=180s")

    def _wait_ready(self, *deployments: str) -> None:
        for each in deployments:
            self.kubectl("rollout", "status", f"deployment/{each}", f"--timeout={READY_SECONDS}s")
        until(lambda: all(len(self.ready(each)) == REPLICAS for each in deployments), READY_SECONDS)

    def delete(self, *flags: str) -> str:
        """Uninstalls it with the documented command; returns kubectl's output."""
        words = ("delete", f"--kustomize={MANIFESTS}", "--ignore-not-found", *flags)
        return self.plane.kubectl(*words, check=False)

    def pods(self, deployment: str, *, going: bool = False) -> list[Pod]:
        """Its pods; on request also those that are being deleted."""
        component = deployment.removeprefix("crdkeeper-")
        selector = f"--selector=app.kubernetes.io/component={component}"
        found = json.loads(self.kubectl("get", "pods", selector, "--output=json"))["items"]
        return [Pod.of(each) for each in found if ("deletionTimestamp" in each["metadata"]) == going]

    def ready(self, deployment: str) -> list[Pod]:
        """Those that are ready."""
        return [each for each in self.pods(deployment) if each.ready]

    def leader(self) -> str:
        """The pod that holds the operator's Lease."""
        return self.kubectl("get", "lease", OPERATOR, "--output=jsonpath={.spec.holderIdentity}")

    def leading(self) -> Pod:
        """The pod that holds it, once all replicas are ready and one of them does."""

        def found() -> Pod | None:
            ready = self.ready(OPERATOR)
            leader = self.leader()
            return next((each for each in ready if each.name == leader and len(ready) == REPLICAS), None)

        return until(found, READY_SECONDS, lambda: f"{self.leader()} of {self.pods(OPERATOR)}")

    def processes(self, pod: Pod) -> set[int]:
        """The process ids of crdkeeper in a pod, as seen from outside."""
        found = {pid for group in self._containers(pod) for pid in cgroups.pids(group)}
        return {pid for pid in found if b"crdkeeper" in Path(f"/proc/{pid}/cmdline").read_bytes()}

    def kill(self, pod: Pod) -> None:
        """Kills the processes of a pod; its kubelet then restarts them."""
        processes = self.processes(pod)
        assert processes
        for pid in processes:
            with suppress(ProcessLookupError):  # all others of a container end with its first one
                os.kill(pid, signal.SIGKILL)

    def replace(self, *pods: str) -> None:
        """Replaces pods whose containers a test has killed, if any: other tests count restarts."""
        if pods:
            self.kubectl("delete", "pod", *pods, "--ignore-not-found", "--wait=false")
        self.wait_ready()

    def memory(self, pod: Pod) -> int:
        """The bytes that a pod uses by its cgroup, as counted by kubelets: without reclaimable pages."""
        (group,) = self._groups(pod, "memory.usage_in_bytes", "memory.current")
        name = "memory.usage_in_bytes" if (group / "memory.usage_in_bytes").exists() else "memory.current"
        inactive = "total_inactive_file" if name == "memory.usage_in_bytes" else "inactive_file"
        figures = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return int((group / name).read_text()) - int(figures[inactive])

    def _containers(self, pod: Pod) -> Iterator[Path]:
        for group in self._groups(pod, "cgroup.procs"):
            yield from (each for each in group.iterdir() if each.is_dir())

    def _groups(self, pod: Pod, *having: str) -> Iterator[Path]:
        """The pod's cgroups, in the hierarchies that have one of these files."""
        name = self.cluster.name
        for root in cgroups.hierarchies():
            for group in (root / name / pod.node).glob(f"kubepods/*/pod{pod.uid}"):
                if any((group / each).exists() for each in having):
                    yield group


@contextmanager
def no_new_pods(kubectl: Callable[..., str]) -> Iterator[None]:
    """No pod starts: one that goes away is not replaced before the end."""
    names = kubectl("get", "nodes", "--output=name").split()
    nodes = [each.removeprefix("node/") for each in names]
    kubectl("cordon", *nodes)
    try:
        yield
    finally:
        kubectl("uncordon", *nodes)


def until(look: Callable[[], _T | None], seconds: float, otherwise: Callable[[], str] = str) -> _T:
    """The result of `look`, as soon as it is true; fails after that many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"it never came to be: {otherwise()}"
        time.sleep(0.1)
    return found
