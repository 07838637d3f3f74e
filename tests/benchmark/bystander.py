"""Another client of the API server: small reads and writes at a steady rate, whatever else the server does.

A separate process. It prints a line for each request, with when it was sent by the monotonic clock, what it
was and how long it took, until its standard input ends.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.benchmark.server import Server

_APART: Final = 0.1
"""Seconds between two requests of a kind: few enough not to be a load itself."""
_ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class Bystander:
    """What the process has printed so far: the seconds that its requests took, by kind, and when."""

    seen: list[tuple[float, str, float]] = field(default_factory=list)

    def between(self, begin: float, end: float) -> Mapping[str, Sequence[float]]:
        """The seconds that the requests of a span of time took, sorted, by kind."""
        kinds: dict[str, list[float]] = {"read": [], "write": []}
        for at, kind, seconds in list(self.seen):
            if begin <= at < end:
                kinds[kind].append(seconds)
        return {kind: sorted(taken) for kind, taken in kinds.items()}


@contextmanager
def bystander(kubeconfig: Path, path: str) -> Iterator[Bystander]:
    """The process, which reads and patches the object at `path`, as long as this context lasts."""
    command = [sys.executable, "-m", "tests.benchmark.bystander", f"--kubeconfig={kubeconfig}", path]
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as any other program of the machine, not as a part of the benchmark
    ) as program:
        assert program.stdin is not None and program.stdout is not None
        found = Bystander()
        reader = threading.Thread(target=_read, args=(program.stdout, found))
        reader.start()
        try:
            yield found
        finally:
            program.stdin.close()
            reader.join()
    if program.returncode:
        raise RuntimeError("the other client of the API server failed")


def _read(lines: Iterator[str], found: Bystander) -> None:
    for line in lines:
        at, kind, seconds = line.split()
        found.seen.append((float(at), kind, float(seconds)))


def _send(server: Server, kind: str, path: str, over: threading.Event) -> None:
    number, due = 0, time.monotonic()
    while not over.wait(max(0.0, due - time.monotonic())):
        begun = time.monotonic()
        due = max(due + _APART, begun)
        if kind == "read":
            server.send("GET", path)
        else:
            number += 1
            server.send("APPLY", path, _object(path, number))
        # In one piece: print() writes the end of the line separately, and there are two threads.
        sys.stdout.write(f"{begun:.6f} {kind} {time.monotonic() - begun:.6f}\n")
        sys.stdout.flush()


def _object(path: str, number: int) -> Mapping[str, object]:
    name = path.rpartition("/")[2]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"number": str(number)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark.bystander", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("path", help="of a ConfigMap")
    options = parser.parse_args()
    server, over = Server(options.kubeconfig), threading.Event()
    threads = [
        threading.Thread(target=_send, args=(server, kind, options.path, over)) for kind in ("write", "read")
    ]
    for each in threads:
        each.start()
    sys.stdin.read()
    over.set()
    for each in threads:
        each.join()


if __name__ == "__main__":
    main()
