"""One program of the control plane as a process: started, awaited, paused, killed, restarted, ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from tests.controlplane.pids import ProcessId

LAUNCH = Path(__file__).with_name("launch.py")
GRACE = 5.0
READY_TIMEOUT = 120.0


class Running(Protocol):
    """What is used of subprocess.Popen."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class ProcessFailed(RuntimeError):
    """A program ended or did not become ready; the message holds the end of its log."""


class Process:
    """A program with its log file and a file with its process id.

    Unless detached, it ends with the thread that started it, however that ends: start it from a thread that
    lives long enough (in pytest, the main thread). With a `user` it has that user id, which need not exist,
    and no environment. With a `machine`, the process id of one (tests/node), it runs in there, and can be
    ended but not paused. With `spawn`, that starts it, with its output in the file that it is given.
    """

    def __init__(
        self,
        name: str,
        program: Path,
        flags: Mapping[str, str],
        *,
        directory: Path,
        ready: Callable[[], bool],
        arguments: Sequence[str] = (),
        hostname: str | None = None,
        user: int | None = None,
        cgroup: Path | None = None,
        machine: int | None = None,
        detached: bool = False,
        spawn: Callable[[IO[bytes]], Running] | None = None,
    ) -> None:
        self.name = name
        self.command = [str(program), *arguments, *(f"--{flag}={value}" for flag, value in flags.items())]
        self.log = directory / "logs" / f"{name}.log"
        self._pid_file = directory / "pids" / f"{name}.json"
        self._ready = ready
        self._hostname = hostname
        self._user = user
        self._cgroup = cgroup
        self._machine = machine
        self._detached = detached
        self._spawn = spawn or self._launch
        self._process: Running | None = None

    @property
    def pid(self) -> int:
        """The id of the program's own process, of the last one if it has ended."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether the process exists (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """Its exit status as in subprocess (negative: by a signal); None while it runs."""
        return self._started().poll()

    def start(self) -> None:
        """Starts the program without waiting for it: see `wait_ready`."""
        if self.running:
            raise RuntimeError(f"{self.name} is already running")
        for directory in (self.log.parent, self._pid_file.parent):
            directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = self._spawn(log)
        ProcessId.of(self._process.pid).write(self._pid_file)

    def wait_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Returns when the program serves; raises with the end of its log if it ended or takes too long."""
        deadline = time.monotonic() + timeout
        while not self._ready():
            if not self.running:
                raise ProcessFailed(
                    f"{self.name} ended with status {self._started().returncode}{self._last_words()}"
                )
            if time.monotonic() > deadline:
                raise ProcessFailed(f"{self.name} was not ready after {timeout:.0f} s{self._last_words()}")
            time.sleep(0.05)

    def pause(self) -> None:
        """Stops all its threads (SIGSTOP): to the others it is slow, not gone."""
        if self._machine:
            raise RuntimeError(f"{self.name} runs in a machine: it cannot be paused from here")
        self._started().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resumes a paused process, with the state that it had."""
        self._started().send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kills it (SIGKILL); returns when it is gone."""
        process = self._started()
        process.kill()
        process.wait()
        self._pid_file.unlink(missing_ok=True)

    def terminate(self) -> None:
        """Sends SIGTERM without waiting. A paused process is resumed, because it could not end otherwise."""
        if self.running:
            self._started().terminate()
            self.resume()

    def stop(self, grace: float = GRACE) -> None:
        """Ends it by SIGTERM, after the grace period by SIGKILL; returns when it is, or already was, gone."""
        if self._process is None:
            return
        self.terminate()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._pid_file.unlink(missing_ok=True)

    def restart(self) -> None:
        """Ends it if it runs, starts it with the same flags and ports, and waits until it serves."""
        self.stop()
        self.start()
        self.wait_ready()

    def _launch(self, log: IO[bytes]) -> Running:
        return subprocess.Popen(
            self._launch_command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the tests, which end the programs in order
        )

    def _launch_command(self) -> list[str]:
        command = [sys.executable, "-I", "-S", str(LAUNCH)]
        if self._hostname:
            command += ["--hostname", self._hostname]
        if self._user is not None:
            command += ["--user", str(self._user)]
        if self._cgroup:
            command += ["--cgroup", str(self._cgroup)]
        if self._machine:
            command += ["--machine", str(self._machine)]
        if not self._detached:
            command += ["--parent", str(os.getpid())]
        return [*command, "--", *self.command]

    def _started(self) -> Running:
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-15:]
        return f"; the end of {self.log}:\n  " + "\n  ".join(lines)
