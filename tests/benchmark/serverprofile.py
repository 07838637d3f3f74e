"""What an API server does with its CPU: a profile of some seconds, by kind of work."""

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.benchmark.server import Server
from tests.controlplane.build import BuildFailed

WORK: Final[Mapping[str, str]] = {
    "garbage collection of Go": r"^runtime\.(gcBgMarkWorker|bgsweep|bgscavenge|gcAssistAlloc)",
    # Not all of the watch cache: a write passes through it on its way to etcd.
    "watches": r"cacher\.\(\*(watchCache|cacheWatcher)|\(\*Cacher\)\.dispatch|etcd3\.\(\*watchChan\)|"
    r"client-go/tools/cache|WatchServer",
    # Before managedFields, which wrap the chain of admission.
    "admission": r"apiserver/pkg/admission|plugin/pkg/admission",
    "managedFields": r"structured-merge-diff|managedfields|fieldmanager",
    "CEL rules of the schema": r"apiserver/schema/cel",
    "schema: prune, default, validate": r"pkg/apiserver/(schema|validation)|kube-openapi/pkg/validation",
    "patch": r"json-patch|handlers\.\(\*\w+Patcher\)",
    "JSON": r"encoding/json|sigs\.k8s\.io/json|json-iterator|runtime/serializer",
    "storage in etcd": r"storage/etcd3|go\.etcd\.io|google\.golang\.org/grpc",
    "request: route, account, authorize, queue": r"apiserver/pkg/(server|endpoints)|go-restful|flowcontrol",
    "HTTP and TLS": r"crypto/|net/http|golang\.org/x/net|internal/poll",
}
"""Patterns of functions. A sample counts for the first kind of which one is on its stack.

Storage comes late: the work of an update is done inside the storage's transaction.
"""
OTHER: Final = "other"

_SAMPLE = re.compile(r"^\s*(\d+(?:\.\d+)?)(ms|s|us)\s+(\S.*)$")
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def profile(server: Server, seconds: int) -> bytes:
    """The API server's CPU profile of the next seconds, in pprof's format."""
    return server.raw(f"/debug/pprof/profile?seconds={seconds}")


def shares(found: bytes) -> dict[str, float]:
    """The part of all samples for each kind of work. Raises BuildFailed without Go, whose tool reads it."""
    with tempfile.NamedTemporaryFile(prefix="crdkeeper-profile-") as file:
        file.write(found)
        file.flush()
        try:
            done = subprocess.run(
                ["go", "tool", "pprof", "-traces", file.name],
                cwd=Path(file.name).parent,
                capture_output=True,
                text=True,
                check=True,
            )
        except FileNotFoundError:
            raise BuildFailed("a profile is read by `go tool pprof`, but there is no `go` in PATH") from None
    seconds: defaultdict[str, float] = defaultdict(float)
    for used, stack in _samples(done.stdout):
        seconds[_kind(stack)] += used
    whole = sum(seconds.values()) or 1.0
    return {kind: seconds[kind] / whole for kind in (*WORK, OTHER)}


def _kind(stack: list[str]) -> str:
    for kind, pattern in WORK.items():
        if any(re.search(pattern, function) for function in stack):
            return kind
    return OTHER


def _samples(text: str) -> Iterator[tuple[float, list[str]]]:
    """The CPU seconds and the functions, the innermost first, of each stack in the tool's output."""
    used, stack = 0.0, list[str]()
    for line in text.splitlines():
        if line.startswith("-"):
            if stack:
                yield used, stack
            used, stack = 0.0, []
        elif begun := _SAMPLE.match(line):
            used, stack = float(begun[1]) * _SECONDS[begun[2]], [begun[3]]
        elif stack and line.strip():
            stack.append(line.strip())
    if stack:
        yield used, stack
