"""`make bench-shards`: the rate of `crdkeeper migrate --shards` by the number of processes and API servers.

For each number of API servers, all on one etcd and behind a balancer that leads each connection to the next
of them, the same objects are rewritten by one process without --shards, and by several with it. Before each
turn the storage version is changed and etcd contains every object at the old one; afterwards it must contain
every object at the new one, or the benchmark fails. It never fails for a figure.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from crdkeeper.api.meta import CLI, VERSION
from crdkeeper.api.meta import GROUP as OUR_GROUP
from crdkeeper.api.storagemigration import StorageMigration
from tests.benchmark.command import execute, parser_of, show
from tests.benchmark.contestants import begin, milestones
from tests.benchmark.meter import Meter, Usage
from tests.benchmark.report import spread
from tests.benchmark.server import Server
from tests.benchmark.subject import CRD, Subject, WrongResult
from tests.cluster.builtins.balancing import balanced
from tests.cluster.harness.installation import install
from tests.controlplane.plane import ControlPlane

_SERVERS: Final = (1, 2, 3)
_SHARDS: Final = (0, 1, 2, 4)
"""0: without --shards."""
_SILENCE_SECONDS: Final = 300.0
_HEADER: Final = (
    f"{'API servers':>11} {'processes':>15} {'objects/s':>15} {'of one':>7} {'with proof':>15} {'noise':>6}"
)
_LEGEND: Final = (
    "objects/s: from the condition Settled to Rewritten; with proof: to Succeeded. of one: the median over",
    "the rounds of the rate, divided by that of one process without --shards in the same round. noise: the",
    "cores that programs other than these kept busy meanwhile. Medians of the rounds (lowest-highest).",
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One rewrite of all objects."""

    rewriting: Usage
    whole: Usage


class Benchmark:
    """One control plane with crdkeeper's kinds and the objects on it."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path, objects: int) -> None:
        self._plane = plane
        self._kubeconfig = kubeconfig
        self._number = 0
        install(plane)
        self.subject = Subject(plane)
        self.subject.grow(objects)

    def turn(self, shards: int) -> Turn:
        """That many processes, or one without --shards, rewrite all objects."""
        self.subject.flip()
        self._number += 1
        name = f"bench-{self._number}"
        begin(self._plane, name, managedBy=CLI)
        path = f"/apis/{OUR_GROUP}/{VERSION}/{StorageMigration.plural}"
        events = Server(self._plane.kubeconfig).watch(path, name, _SILENCE_SECONDS)
        with self._processes(name, shards) as processes:
            # All that the benchmark has started are its descendants.
            seen = milestones(events, Meter({"ours": os.getpid()}), ("Settled", "Rewritten", "Succeeded"))
            for each in processes:
                if each.wait(_SILENCE_SECONDS):
                    raise WrongResult(f"a process ended with status {each.returncode}")
        self.subject.check()
        settled = seen["Settled"]
        return Turn(settled.until(seen["Rewritten"]), settled.until(seen["Succeeded"]))

    @contextmanager
    def _processes(self, name: str, shards: int) -> Iterator[list[subprocess.Popen[bytes]]]:
        command = [sys.executable, "-m", "crdkeeper", "migrate", CRD, f"--name={name}"]
        command.append(f"--kubeconfig={self._kubeconfig}")
        sharing = [[f"--shards={shards}", f"--shard={index}"] for index in range(shards)]
        with ExitStack() as stack:
            processes = [
                subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for more in sharing or [[]]
            ]
            for each in processes:
                stack.callback(each.wait)
                stack.callback(each.kill)
            yield processes


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The whole benchmark; prints a line for each number of API servers and processes; returns figures."""
    objects, figures = options.objects, []
    print(f"{objects:,} objects, {options.rounds} rounds", "", _HEADER, sep="\n", flush=True)
    for servers in _SERVERS:
        with (
            tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory,
            ControlPlane(Path(directory), api_servers=servers, controllers=()) as plane,
            balanced(plane, Path(directory), plane.kubeconfig) as kubeconfig,
        ):
            benchmark = Benchmark(plane, kubeconfig, objects)
            turns: dict[int, list[Turn]] = {each: [] for each in _SHARDS}
            for number in range(options.rounds):
                # In alternating order, so that a machine that becomes slower in the meantime favours nobody.
                for shards in _SHARDS[:: -1 if number % 2 else 1]:
                    turns[shards].append(benchmark.turn(shards))
        for shards in _SHARDS:
            print(_line(servers, shards, turns, objects), flush=True)
            figures.append(
                {
                    "apiServers": servers,
                    "shards": shards,
                    "seconds": [each.rewriting.seconds for each in turns[shards]],
                    "secondsWithProof": [each.whole.seconds for each in turns[shards]],
                }
            )
    show(["", *_LEGEND])
    return figures


def _line(servers: int, shards: int, turns: dict[int, list[Turn]], objects: int) -> str:
    mine, alone = turns[shards], turns[0]
    parts = [one.rewriting.seconds / each.rewriting.seconds for each, one in zip(mine, alone, strict=True)]
    noise = sum(each.whole.others for each in mine) / sum(each.whole.seconds for each in mine)
    cells = (
        f"{servers:>11}",
        f"{shards or '1, not sharing':>15}",
        f"{spread([objects / each.rewriting.seconds for each in mine]):>15}",
        f"{median(parts):>7.0%}",
        f"{spread([objects / each.whole.seconds for each in mine]):>15}",
        f"{noise:>6.1f}",
    )
    return " ".join(cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an object was not rewritten that should have been, else 0."""
    parser = parser_of("shards", __doc__)
    parser.add_argument("--objects", type=int, default=3000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    return execute(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
