"""Processes `python -m crdkeeper …` that need not import crdkeeper.

The imports take most of a second of CPU, and the tests start thousands of processes. These are forks of a
process that has them (`forkserver`), with their own session, environment, and standard streams. There are
two of it, which take turns: as any two processes, they differ in the order of sets. How crdkeeper itself
starts is for the tests of the deployment, the image and the nodes, and for the demos.
"""

import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from tests.controlplane.processes import Process, Running

_ROOT: Final = Path(__file__).parents[3]
_PATIENCE_SECONDS: Final = 120.0
"""For the imports of the server, on a busy machine."""


class Forked:
    """One such process, with what subprocess.Popen offers."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """Its exit status as in subprocess (negative: by a signal); None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended. Raises subprocess.TimeoutExpired."""
        status = self._look(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Signals it unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        with selectors.DefaultSelector() as selector:
            selector.register(self._status, selectors.EVENT_READ)
            if not selector.select(timeout):
                return None
        self.returncode = int(os.read(self._status, 16) or -signal.SIGKILL)
        os.close(self._status)
        return self.returncode


class _Server:
    def __init__(self, seed: int) -> None:
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.cluster.harness.forkserver"]
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(os.getpid())],
                cwd=_ROOT,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONHASHSEED": str(seed)},
                start_new_session=True,
            )
        self._connection.settimeout(_PATIENCE_SECONDS)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def start(
        self,
        arguments: Sequence[str],
        streams: Sequence[int],
        environment: Mapping[str, str],
        *,
        session: bool,
    ) -> Forked:
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "session": session,
            "server": self._process.pid,
        }
        reading, writing = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._connection, [json.dumps(request).encode()], [writing, *streams])
                pid = int(self._connection.recv(64))
        finally:
            os.close(writing)
        return Forked(pid, reading)


_servers: deque[_Server] = deque()
"""Those of this test run, if there are any: the next one first."""


@contextmanager
def preloading() -> Iterator[None]:
    """Has the processes of crdkeeper that begin meanwhile be forks; those that are left then are killed."""
    _servers.extend(_Server(secrets.randbelow(2**32)) for _ in range(2))
    try:
        yield
    finally:
        while _servers:
            _servers.pop().close()


def start(
    arguments: Sequence[str],
    *,
    stdout: IO[bytes],
    stderr: IO[bytes] | int,
    environment: Mapping[str, str] | None = None,
    session: bool = False,
) -> Running:
    """Starts `crdkeeper ARGUMENTS` with nothing to read, and in a session of its own if wanted."""
    if not _servers:
        return subprocess.Popen(
            [sys.executable, "-m", "crdkeeper", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            start_new_session=session,
        )
    _servers.rotate()
    error = stderr if isinstance(stderr, int) else stderr.fileno()
    with Path(os.devnull).open("rb") as nothing:
        streams = [nothing.fileno(), stdout.fileno(), error]
        return _servers[-1].start(
            arguments, streams, os.environ if environment is None else environment, session=session
        )


def crdkeeper(
    name: str,
    flags: Mapping[str, str],
    *,
    arguments: Sequence[str],
    directory: Path,
    ready: Callable[[], bool],
    user: int | None = None,
    preloaded: bool = True,
) -> Process:
    """`crdkeeper ARGUMENTS FLAGS` as a Process, which imports all anew where no server preloads it."""
    return Process(
        name,
        Path(sys.executable),
        flags,
        arguments=("-m", "crdkeeper", *arguments),
        directory=directory,
        ready=ready,
        user=user,
        spawn=_spawned(arguments, flags) if preloaded and user is None and _servers else None,
    )


def _spawned(arguments: Sequence[str], flags: Mapping[str, str]) -> Callable[[IO[bytes]], Running]:
    command = [*arguments, *(f"--{flag}={value}" for flag, value in flags.items())]
    return lambda log: start(command, stdout=log, stderr=log, session=True)
