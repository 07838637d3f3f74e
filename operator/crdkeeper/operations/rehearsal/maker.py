"""Which process created a shadow: the next rehearsal on that machine then knows whether it was killed.

A process is identified by the boot of its machine, its PID namespace, its number and its start time, from
Linux' /proc. On other systems, and for other machines, nothing is known.
"""

import os
from hashlib import blake2b
from pathlib import Path

_PROC = Path("/proc")


def this_process() -> str:
    """Identifies this process; empty if that is not possible."""
    return _name(os.getpid())


def has_ended(made_by: str) -> bool:
    """Whether a process identified by `this_process` has certainly ended."""
    here = _here()
    place, _, rest = made_by.partition(".")
    number = rest.partition(".")[0]
    if not here or place != here or not number.isascii() or not number.isdecimal():
        return False
    return _name(int(number[:10])) != made_by


def _name(number: int) -> str:
    here, started = _here(), _started(number)
    return f"{here}.{number}.{started}" if here and started else ""


def _here() -> str:
    """The PID namespace of this boot; hashed, since others can read it in the cluster."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_bytes()
        namespace = bytes((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""
    return blake2b(boot + namespace, digest_size=12).hexdigest()


def _started(number: int) -> str:
    """Field 22 of /proc/PID/stat: clock ticks since the boot. Field 2, a name, may contain any characters."""
    try:
        text = (_PROC / str(number) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
