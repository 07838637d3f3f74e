"""The machines of a cluster, and the network that connects only them.

The first one also contains the control plane and the tests' clients. The others are connected to a bridge in
it. All clusters have the same addresses, because they cannot meet.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.flags import SERVICES
from tests.controlplane.processes import LAUNCH, Process
from tests.node import cgroups

SCRIPT = Path(__file__).with_name("machine.py")
BRIDGE = "nodes"
POD_NETWORK = "10.244.0.0/16"
_CLONE_NEWNET = 0x40000000


class CommandFailed(RuntimeError):
    """A program inside a machine failed; the message contains its output."""


def address(index: int) -> str:
    """The address of the machine of that number."""
    return f"10.99.0.{index + 1}"


def server_address(index: int) -> str:
    """The address of a further API server, in the first machine."""
    return f"10.99.0.{index + 100}"


def pod_range(index: int) -> str:
    """The addresses of the pods of that machine."""
    return f"10.244.{index}.0/24"


class Machine:
    """One machine, with its files below its own directory, and its processes in a cgroup."""

    def __init__(self, cluster: str, index: int, *, directory: Path, detached: bool) -> None:
        self.index = index
        self.name = f"node-{index}"
        self.address = address(index)
        self.files = directory / self.name
        self.cgroup = f"{cluster}/{self.name}"
        """Where its pods are, in each hierarchy."""
        self._directory = directory
        self._detached = detached
        system = f"{self.cgroup}-system"
        cgroups.create(self.cgroup)
        cgroups.create(system)
        self._system = cgroups.marking(system)
        self._holder = Process(
            f"machine-{index}",
            Path(sys.executable),
            {"name": self.name, "directory": str(self.files)},
            arguments=("-I", "-S", str(SCRIPT)),
            directory=directory,
            ready=(self.files / "ready").exists,
            cgroup=self._system,
            detached=detached,
        )

    @property
    def pid(self) -> int:
        """The process whose namespaces (network, mounts…) are the machine's."""
        return self._holder.pid

    def start(self) -> None:
        """Switches it on: nothing runs in it yet, and its network is not connected."""
        (self.files / "ready").unlink(missing_ok=True)
        shutil.rmtree(
            self.files / "run", ignore_errors=True
        )  # no machine has this from before it was switched on
        self._holder.start()
        self._holder.wait_ready()
        self.run("ip", "link", "set", "lo", "up")
        # It routes between its pods and the others, and to Services until they become pod addresses.
        self.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def stop(self) -> None:
        """Kills everything in it, like a power failure, and waits until it is gone."""
        self._holder.stop(grace=30)

    def process(self, name: str, program: Path, flags: dict[str, str], **arguments: object) -> Process:
        """A program inside, not started yet; the keywords are those of Process."""
        return Process(
            f"{name}-{self.index}",
            program,
            flags,
            directory=self._directory,
            cgroup=self._system,
            machine=self.pid,
            detached=self._detached,
            **arguments,  # type: ignore[arg-type]
        )

    def command(self, *words: str | Path) -> list[str]:
        """A command line that runs these words inside."""
        launch = [sys.executable, "-I", "-S", str(LAUNCH)]
        return [*launch, "--cgroup", str(self._system), "--machine", str(self.pid), "--", *map(str, words)]

    def run(self, program: str | Path, *words: str | Path, timeout: float = 120.0) -> str:
        """The output of a program, run inside to its end. Raises CommandFailed."""
        path = program if isinstance(program, Path) else _find(program)
        done = subprocess.run(
            self.command(path, *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        if done.returncode:
            said = (done.stdout + done.stderr).strip()
            raise CommandFailed(f"{path.name} {' '.join(map(str, words))}: status {done.returncode}\n{said}")
        return done.stdout

    @contextmanager
    def network(self) -> Iterator[None]:
        """Moves this thread, and the processes and threads that it starts, into the machine's network."""
        with Path("/proc/thread-self/ns/net").open() as before:
            with Path(f"/proc/{self.pid}/ns/net").open() as inside:
                _enter_network(inside.fileno())
            try:
                yield
            finally:
                _enter_network(before.fileno())


def connect(machines: Sequence[Machine], more: Sequence[str] = ()) -> None:
    """Connects the machines, by a bridge in the first and a virtual cable each, and to nothing else.

    The first one has `more` addresses, too.
    """
    first, *others = machines
    first.run("ip", "link", "add", BRIDGE, "type", "bridge")
    # A bridge without a port is down; this one has a port that leads nowhere.
    first.run("ip", "link", "add", "nowhere", "type", "veth", "peer", "name", "nowhere-end")
    for port in ("nowhere", "nowhere-end"):
        first.run("ip", "link", "set", port, "up")
    first.run("ip", "link", "set", "nowhere", "master", BRIDGE)
    _configure(first, BRIDGE, count=len(machines))
    for address_ in more:
        first.run("ip", "address", "add", f"{address_}/32", "dev", BRIDGE)
    for each in others:
        plug_in(first, each, count=len(machines))


def plug_in(first: Machine, machine: Machine, *, count: int) -> None:
    """Connects a machine, one of several, that has just been switched on."""
    port = f"to-{machine.name}"
    # By process id as seen from outside: `ip` runs only in the first machine's network, not in its process
    # table.
    with first.network():
        for words in (
            ["link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(machine.pid)],
            ["link", "set", port, "master", BRIDGE, "up"],
        ):
            subprocess.run([_find("ip"), *words], check=True, capture_output=True, text=True)
    _configure(machine, "eth0", count=count)


def _configure(machine: Machine, device: str, *, count: int) -> None:
    machine.run("ip", "address", "add", f"{machine.address}/24", "dev", device)
    machine.run("ip", "link", "set", device, "up")
    # Addresses of Services exist nowhere, but need a route to reach kube-proxy's rules.
    machine.run("ip", "route", "add", SERVICES, "dev", device)
    for other in range(count):
        if other != machine.index:
            machine.run("ip", "route", "add", pod_range(other), "via", address(other))


def _find(program: str) -> Path:
    for directory in (*os.environ.get("PATH", "").split(":"), "/usr/sbin", "/sbin"):
        if directory and (found := Path(directory) / program).is_file():
            return found
    raise CommandFailed(f"there is no `{program}`")


def _enter_network(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
