"""`make bench-migration`: our rate and cost, the API server's maximum, and its own migrator in one run.

All contestants take turns on one control plane. Before each turn the storage version is changed and etcd
contains every object at the old one; afterwards it must contain every object at the new one, or the benchmark
fails. It never fails for a figure.

The first number of objects is for the comparison, in as many rounds as requested; then, and for all other
numbers, crdkeeper migrates alone once, for its memory. A million objects take about an hour and some 5 GB of
disk: `--objects 1000000 --skip-comparison --skip-in-tree`. The API server would need some 36 GB for the watch
caches of so many, so it runs without them for more than 100,000.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.benchmark import contestants
from tests.benchmark.contestants import Work
from tests.benchmark.report import LEGEND, Comparison, Row, Single
from tests.benchmark.subject import CRD, GROUP, PLURAL, Subject, WrongResult
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT, install
from tests.cluster.harness.operator import Operator
from tests.controlplane.plane import ControlPlane

_AT_ONCE: Final = (8, 16, 32, 64)
_CONTROLLERS: Final = ("clusterrole-aggregation-controller", "serviceaccount-controller")
_FOR_IN_TREE: Final = ("garbage-collector-controller", "storage-version-migrator-controller")
_CACHED = 100_000
_RIGHTS_SECONDS = 30.0
_REWRITER_ROLE: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "bench", "labels": {"rbac.crdkeeper.dev/aggregate-to-rewriter": "true"}},
    "rules": [{"apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["get", "list", "patch"]}],
}


class Benchmark:
    """One control plane with crdkeeper and the objects on it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._names = (f"bench-{number}" for number in count())
        install(plane)
        self.subject = Subject(plane)
        plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(_REWRITER_ROLE))
        self._account = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
        self._wait_for_rights()

    def compare(self, rounds: int, *, in_tree: bool) -> Comparison:
        """All contestants in turn, round by round."""
        tried = self._calibrate()
        best = max(tried, key=tried.__getitem__)
        subject = self.subject
        with self._operator() as operator:
            turns: dict[str, Callable[[], Work]] = {
                f"bare client, {best} at a time (the ceiling)": lambda: self._bare(best),
                "crdkeeper": lambda: contestants.crdkeeper(self._plane, operator, next(self._names)),
            }
            if in_tree:
                turns["in-tree StorageVersionMigration"] = lambda: contestants.in_tree(
                    self._plane, next(self._names)
                )
            turns["bare client, one at a time"] = lambda: self._bare(1)
            works: dict[str, list[Work]] = {name: [] for name in turns}
            idle = contestants.idle(self._plane, operator)
            for number in range(rounds):
                # In alternating order, so that a machine that becomes slower in the meantime favours nobody.
                for name, turn in list(turns.items())[:: -1 if number % 2 else 1]:
                    _tell(f"round {number + 1} of {rounds}: {name}")
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
        _tell(f"  {self.subject.count / work.usage.seconds:.0f} objects/s")
        return work

    def _calibrate(self) -> dict[int, float]:
        """Objects per second of the bare client with that many concurrent requests."""
        _tell(f"bare client with {', '.join(map(str, _AT_ONCE))} at a time, in turns")
        self.subject.flip()
        tried = contestants.bare_client(self._plane, self._account, self.subject.version, _AT_ONCE)
        self.subject.check()
        return {at_once: done / used.seconds for at_once, (done, used) in tried.items()}

    def _bare(self, at_once: int) -> Work:
        tried = contestants.bare_client(self._plane, self._account, self.subject.version, [at_once])
        _, usage = tried[at_once]
        return Work(usage)

    @contextmanager
    def _operator(self) -> Iterator[Operator]:
        operator = Operator(self._plane, identity="bench")
        try:
            operator.start()
            yield operator
        finally:
            operator.close()

    def _wait_for_rights(self) -> None:
        """The control plane needs a moment to aggregate our role into the operator's."""
        deadline = time.monotonic() + _RIGHTS_SECONDS
        question = ("auth", "can-i", "patch", CRD, "--all-namespaces")
        while "yes" not in self._plane.kubectl(*question, check=False, kubeconfig=self._account):
            if time.monotonic() > deadline:
                raise WrongResult("the operator did not get the right to patch the objects")
            time.sleep(0.2)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The whole benchmark; prints the tables and returns the figures."""
    figures: dict[str, Any] = {}
    controllers = _CONTROLLERS if options.skip_in_tree else (*_CONTROLLERS, *_FOR_IN_TREE)
    flags = {"watch-cache": "false"} if max(options.objects) > _CACHED else {}
    with (
        tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory,
        ControlPlane(Path(directory), controllers=controllers, extra_apiserver_flags=flags) as plane,
    ):
        benchmark = Benchmark(plane)
        singles = []
        for objects in sorted(options.objects):
            _tell(f"making {objects:,} objects")
            benchmark.subject.grow(objects)
            if not figures and not options.skip_comparison:
                comparison = benchmark.compare(options.rounds, in_tree=not options.skip_in_tree)
                figures["comparison"] = comparison.to_object()
                _show(comparison.lines())
            singles.append(benchmark.migrate())
        figures["memory"] = [each.to_object() for each in singles]
        _show([each.line() for each in singles])
    _show([LEGEND])
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an object was not rewritten that should have been, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.migration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--objects", type=int, nargs="+", default=[10_000, 50_000], metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of the comparison")
    parser.add_argument("--skip-in-tree", action="store_true", help="leave out the in-tree migration")
    parser.add_argument("--skip-comparison", action="store_true", help="crdkeeper alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures of all rounds")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up, as after Ctrl-C
    try:
        figures = run(options)
    except KeyboardInterrupt:
        return 130
    except WrongResult as error:
        print(f"The benchmark failed: {error}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def _show(lines: Sequence[str]) -> None:
    print(*lines, "", sep="\n", flush=True)


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
