"""The cgroups of a cluster: one below the root of each hierarchy, with everything that its nodes run.

They identify its processes even if nothing else does, whatever their parents.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PREFIX = "crdkeeper-"
_ENDS_SECONDS = 30.0


class CgroupsLeft(RuntimeError):
    """Processes or cgroups that cannot be removed."""


def hierarchies() -> dict[Path, bool]:
    """Where cgroup hierarchies are mounted; True for version 2."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.split()[0] in ("cgroup", "cgroup2"):
            found[Path(fields.split()[4])] = kind.startswith("cgroup2 ")
    return found


def create(name: str) -> None:
    """Creates `name` (with slashes for levels) in each hierarchy. A kubelet requires its root beforehand."""
    for root, second in hierarchies().items():
        parent = root
        for level in Path(name).parts:
            if second:
                _delegate(parent)
            group = parent / level
            group.mkdir(exist_ok=True)
            for inherited in ("cpuset.cpus", "cpuset.mems"):  # empty at first in version 1
                if not second and (parent / inherited).exists():
                    (group / inherited).write_text((parent / inherited).read_text())
            parent = group


def _delegate(group: Path) -> None:
    """Has the cgroups below it account their usage, which version 2 does not do by default."""
    for controller in (group / "cgroup.controllers").read_text().split():
        (group / "cgroup.subtree_control").write_text(f"+{controller}")


def marking(name: str) -> Path:
    """The cgroup in which processes outside pods start: in a hierarchy that nothing else depends on."""
    roots = hierarchies()
    best = min(roots, key=lambda root: (not roots[root], (root / "cpuset.cpus").exists(), root))
    return best / name


def names() -> set[str]:
    """All clusters that have a cgroup."""
    return {group.name for root in hierarchies() for group in root.glob(f"{PREFIX}*") if group.is_dir()}


def processes(name: str) -> set[int]:
    """All processes in it, at any level."""
    return {pid for group in _groups(name) for pid in pids(group)}


def remove(name: str) -> None:
    """Kills all that runs in it and removes it. Raises CgroupsLeft."""
    deadline = time.monotonic() + _ENDS_SECONDS
    while alive := processes(name):
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise CgroupsLeft(f"these processes of {name} do not end: {sorted(alive)}")
        time.sleep(0.05)
    while groups := list(_groups(name)):
        for group in groups:
            try:
                group.rmdir()
            except OSError as error:  # the last process has ended, but the kernel has not processed that yet
                if time.monotonic() > deadline:
                    raise CgroupsLeft(f"cannot remove {group}: {error}") from None
        time.sleep(0.05)


def _groups(name: str) -> Iterator[Path]:
    """The cgroups of that name with all below, the deepest first."""
    for root in hierarchies():
        if (root / name).is_dir():
            yield from sorted(
                (group for group in [root / name, *(root / name).rglob("*")] if group.is_dir()),
                key=lambda group: -len(group.parts),
            )


def pids(group: Path) -> list[int]:
    """The processes of one cgroup, without those below it."""
    try:
        return [int(each) for each in (group / "cgroup.procs").read_text().split()]
    except OSError:  # it has just gone
        return []
