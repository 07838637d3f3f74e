"""The contestants that rewrite all objects, each in its own way, and how their work is measured.

Each assumes that the storage version was changed and has settled, and ends when it reports success; whether
that is true is then read from etcd.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from crdkeeper.api.meta import API_VERSION, VERSION
from crdkeeper.api.meta import GROUP as OUR_GROUP
from crdkeeper.api.storagemigration import StorageMigration
from tests.benchmark.meter import Meter, Reading, Usage, peak_memory, reset_peak_memory
from tests.benchmark.server import Server
from tests.benchmark.subject import GROUP, PLURAL, PREFIX, WrongResult
from tests.cluster.harness.operator import Operator
from tests.controlplane.plane import ControlPlane

SERVERS: Final = ("kube-apiserver", "etcd")
OPERATOR: Final = "crdkeeper"
CONTROLLERS: Final = "kube-controller-manager"

_IDLE_SECONDS = 5.0
_ROOT = Path(__file__).parents[2]
_SILENCE_SECONDS = 300.0
"""A contestant that is silent for this long has failed."""
_IN_TREE_SECONDS = 7200.0
"""The in-tree migration reports nothing before its end."""
_IN_TREE = "storagemigration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Work:
    """The cost of rewriting all objects. `whole` includes what the contestant does before and after."""

    usage: Usage
    whole: Usage | None = None
    peak_memory: int | None = None
    began_at: float = 0.0
    """By the monotonic clock."""

    def without(self, idle: Usage) -> "Work":
        """What the work alone has used."""
        whole = self.whole.without(idle) if self.whole else None
        return Work(self.usage.without(idle), whole, self.peak_memory, self.began_at)

    @property
    def client_cpu(self) -> float:
        """CPU seconds of the contestant's own process."""
        return sum(used for name, used in self.usage.cpu.items() if name not in SERVERS)

    def to_object(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "rewriting": self.usage.to_object(),
            "whole": self.whole.to_object() if self.whole else None,
            "peakMemoryBytes": self.peak_memory,
        }


def server_pids(plane: ControlPlane) -> dict[str, int]:
    """The processes that all contestants keep busy."""
    return dict(zip(SERVERS, (plane.api_servers[0].pid, plane.etcd_process.pid), strict=True))


def idle(plane: ControlPlane, operator: Operator) -> Usage:
    """The usage of all processes while no contestant works."""
    pids = {**server_pids(plane), OPERATOR: operator.pid}
    if plane.controller_manager is not None:
        pids[CONTROLLERS] = plane.controller_manager.pid
    meter = Meter(pids)
    before = meter.read()
    time.sleep(_IDLE_SECONDS)
    return before.until(meter.read())


def crdkeeper(
    plane: ControlPlane,
    operator: Operator,
    name: str,
    *,
    limits: Mapping[str, int] | None = None,
    watched: Callable[[dict[str, Any]], None] = lambda migration: None,
) -> Work:
    """A StorageMigration by the operator: a separate process with its own ServiceAccount.

    Measured from the condition Settled to Rewritten, so with listing all objects; as a whole up to Succeeded,
    with the second pass that proves it and the trim. `watched` is called with each state of the migration.
    """
    reset_peak_memory(operator.pid)
    meter = Meter({**server_pids(plane), OPERATOR: operator.pid})
    begin(plane, name, limits=dict(limits or {}))
    path = f"/apis/{OUR_GROUP}/{VERSION}/{StorageMigration.plural}"
    events = _tapped(Server(plane.kubeconfig).watch(path, name, _SILENCE_SECONDS), watched)
    seen = milestones(events, meter, ("Settled", "Rewritten", "Succeeded"))
    return Work(
        seen["Settled"].until(seen["Rewritten"]),
        whole=seen["Settled"].until(seen["Succeeded"]),
        peak_memory=peak_memory(operator.pid),
        began_at=seen["Settled"].at,
    )


def _tapped(
    events: Iterator[dict[str, Any]], watched: Callable[[dict[str, Any]], None]
) -> Iterator[dict[str, Any]]:
    for each in events:
        watched(each)
        yield each


