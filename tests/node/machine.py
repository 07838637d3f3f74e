"""Becomes a machine of its own: run as a script, not imported.

It creates a network, a process table, a host name, and its own view of the file system, and keeps them until
it ends. Everything that runs inside ends with it (the kernel kills a process table whose first process is
gone), and with the last process the mounts and the network disappear: nothing needs to be cleaned up, however
it ended. A node's data in `/run`, `/var/lib` and `/var/log` goes to its own directories, so a kubelet or
containerd of the real machine is not affected.

Other programs enter with `launch.py --machine`, by this script's process id.
"""

import argparse
import ctypes
import os
import signal
import socket
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20
PR_SET_PDEATHSIG = 1

OWN = ("run", "var/lib", "var/log")

# Settings that a kubelet corrects. They belong to the kernel, not to the machine, so it would change them for
# everyone: it gets files with the values that it expects.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def main() -> None:
    """Parses `--name NAME --directory DIR` and waits for SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument(
        "--directory", type=Path, required=True, help="what it writes, and `ready` when it is"
    )
    options = parser.parse_args()
    ready = options.directory / "ready"
    ready.unlink(missing_ok=True)
    _call("unshare", CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET)
    socket.sethostname(options.name)
    take_directories(options.directory)
    first = os.fork()
    if first == 0:
        be_first(options.directory, ready)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
    os.waitpid(first, 0)  # the kernel lets it end when all others inside have


def take_directories(directory: Path) -> None:
    """Mounts its own directories over those that a node writes to."""
    mount("none", "/", MS_REC | MS_PRIVATE)
    mount("none", "/", MS_REC | MS_SHARED)  # a kubelet needs its mounts to propagate to containers
    for each in OWN:
        source = directory / each
        source.mkdir(parents=True, exist_ok=True)
        mount(str(source), f"/{each}", MS_BIND)


def be_first(directory: Path, ready: Path) -> None:
    """The first process inside: it ends with its parent, and reaps orphans."""
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != 0:  # 0 is a parent outside; it has died before we could ask
        sys.exit("the parent is gone")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    mount("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, kind="proc")
    for name, value in KERNEL_SETTINGS.items():
        file = directory / "kernel" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        mount(str(file), f"/proc/sys/{name}", MS_BIND)
    ready.touch()
    while True:
        signal.sigwait({signal.SIGCHLD})
        bury()


def bury() -> None:
    """Collects the exit status of all orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def mount(source: str, target: str, flags: int, *, kind: str = "none") -> None:
    """mount(2). Raises OSError."""
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None)


def _call(function: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[function](*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
