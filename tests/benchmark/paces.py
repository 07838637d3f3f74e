"""`make bench-pace`: what the number of requests in flight gives, and what it costs other clients.

Our own whole migrations, with listing and proof, take turns on one control plane: with fixed numbers in
flight (`limits.minConcurrency` and `maxConcurrency` alike), as the operator adapts the number by itself, with
that and at most so many objects a second (`limits.maxObjectsPerSecond`), and with that in a priority level of
so many shares of the API server's seats (manifests/priority).
Meanwhile another client reads and writes a small object, ten times a second each; so it does while nobody
migrates. That is repeated while other programs want 0, 0.5 and 1 of the machine's cores. It never fails for a
figure, only if an object was not rewritten.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.benchmark import contestants
from tests.benchmark.busy import busy
from tests.benchmark.bystander import Bystander, bystander
from tests.benchmark.command import execute, parser_of, show, tell
from tests.benchmark.contestants import SERVERS, Work
from tests.benchmark.distance import Distance
from tests.benchmark.migration import Benchmark
from tests.controlplane.plane import ControlPlane

_ADAPTED: Final = "adapted"
_FIXED: Final = (2, 4, 8, 16, 32, 64)
_RATES: Final = (50, 100, 200)
_HEADER: Final = (
    "turn",
    "objects/s, with proof",
    "of best fixed",
    "in flight",
    "apiserver",
    "etcd",
    "client",
)
_PRIORITY: Final = Path(__file__).parents[2] / "manifests/priority"
_ALONE_SECONDS = 10.0
_SETTLE_SECONDS = 2.0
"""Until the API server uses a priority level that has changed."""
_CONTROLLERS: Final = ("clusterrole-aggregation-controller", "serviceaccount-controller")
_OBJECT: Final = "/api/v1/namespaces/default/configmaps/bystander"
_ACCOUNT: Final = "bystander"
_RIGHTS: Final = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": _ACCOUNT, "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": _ACCOUNT, "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": _ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": "default"}],
    },
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": _ACCOUNT, "namespace": "default"},
    },
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _ACCOUNT, "namespace": "default"},
    },
]


@dataclass(frozen=True, slots=True)
class Pace:
    """How a contestant migrates: its `limits`, and the shares of its priority level if it has one."""

    limits: Mapping[str, int] = field(default_factory=dict)
    shares: int | None = None


@dataclass(slots=True)
class Turns:
    """All turns of one contestant under one load."""

    works: list[Work] = field(default_factory=list)
    in_flight: list[int] = field(default_factory=list)
    """As the status showed it every two seconds."""
    others: dict[str, list[float]] = field(default_factory=lambda: {"read": [], "write": []})
    """The seconds that another client's requests took meanwhile."""

    def add_others(self, seen: Mapping[str, Sequence[float]]) -> None:
        """Add what the other client saw in one turn."""
        for kind, seconds in seen.items():
            self.others[kind] = sorted([*self.others[kind], *seconds])


class Paces(Benchmark):
    """Turns of all contestants, load by load and round by round."""

    def _confine(self, shares: int | None) -> None:
        """Give migrations a priority level of their own, with that many shares of the API server's seats."""
        kubectl = self._plane.kubectl
        if shares is None:
            kubectl("delete", "--ignore-not-found", f"--kustomize={_PRIORITY}")
        else:
            kubectl("apply", "--server-side", "--force-conflicts", f"--kustomize={_PRIORITY}")
            patch = json.dumps({"spec": {"limited": {"nominalConcurrencyShares": shares}}})
            kubectl(
                "patch", "prioritylevelconfiguration", "crdkeeper-migrations", "--type=merge", "-p", patch
            )
        time.sleep(_SETTLE_SECONDS)

    def measure(self, rounds: int, paces: Mapping[str, Pace], loads: Sequence[float]) -> dict[float, Any]:
        """The turns of each contestant, named with its pace, and of nobody, by load."""
        for each in _RIGHTS:
            self._plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(each))
        found = {load: {name: Turns() for name in ("nobody", *paces)} for load in loads}
        account = self._plane.service_account_kubeconfig("default", _ACCOUNT)
        with self._operator() as operator, bystander(account, _OBJECT) as other:
            idle = contestants.idle(self._plane, operator)
            for number in range(rounds):
                for load in loads:
                    with busy(load):
                        turns = found[load]
                        _alone(turns["nobody"], other)
                        # In alternating order: a machine that becomes slower favours nobody.
                        for name, pace in list(paces.items())[:: -1 if number % 2 else 1]:
                            tell(f"round {number + 1} of {rounds}, load {load:g}: {name}")
                            self._take(turns[name], operator, pace, idle, other)
        return found

    def _take(self, turns: Turns, operator: Any, pace: Pace, idle: Any, other: Bystander) -> None:
        def watched(migration: dict[str, Any]) -> None:
            in_flight = migration.get("status", {}).get("progress", {}).get("concurrency", 0)
            if in_flight:
                turns.in_flight.append(in_flight)

        self._confine(pace.shares)
        work = self._turn(
            lambda: contestants.crdkeeper(
                self._plane, operator, next(self._names), limits=pace.limits, watched=watched
            )
        )
        assert work.whole is not None
        tell(f"  {self.subject.count / work.whole.seconds:.0f} with proof, in flight {turns.in_flight}")
        turns.works.append(work.without(idle))
        turns.add_others(other.between(work.began_at, work.began_at + work.usage.seconds))


