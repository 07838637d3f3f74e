"""`make bench-migration`: our rate and cost, the API server's maximum, and its own migrator in one run.

All contestants take turns on one control plane. Before each turn the storage version is changed and etcd
contains every object at the old one; afterwards it must contain every object at the new one, or the benchmark
fails. It never fails for a figure.

The first number of objects is for the comparison, in as many rounds as requested; then, and for all other
numbers, crdkeeper migrates alone once, for its memory. With --delay, all contestants reach the API server
over the same distance; with --fsync, etcd waits for its disk.

More than 100,000 objects, or --kills: no comparison. The operator and the command each migrate that number
in 10,000 namespaces, and are killed on the way; see `large`. A million take more than an hour and some 10 GB
of disk. The API server would need some 36 GB for the watch caches of so many, so it runs without them. What
is known by then is printed, also if the benchmark is interrupted.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.benchmark import contestants, large, largereport
from tests.benchmark.command import execute, parser_of, save, show, tell
from tests.benchmark.contestants import Work
from tests.benchmark.distance import Distance
from tests.benchmark.report import LEGEND, Comparison, Row, Single
from tests.benchmark.subject import CRD, GROUP, NAMESPACES, PLURAL, Subject, WrongResult
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT, install
from tests.cluster.harness.operator import Operator
from tests.controlplane.plane import ControlPlane

_AT_ONCE: Final = (4, 8, 16, 32, 64)
_FOR_ACCOUNTS: Final = "serviceaccount-controller"
_CONTROLLERS: Final = ("clusterrole-aggregation-controller", _FOR_ACCOUNTS)
_FOR_IN_TREE: Final = ("garbage-collector-controller", "storage-version-migrator-controller")
_CACHED = 100_000
_ROUNDS_OF_FEW = 2
_RIGHTS_SECONDS = 30.0
_REWRITER_ROLE: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "bench", "labels": {"rbac.crdkeeper.dev/aggregate-to-rewriter": "true"}},
    "rules": [{"apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["get", "list", "patch"]}],
}


class Benchmark:
    """One control plane with crdkeeper and the objects on it."""

    def __init__(self, plane: ControlPlane, distance: Distance, namespaces: int = NAMESPACES) -> None:
        self._plane = plane
        self._names = (f"bench-{number}" for number in count())
        install(plane)
        self.subject = Subject(plane, namespaces=namespaces)
        plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(_REWRITER_ROLE))
        self.account = distance.kubeconfig(plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT))
        self._wait_for_rights()

    def compare(self, rounds: int, *, in_tree: bool) -> Comparison:
        """All contestants in turn, round by round."""
        tried = self._calibrate()
        best = max(tried, key=tried.__getitem__)
        subject = self.subject
        with self._operator() as operator:
            turns: dict[str, Callable[[], Work]] = {
                f"bare client, {best} at a time (the ceiling)": lambda: self._bare(best),
                contestants.OPERATOR: lambda: contestants.crdkeeper(self._plane, operator, next(self._names)),
            }
            if in_tree:
                turns["in-tree StorageVersionMigration"] = lambda: contestants.in_tree(
                    self._plane, next(self._names)
                )
            turns["by page, one at a time (Cluster API)"] = lambda: contestants.by_page(
                self._plane, self.account, subject.version
            )
            turns["bare client, one at a time"] = lambda: self._bare(1)
            works: dict[str, list[Work]] = {name: [] for name in turns}
            idle = contestants.idle(self._plane, operator)
            for number in range(rounds):
                # In alternating order, so that a machine that becomes slower in the meantime favours nobody.
                for name, turn in list(turns.items())[:: -1 if number % 2 else 1]:
                    tell(f"round {number + 1} of {rounds}: {name}")
                    works[name].append(self._turn(turn).without(idle))
        rows = [Row(name, done) for name, done in works.items()]
        return Comparison(subject.count, subject.size, tried, rows)

    def migrate(self) -> Single:
        """Only crdkeeper, once, with a new operator."""
        with self._operator() as operator:
            idle = contestants.idle(self._plane, operator)
            work = self._turn(lambda: contestants.crdkeeper(self._plane, operator, next(self._names)))
        return Single(self.subject.count, work.without(idle))

    def _turn(self, turn: Callable[[], Work]) -> Work:
        self.subject.flip()
        work = turn()
        self.subject.check()
        tell(f"  {self.subject.count / work.usage.seconds:.0f} objects/s")
        return work

    def _calibrate(self) -> dict[int, float]:
        """Objects per second of the bare client with that many concurrent requests."""
        tell(f"bare client with {', '.join(map(str, _AT_ONCE))} at a time, in turns")
        self.subject.flip()
        tried = contestants.bare_client(self._plane, self.account, self.subject.version, _AT_ONCE)
        self.subject.check()
        return {at_once: done / used.seconds for at_once, (done, used) in tried.items()}

    def _bare(self, at_once: int) -> Work:
        tried = contestants.bare_client(self._plane, self.account, self.subject.version, [at_once])
        _, usage = tried[at_once]
        return Work(usage)

    @contextmanager
    def _operator(self) -> Iterator[Operator]:
        operator = Operator(self._plane, identity="bench", flags={"kubeconfig": str(self.account)})
        try:
            operator.start()
            yield operator
        finally:
            operator.close()

    def _wait_for_rights(self) -> None:
        """The control plane needs a moment to aggregate our role into the operator's."""
        deadline = time.monotonic() + _RIGHTS_SECONDS
        question = ("auth", "can-i", "patch", CRD, "--all-namespaces")
        while "yes" not in self._plane.kubectl(*question, check=False, kubeconfig=self.account):
            if time.monotonic() > deadline:
                raise WrongResult("the operator did not get the right to patch the objects")
            time.sleep(0.2)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The whole benchmark; prints the tables and returns the figures."""
    figures: dict[str, Any] = {}
    with _plane(options) as (plane, distance):
        show([_circumstances(options)])
        benchmark = Benchmark(plane, distance)
        singles = []
        for objects in sorted(options.objects):
            tell(f"making {objects:,} objects")
            benchmark.subject.grow(objects)
            if not figures and not options.skip_comparison:
                comparison = benchmark.compare(options.rounds, in_tree=not options.skip_in_tree)
                figures["comparison"] = comparison.to_object()
                show(comparison.lines())
            singles.append(benchmark.migrate())
        figures["memory"] = [each.to_object() for each in singles]
        show([each.line() for each in singles])
    show([LEGEND])
    return figures


def run_large(options: argparse.Namespace) -> dict[str, Any]:
    """Very many objects; prints what is known, whatever happens, and returns the figures."""
    objects, kills = max(options.objects), large.KILLS if options.kills is None else options.kills
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    with _plane(options) as (plane, distance):
        show([_circumstances(options), f"{options.namespaces:,} namespaces; seed of the kills: {seed}."])
        benchmark = Benchmark(plane, distance, options.namespaces)
        found = large.Large(plane, distance, benchmark.subject, benchmark.account, kills=kills, seed=seed)
        try:
            found.run(objects, min(options.rounds, _ROUNDS_OF_FEW))
        finally:
            show(largereport.lines(found.small, found.large))
            save(options, {"large": found.to_object()})
    show([largereport.LEGEND])
    return {"large": found.to_object()}


def _is_large(options: argparse.Namespace) -> bool:
    return max(options.objects) > _CACHED or options.kills is not None


@contextmanager
def _plane(options: argparse.Namespace) -> Iterator[tuple[ControlPlane, Distance]]:
    with tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory:
        controllers: Sequence[str] = _CONTROLLERS if options.skip_in_tree else (*_CONTROLLERS, *_FOR_IN_TREE)
        if _is_large(options):
            # Nor an account for each namespace, whose creation takes minutes.
            controllers = tuple(each for each in _CONTROLLERS if each != _FOR_ACCOUNTS)
        plane = ControlPlane(
            Path(directory),
            controllers=controllers,
            extra_apiserver_flags={"watch-cache": "false"} if _is_large(options) else {},
            fsync=options.fsync,
        )
        with Distance(options.delay, url=plane.url, directory=Path(directory)) as distance:
            plane.move_controllers(distance.kubeconfig)
            with plane:
                yield plane, distance


def _circumstances(options: argparse.Namespace) -> str:
    disk = "etcd waits for its disk (fsync)" if options.fsync else "etcd does not wait for its disk"
    return f"{options.delay:g} ms between clients and API server; {disk}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an object was not rewritten that should have been, else 0."""
    parser = parser_of("migration", __doc__)
    parser.add_argument("--objects", type=int, nargs="+", default=[10_000, 50_000], metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of the comparison")
    parser.add_argument("--skip-in-tree", action="store_true", help="leave out the in-tree migration")
    parser.add_argument("--skip-comparison", action="store_true", help="crdkeeper alone")
    parser.add_argument(
        "--delay", type=float, default=0, metavar="MS", help="of a round trip to the API server"
    )
    parser.add_argument("--fsync", action="store_true", help="etcd waits for its disk, as in real clusters")
    parser.add_argument(
        "--kills",
        type=int,
        metavar="N",
        help=f"of each of the two, with many objects [default: {large.KILLS}]",
    )
    parser.add_argument(
        "--namespaces", type=int, default=large.NAMESPACES, metavar="N", help="with many objects"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the moments of the kills")
    options = parser.parse_args(arguments)
    return execute(run_large if _is_large(options) else run, options)


if __name__ == "__main__":
    sys.exit(main())
