"""`make bench-composites`: the composer beside kro's controller, for the same API, on one control plane.

In each round, each controller works alone, in turns: instances are created, the template changes, objects
are changed by somebody else, the controller is restarted, all instances are deleted. With --at-rest, ours
alone, and only what many composites cost at rest. It never fails for a figure.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tests.benchmark.compositecontestants import Contestant, Kro, Ours
from tests.benchmark.compositereport import lines
from tests.benchmark.compositeturn import Turn, bare_client
from tests.benchmark.requestlog import RequestLog
from tests.benchmark.server import Server
from tests.controlplane.plane import ControlPlane

_CONTROLLERS: Final = (
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "deployment-controller",
    "replicaset-controller",
)
_QUICK: Final = {"kube-api-qps": "500", "kube-api-burst": "500"}
"""The controllers must not be what a contestant waits for."""

Figures = dict[str, Any]


def run(options: argparse.Namespace) -> list[Figures]:
    """The figures of all turns."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crdkeeper-bench-")))
        requests = RequestLog(directory, [Ours.user, Kro.user])
        plane = ControlPlane(
            directory / "plane",
            controllers=_CONTROLLERS,
            extra_apiserver_flags=requests.flags,
            extra_controller_manager_flags=_QUICK,
        )
        stack.enter_context(plane)
        makers: list[Callable[[], Contestant]] = [lambda: Ours(plane)]
        if "default" in options.kro:
            makers.append(lambda: Kro(plane, raised=False))
        if "raised" in options.kro:
            makers.append(lambda: Kro(plane, raised=True))
        contestants = [each() for each in makers]
        for each in contestants:
            stack.callback(each.stop)
        server = Server(plane.kubeconfig)
        made: list[Figures] = []
        for number in range(options.rounds):
            if not options.at_rest:
                made.append(bare_client(plane, server, options.instances, options.objects))
            for each in contestants[:: -1 if number % 2 else 1]:
                print(f"{each.title}: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                turn = Turn(plane, server, requests, each, options.instances, options.objects)
                made.append(turn.rest() if options.at_rest else turn.all(options.changes))
        return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.composites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=4, help="of each instance, a multiple of 4")
    parser.add_argument("--changes", type=int, default=100, help="by somebody else, one after the other")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kro", nargs="*", choices=("default", "raised"), default=["default", "raised"])
    parser.add_argument("--at-rest", action="store_true", help="ours alone, and only at rest")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures of all rounds")
    options = parser.parse_args(arguments)
    if options.at_rest:
        options.kro = []
    figures = run(options)
    print(f"{options.instances:,} instances of {options.objects} objects, in one namespace", end="\n\n")
    print("\n".join(lines(figures)))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
