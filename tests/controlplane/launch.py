"""Becomes another program, after preparations inside the new process: run as a script.

Three things cannot be done from outside. An API server's identity Lease is named after the host, so each
further server on this machine needs a UTS namespace with its own host name. A container runs as a user that
its image does not know: a user namespace gives a process such an id, and lets it read what we can read. And
the programs must not outlive a test run that is killed, so they ask the kernel to be killed with their
parent. Because exec keeps the process id, the parent can signal the program itself.

A program inside a machine of tests/node is a child of this process instead, because its process table is a
different one. This process then passes SIGTERM on, and the program ends with it when it is killed.
"""

import argparse
import ctypes
import os
import signal
import socket
import sys
from pathlib import Path

NAMESPACES = ("net", "uts", "ipc", "mnt", "pid_for_children")
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Parses the options and `-- PROGRAM [ARGUMENT…]`, and becomes that program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hostname")
    parser.add_argument("--user", type=int)
    parser.add_argument("--cgroup", type=Path)
    parser.add_argument("--machine", type=int)
    parser.add_argument("--parent", type=int)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    if options.cgroup:
        (options.cgroup / "cgroup.procs").write_text(str(os.getpid()))
    if options.hostname:
        take_hostname(options.hostname)
    if options.user is not None:
        take_user(options.user)
    if options.parent:  # after the namespaces, as a change of credentials clears it
        die_with(options.parent)
    if options.machine:
        enter(options.machine)
    environment = dict(os.environ) if options.user is None else {}
    os.execve(options.program[0], options.program, environment)


def take_hostname(name: str) -> None:
    """Moves into its own UTS namespace; without root this also takes a user namespace."""
    uid, gid = os.getuid(), os.getgid()
    try:
        if uid == 0:
            _call("unshare", CLONE_NEWUTS)
        else:
            _call("unshare", CLONE_NEWUSER | CLONE_NEWUTS)
            _map_ids(uid, uid, gid)
        socket.sethostname(name)
    except OSError as error:
        sys.exit(
            f"cannot have the host name {name!r} in a UTS namespace ({error}): more than one API server "
            "needs root, or a kernel that lets users create user namespaces"
        )


def take_user(user: int) -> None:
    """Switches to this user id, in a user namespace that maps it to the current one."""
    uid, gid = os.getuid(), os.getgid()
    try:
        _call("unshare", CLONE_NEWUSER)
        _map_ids(user, uid, gid)
    except OSError as error:
        sys.exit(f"cannot be user {user} in a user namespace ({error})")


def enter(machine: int) -> None:
    """Returns in a child of this process that is inside the machine; this process stays outside and waits."""
    descriptors = [os.open(f"/proc/{machine}/ns/{each}", os.O_RDONLY) for each in NAMESPACES]
    for each in descriptors:
        _call("setns", each, 0)
        os.close(each)
    child = os.fork()
    if child == 0:
        os.chdir("/")
        die_with(0)  # a parent outside looks like this from inside
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def die_with(parent: int) -> None:
    """Has the kernel kill this process as soon as the thread that started it is gone."""
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we could ask
        sys.exit("the parent is gone")


def _map_ids(user: int, uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[function](*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
