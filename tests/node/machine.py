"""Becomes a machine of its own: run as a script, not imported.

It takes a network, a process table, a host name, and a view of the file system of its own, and keeps them
until it ends. Whatever runs in there ends with it (the kernel kills a process table whose first process is
gone), and with the last process go the mounts and the network: nothing of it needs to be cleaned up, however
it ended. What a node keeps in `/run`, `/var/lib` and `/var/log` goes to directories of its own, so that a
kubelet or containerd of the real machine stays as it is.

Other programs get in by `launch.py --machine`, by this script's process id.
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

# What a kubelet sets where it finds other values. These are not the machine's own but the kernel's, so that
# it would change them for everybody: it is shown files with what it wants to see.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def main() -> None:
    """Parses `--name NAME --directory DIR` and stays until SIGTERM."""
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
    os.waitpid(first, 0)  # the kernel lets it end when all others in there have


def take_directories(directory: Path) -> None:
    """Puts directories of its own over those that a node writes to."""
    mount("none", "/", MS_REC | MS_PRIVATE)
    mount("none", "/", MS_REC | MS_SHARED)  # a kubelet wants what it mounts to reach containers
    for each in OWN:
        source = directory / each
        source.mkdir(parents=True, exist_ok=True)
        mount(str(source), f"/{each}", MS_BIND)


def be_first(directory: Path, ready: Path) -> None:
    """The first process in there: it ends with its parent, and buries what others leave behind."""
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
    """Takes the exit status of all orphans that have ended."""
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
