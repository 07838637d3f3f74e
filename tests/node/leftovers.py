"""What a cluster leaves on the real machine, and its removal.

Nearly everything ends by itself (see machine.py). For the rest, a record of each cluster in /run says whose
it is: the next start removes those whose owner was killed. Only what carries our names is ever touched.
"""

import fcntl
import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import pids
from tests.controlplane.pids import ProcessId
from tests.node import cgroups

RECORDS = Path("/run/crdkeeper-nodes")

# Where the programs of a node would write outside their own machines.
NEVER_OURS = (
    "/run/containerd",
    "/run/netns",
    "/run/flannel",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
    "/etc/cni",
    "/opt/cni",
    "/usr/libexec/kubernetes",
)


class LeftBehind(RuntimeError):
    """Something of a cluster remains after its end; the message lists all of it."""


@dataclass(frozen=True)
class Record:
    """One cluster: the name of its cgroups, its directory, and its owner process."""

    name: str
    directory: Path
    owner: ProcessId | None
    """None for a cluster that remains until someone ends it."""
    before: frozenset[str]
    """The parts of NEVER_OURS that existed before it."""

    @property
    def path(self) -> Path:
        """The file that holds it."""
        return RECORDS / f"{self.name}.json"

    @property
    def stale(self) -> bool:
        """Whether nobody can end it any more."""
        return not self.directory.is_dir() if self.owner is None else not self.owner.alive

    def write(self) -> None:
        """Saves it."""
        owner = None if self.owner is None else {"pid": self.owner.pid, "started": self.owner.started}
        content = {"directory": str(self.directory), "owner": owner, "before": sorted(self.before)}
        self.path.write_text(json.dumps(content))


def claim(directory: Path, *, owner: ProcessId | None) -> Record:
    """Records that a cluster is about to be created; removes the remains of those whose owner is gone."""
    directory.mkdir(parents=True, exist_ok=True)
    with _locked():
        _sweep()
        record = Record(f"{cgroups.PREFIX}{secrets.token_hex(4)}", directory, owner, frozenset(_never_ours()))
        record.write()
    return record


def sweep() -> None:
    """Removes the remains of clusters whose owner is gone. Raises LeftBehind and CgroupsLeft."""
    with _locked():
        _sweep()


def of(directory: Path) -> Record | None:
    """The record of the cluster in that directory."""
    return next((each for each in _records() if each.directory == directory), None)


def remove(record: Record) -> None:
    """Ends a cluster and removes everything but its logs. Raises LeftBehind and CgroupsLeft."""
    pids.kill_all(record.directory / "pids")
    cgroups.remove(record.name)
    if record.directory.is_dir():
        for each in record.directory.iterdir():
            if each.name != "logs":
                shutil.rmtree(each) if each.is_dir() else each.unlink()
    if left := list(found(record)):
        raise LeftBehind(f"{record.name} is not gone: {'; '.join(left)}")
    record.path.unlink(missing_ok=True)


def found(record: Record) -> Iterator[str]:
    """What exists of a cluster: nothing, after its end."""
    for pid in sorted(cgroups.processes(record.name)):
        yield f"process {pid} ({_command(pid)})"
    for file in sorted((record.directory / "pids").glob("*.json")):
        if ProcessId.read(file).alive:
            yield f"process {file.stem}"
    if record.name in cgroups.names():
        yield f"cgroups called {record.name}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = Path(line.split()[4])
        if place.is_relative_to(record.directory):
            yield f"mount {place}"
    for path in _never_ours():
        if path not in record.before:
            yield path


def _sweep() -> None:
    known = set()
    for record in _records():
        if record.stale:
            remove(record)
            shutil.rmtree(record.directory, ignore_errors=True)
        else:
            known.add(record.name)
    for name in cgroups.names() - known:
        cgroups.remove(name)


def _records() -> Iterator[Record]:
    for file in sorted(RECORDS.glob(f"{cgroups.PREFIX}*.json")):
        content = json.loads(file.read_text())
        owner = content["owner"] and ProcessId(**content["owner"])
        yield Record(file.stem, Path(content["directory"]), owner, frozenset(content["before"]))


@contextmanager
def _locked() -> Iterator[None]:
    """One at a time: a cluster that is being created has no cgroups yet, or no record."""
    RECORDS.mkdir(mode=0o700, exist_ok=True)
    with (RECORDS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _never_ours() -> Iterator[str]:
    for each in NEVER_OURS:
        path = Path(each)
        if path.exists():
            yield each
            yield from (str(entry) for entry in path.iterdir())


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return "?"
