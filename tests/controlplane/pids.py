"""Process ids on disk that can be trusted later: by then, a pid may belong to another program."""

import json
import os
import select
import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class ProcessId:
    """A pid with the boot and the clock tick at which its process started: unique, unlike the pid."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self:
        """The identity of a running process."""
        started = _started(pid)
        if started is None:
            raise ProcessLookupError(f"there is no process {pid}")
        return cls(pid, started)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads what `write` has written."""
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        """Saves it atomically: a reader never sees half a file."""
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(self)))
        scratch.replace(path)

    @property
    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        return _started(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to exactly this process, or to none."""
        descriptor = self._open()
        if descriptor is not None:
            try:
                signal.pidfd_send_signal(descriptor, number)
            except ProcessLookupError:
                pass  # it ended by itself a moment ago
            finally:
                os.close(descriptor)

    def wait(self) -> None:
        """Returns when the process has ended."""
        descriptor = self._open()
        if descriptor is not None:
            try:
                select.select([descriptor], [], [])
            finally:
                os.close(descriptor)

    def _open(self) -> int | None:
        """A handle for the process. Its identity is checked last: an open handle cannot mean another one."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.alive:
            return descriptor
        os.close(descriptor)
        return None


def kill_all(directory: Path) -> None:
    """Kills all processes whose ids are saved in the directory, and returns when they are gone."""
    processes = [ProcessId.read(path) for path in directory.glob("*.json")]
    for process in processes:
        process.signal(signal.SIGKILL)
    for process in processes:
        process.wait()


def _started(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()  # the program's name before it may hold blanks
    return None if state in "ZX" else f"{boot}/{fields[18]}"