def _alone(turns: Turns, other: Bystander) -> None:
    begun = time.monotonic()
    time.sleep(_ALONE_SECONDS)
    turns.add_others(other.between(begun, time.monotonic()))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The whole benchmark; prints a table for each load and returns the figures."""
    with tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory:
        plane = ControlPlane(Path(directory), controllers=_CONTROLLERS, fsync=options.fsync)
        with Distance(options.delay, url=plane.url, directory=Path(directory)) as distance, plane:
            paces = Paces(plane, distance)
            paces.subject.grow(options.objects)
            found = paces.measure(options.rounds, _paces(options), options.loads)
    for load, turns in found.items():
        show(_table(options, load, turns))
    return {
        f"{load:g}": {
            name: {
                "works": [work.to_object() for work in each.works],
                "inFlight": each.in_flight,
                "others": each.others,
            }
            for name, each in turns.items()
        }
        for load, turns in found.items()
    }


def _paces(options: argparse.Namespace) -> dict[str, Pace]:
    """How each contestant migrates, by its name."""
    fixed = {str(each): Pace({"minConcurrency": each, "maxConcurrency": each}) for each in options.fixed}
    rates = {f"{_ADAPTED}, {each}/s": Pace({"maxObjectsPerSecond": each}) for each in options.rates}
    shares = {f"{_ADAPTED}, shares {each}": Pace(shares=each) for each in options.shares}
    return {**fixed, _ADAPTED: Pace(), **rates, **shares}


def _table(options: argparse.Namespace, load: float, turns: Mapping[str, Turns]) -> list[str]:
    took_part = {name: each for name, each in turns.items() if each.works}
    rates = {
        name: [options.objects / _whole(work) for work in each.works] for name, each in took_part.items()
    }
    best = [max(rates[str(name)][number] for name in options.fixed) for number in range(options.rounds)]
    alone, works = turns["nobody"], [work for each in took_part.values() for work in each.works]
    noise = sum(work.usage.others for work in works) / sum(work.usage.seconds for work in works)
    return [
        f"Other programs wanted {load:g} cores; all that took no part used {noise:.1f}. "
        f"{options.objects:,} objects, {options.rounds} rounds, {options.delay:g} ms of distance"
        f"{', fsync' if options.fsync else ''}",
        "",
        _columns(
            "in flight", "objects/s, with proof", "of best fixed", "in flight", "apiserver", "etcd", "client"
        )
        + "   others: read p50, p99; write p50, p99 (of those without us)",
        f"{'nobody':<20}{'':84}   {_latencies(alone, alone)}",
        *(_row(name, rates[name], best, each, options.objects, alone) for name, each in took_part.items()),
    ]


def _row(
    name: str, rates: Sequence[float], best: Sequence[float], turns: Turns, objects: int, alone: Turns
) -> str:
    parts = [rate / most for rate, most in zip(rates, best, strict=True)]
    cpu = [1000 * median(work.usage.cpu[each] for work in turns.works) / objects for each in SERVERS]
    client = 1000 * median(work.client_cpu for work in turns.works) / objects
    flying = turns.in_flight or [0]  # short runs show none
    columns = _columns(
        name,
        f"{median(rates):.0f} ({min(rates):.0f}-{max(rates):.0f})",
        f"{median(parts):.0%} ({min(parts):.0%}-{max(parts):.0%})",
        f"{median(flying):.0f} ({min(flying)}-{max(flying)})",
        *(f"{each:.2f} ms" for each in (*cpu, client)),
    )
    return f"{columns}   {_latencies(turns, alone)}"


def _latencies(turns: Turns, alone: Turns) -> str:
    shown = []
    for kind, seconds in turns.others.items():
        for part in (0.5, 0.99):
            mine, without = _quantile(seconds, part), _quantile(alone.others[kind], part)
            shown.append(f"{1000 * mine:.1f} ms ({mine / without:.1f})")
    return ", ".join(shown)


def _quantile(seconds: Sequence[float], part: float) -> float:
    return seconds[min(len(seconds) - 1, int(part * len(seconds)))]


def _whole(work: Work) -> float:
    return (work.whole or work.usage).seconds


def _columns(first: str, *others: str) -> str:
    widths = (24, 18, 12, 10, 10, 10)
    return first.ljust(20) + "".join(each.rjust(width) for each, width in zip(others, widths, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an object was not rewritten that should have been, else 0."""
    parser = parser_of("paces", __doc__)
    parser.add_argument("--objects", type=int, default=5000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument(
        "--fixed", type=int, nargs="+", default=_FIXED, metavar="N", help="requests in flight"
    )
    parser.add_argument(
        "--rates", type=int, nargs="*", default=_RATES, metavar="N", help="at most so many objects a second"
    )
    parser.add_argument("--loads", type=float, nargs="+", default=[0.0, 0.5, 1.0], metavar="CORES")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="of a round trip")
    parser.add_argument("--fsync", action="store_true", help="etcd waits for its disk, as in real clusters")
    parser.add_argument(
        "--shares", type=int, nargs="*", default=(), metavar="N", help="of a priority level of their own"
    )
    return execute(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
