"""How many processes a replica can use: as many as its cgroup allows cores."""

from pathlib import Path
from typing import Final

MOST_PROCESSES: Final = 64


def processes_by_limit(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """The CPU limit of this process' cgroup (v2) and those above it, rounded up; 1 without any limit.

    Not the number of cores: a replica without a limit shares them with others, and each process takes memory.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return 1
    path = next((each[len("0::/") :] for each in lines if each.startswith("0::/")), "")
    group = root / path
    above = [each for each in (group, *group.parents) if each.is_relative_to(root)]
    limits = [limit for each in above if (limit := _limit(each / "cpu.max"))]
    return min(min(limits, default=1), MOST_PROCESSES)


def _limit(file: Path) -> int:
    """In whole cores; 0 without a limit."""
    try:
        quota, period = file.read_text().split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return 0  # "max", or the root cgroup, which has no such file