def bare_client(
    plane: ControlPlane, kubeconfig: Path, version: str, at_once: Sequence[int]
) -> dict[int, tuple[int, Usage]]:
    """The same patches from `bareclient`, with that many concurrently; each number's objects and usage.

    Measured from the first patch to the last answer; the list was prepared before.
    """
    return _bare(plane, kubeconfig, version, "--at-once", *map(str, at_once))


def by_page(plane: ControlPlane, kubeconfig: Path, version: str) -> Work:
    """As Cluster API's migrator: a page of metadata, then patch by patch. Measured with listing."""
    _, usage = _bare(plane, kubeconfig, version, "--by-page")[1]
    return Work(usage)


def _bare(plane: ControlPlane, kubeconfig: Path, version: str, *how: str) -> dict[int, tuple[int, Usage]]:
    meter = [f"{name}={pid}" for name, pid in server_pids(plane).items()]
    command = [sys.executable, "-m", "tests.benchmark.bareclient", f"--kubeconfig={kubeconfig}"]
    command += ["--resource", GROUP, version, PLURAL, *how, "--meter", *meter]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongResult(f"the bare client failed: {done.stderr.strip()[-2000:]}")
    return {
        each["atOnce"]: (each["objects"], Usage.from_object(each["usage"]))
        for each in json.loads(done.stdout)
    }


def in_tree(plane: ControlPlane, name: str) -> Work:
    """A StorageVersionMigration by kube-controller-manager, whose whole CPU time counts as the client's.

    Measured from the first rewritten object to the condition Succeeded: without the time, up to a minute, for
    which it waits until its garbage collector's cache is recent enough.
    """
    controllers = plane.controller_manager
    if controllers is None:
        raise WrongResult("there is no kube-controller-manager: use --skip-in-tree")
    meter = Meter({**server_pids(plane), CONTROLLERS: controllers.pid})
    revision, created = plane.etcd.revision(), meter.read()
    _create(
        plane, _IN_TREE, "StorageVersionMigration", name, {"resource": {"group": GROUP, "resource": PLURAL}}
    )
    deadline = time.monotonic() + _SILENCE_SECONDS
    while not plane.etcd.written_since(PREFIX, revision):
        if time.monotonic() > deadline:
            raise WrongResult("the in-tree migration has not begun")
        time.sleep(0.1)
    begun = meter.read()
    path = f"/apis/{_IN_TREE}/storageversionmigrations"
    events = Server(plane.kubeconfig).watch(path, name, _IN_TREE_SECONDS)
    seen = milestones(events, meter, ("Succeeded",))
    return Work(begun.until(seen["Succeeded"]), whole=created.until(seen["Succeeded"]))


def begin(plane: ControlPlane, name: str, **more: Any) -> None:
    """Creates a StorageMigration of all objects, with more in its spec."""
    spec = {
        "resource": {"group": GROUP, "resource": PLURAL},
        # The change has settled already, and no API server is left that has not seen it.
        "settleSeconds": 1,
        "apiServerLeases": "Ignore",
        **more,
    }
    _create(plane, API_VERSION, StorageMigration.__name__, name, spec)


def _create(plane: ControlPlane, api_version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    plane.kubectl("create", "-f", "-", input=json.dumps(manifest))


def milestones(events: Iterator[dict[str, Any]], meter: Meter, wanted: Sequence[str]) -> dict[str, Reading]:
    """The meters when each of the conditions becomes True, up to the last one."""
    seen: dict[str, Reading] = {}
    while wanted[-1] not in seen:
        migration = next(events)
        conditions = {each["type"]: each for each in migration.get("status", {}).get("conditions", ())}
        _refuse_failure(migration["metadata"]["name"], conditions)
        for type_ in wanted:
            if type_ not in seen and conditions.get(type_, {}).get("status") == "True":
                seen[type_] = meter.read()
    return seen


def _refuse_failure(name: str, conditions: Mapping[str, Mapping[str, Any]]) -> None:
    for type_, bad in (("Succeeded", "False"), ("Failed", "True")):
        if conditions.get(type_, {}).get("status") == bad:
            raise WrongResult(f"migration {name} fails: {conditions[type_]['message']}")
