"""Resource usage of processes: CPU seconds and peak memory from /proc, for any process."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE_FIELDS = (3, 4)
"""Of a cpu line in /proc/stat: idle and iowait."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage in a span of time: CPU seconds of each process by name, and of all others together."""

    seconds: float
    cpu: Mapping[str, float]
    others: float

    def without(self, idle: "Usage") -> "Usage":
        """Without what each process would have used when idle."""
        share = self.seconds / idle.seconds
        less = {name: max(0.0, used - share * idle.cpu.get(name, 0.0)) for name, used in self.cpu.items()}
        return Usage(self.seconds, less, self.others)

    def plus(self, other: "Usage") -> "Usage":
        """The sum, for consecutive spans."""
        cpu = {name: used + other.cpu[name] for name, used in self.cpu.items()}
        return Usage(self.seconds + other.seconds, cpu, self.others + other.others)

    def to_object(self) -> dict[str, Any]:
        """As JSON."""
        return {"seconds": self.seconds, "cpu": dict(self.cpu), "others": self.others}

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> Self:
        """What `to_object` made."""
        return cls(found["seconds"], found["cpu"], found["others"])


@dataclass(frozen=True, slots=True)
class Reading:
    """All meters at one moment."""

    at: float
    cpu: Mapping[str, float]
    machine: float

    def until(self, end: "Reading") -> Usage:
        """The usage between this reading and a later one."""
        cpu = {name: end.cpu[name] - before for name, before in self.cpu.items()}
        return Usage(end.at - self.at, cpu, max(0.0, end.machine - self.machine - sum(cpu.values())))


class Meter:
    """Reads the meters of some processes, under the given names."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self.pids = dict(pids)

    def read(self) -> Reading:
        """The current values."""
        cpu = {name: cpu_seconds(pid) for name, pid in self.pids.items()}
        return Reading(time.monotonic(), cpu, machine_seconds())


def reset_peak_memory(pid: int) -> None:
    """Resets the kernel's record of the process' peak size."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_memory(pid: int) -> int:
    """The largest resident size since the last reset, in bytes."""
    return _memory(pid, "VmHWM")


def resident_memory(pid: int) -> int:
    """The current resident size, in bytes."""
    return _memory(pid, "VmRSS")


def proportional_memory(pid: int) -> int:
    """The current resident size, in which pages that processes share count in parts; in bytes."""
    return _memory(pid, "Pss", file="smaps_rollup")


def memory_with_children(pid: int) -> int:
    """The `proportional_memory` of a process and all its descendants, in bytes."""
    total = proportional_memory(pid)
    for child in _children(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            total += memory_with_children(child)
    return total


def _memory(pid: int, which: str, *, file: str = "status") -> int:
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == which:
            return int(value.split()[0]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory: it has ended")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, and of all descendants, such as the webhook's workers.

    The time of a child that has ended counts once its parent has waited for it.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used = sum(map(int, fields[11:15])) / _TICKS
    for child in _children(pid):
        with suppress(FileNotFoundError):
            used += cpu_seconds(child)
    return used


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}").glob("task/*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def machine_seconds() -> float:
    """CPU time used by all processes together."""
    line = Path("/proc/stat").read_text().partition("\n")[0]
    ticks = [int(field) for field in line.split()[1:9]]
    return sum(value for index, value in enumerate(ticks) if index not in _IDLE_FIELDS) / _TICKS
