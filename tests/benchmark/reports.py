"""`make bench-reports`: a cluster with thousands of CRDs, and the cost of a report for each.

The operator is measured:

- without reports: until each CRD has one;
- with all reports: until each CRD has been assessed again; a write makes the benchmark fail;
- at rest: from a change of a CRD's schema to the report of the new generation, one change after another;
- and in a storm: the same, with hundreds of CRDs changed within seconds.

It never fails for a figure. With --starts only the two starts are measured, and the second one may write:
with 10,000 CRDs it takes a quarter of an hour until all has been asked that changes reports. With 150 fields,
their API server needs some 30 GB; with 40, 8 GB.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.benchmark import manydefinitions as definitions
from tests.benchmark.command import noise_shown
from tests.benchmark.meter import Meter, cpu_seconds, peak_memory, resident_memory
from tests.benchmark.server import Server
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT, install
from tests.cluster.harness.operator import Operator
from tests.controlplane.plane import ControlPlane

_CONTROLLERS: Final = ("clusterrole-aggregation-controller", "serviceaccount-controller")
_PATIENT: Final = {"lease-duration": "120", "renew-deadline": "100"}
"""An API server that loads thousands of CRDs does not always answer within ten seconds."""
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REPORTS: Final = "/apis/crdkeeper.dev/v1alpha1/definitionreports"
_QUIET: Final = 0.2
_TIMEOUT: Final = 900.0
_AT_REST_SECONDS: Final = 15.0
_UNCHANGED_SECONDS: Final = 5.0
_STORM_CLIENTS: Final = 8


class NeedlessWrite(Exception):
    """A report was written although nothing had changed."""


class Reports:
    """What a watch on all reports has seen, and when."""

    def __init__(self, server: Server) -> None:
        self.generations: dict[str, int] = {}
        """The generation of the CRD that each complete report describes."""
        self.since: dict[str, float] = {}
        """When the report for that generation was first seen."""
        self.versions: dict[str, str] = {}
        self.writes = 0
        """Of reports on the CRDs of this benchmark: that on DefinitionReports tells of how many there are."""
        self._changed = threading.Condition()
        threading.Thread(target=self._follow, args=(server,), daemon=True).start()

    def wait(self, holds: Callable[[], bool], seconds: float = _TIMEOUT) -> float:
        """When that became true; raises TimeoutError if it does not."""
        with self._changed:
            if not self._changed.wait_for(holds, seconds):
                raise TimeoutError(f"{len(self.generations)} reports, and still not as expected")
            return time.monotonic()

    def wait_for(self, name: str, generation: int) -> float:
        """When a report for that generation of a CRD existed."""
        return self.wait(lambda: self.generations[name] >= generation)

    def _follow(self, server: Server) -> None:
        with suppress(OSError):  # the API server has ended; waiting for more times out
            for report in server.watch_all(_REPORTS):
                self._take(report)

    def _take(self, report: dict[str, Any]) -> None:
        name, status = report["metadata"]["name"], report.get("status") or {}
        with self._changed:
            if definitions.is_one(name):
                self.writes += 1
                self.versions[name] = report["metadata"]["resourceVersion"]
            if status.get("conditions"):
                if self.generations.get(name) != status["definitionGeneration"]:
                    self.since[name] = time.monotonic()
                self.generations[name] = status["definitionGeneration"]
            self._changed.notify_all()


class Benchmark:
    """A control plane with that many CRDs, and crdkeeper installed."""

    def __init__(self, plane: ControlPlane, count: int, fields: int = definitions.FIELDS) -> None:
        self._plane = plane
        self.count = count
        self._fields = fields
        install(plane)
        self._account = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
        self.size = self._make_definitions()
        self.reports = Reports(Server(plane.kubeconfig))

    def starts(self) -> list[str]:
        """The figures of both starts, as lines to print."""
        lines = self._first_start()
        with self._operator() as operator:
            return [*lines, *self._second_start(operator)]

    def run(self, changes: int, storm: int, storm_seconds: float) -> list[str]:
        """All figures, as lines to print."""
        lines = self._first_start(answered=True)
        writes, versions = self.reports.writes, dict(self.reports.versions)
        with self._operator() as operator:
            lines += self._second_start(operator)
            if self.reports.writes != writes or self.reports.versions != versions:
                raise NeedlessWrite(f"{self.reports.writes - writes} writes after a restart")
            _tell("changes")
            lines.append(f"change to report          {self._follow_changes(changes)}")
            _tell("storm")
            lines.append(f"storm                     {self._storm(min(storm, self.count), storm_seconds)}")
            lines.append(f"  memory then             {_mib(resident_memory(operator.pid))} resident")
        return lines

    def _first_start(self, *, answered: bool = False) -> list[str]:
        """Its figures; with `answered`, once no answer changes a report any more."""
        with self._operator() as operator:
            _tell("first start")
            lines = [f"first start, no reports   {self._start(operator, self._all_written)}"]
            if answered:
                lines.append(f"  all questions answered  after {self._answered():.0f} s more")
            return [*lines, f"  at rest                 {self._at_rest(operator)}"]

    def _second_start(self, operator: Operator) -> list[str]:
        _tell("second start")
        return [
            f"restart, nothing changed  {self._start(operator, lambda: self._judged(operator))}",
            f"  at rest                 {self._at_rest(operator)}",
        ]

    def _make_definitions(self) -> int:
        """The size of one as JSON."""
        _tell(f"making {self.count:,} CRDs")
        size = definitions.put_definitions(self._plane, self.count, self._fields)
        self._wait_until_quiet()
        return size

    def _wait_until_quiet(self) -> None:
        """The API server processes new CRDs for minutes: watch cache, handlers, discovery, OpenAPI."""
        meter = Meter({"apiserver": self._plane.api_servers[0].pid})
        deadline = time.monotonic() + _TIMEOUT
        while not self._all_listed():
            if time.monotonic() > deadline:
                raise TimeoutError("the API server does not list all CRDs")
            time.sleep(1.0)
        calm = 0
        before = meter.read()
        while calm < 3 and time.monotonic() < deadline:
            time.sleep(1.0)
            now = meter.read()
            used = before.until(now)
            calm = calm + 1 if used.cpu["apiserver"] < _QUIET * used.seconds else 0
            before = now

    def _all_listed(self) -> bool:
        accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        try:
            listed = sum(1 for _ in Server(self._plane.kubeconfig).list(_CRDS, accept=accept))
        except RuntimeError:  # its cache lags behind etcd
            return False
        return listed >= self.count

    @contextmanager
    def _operator(self) -> Iterator[Operator]:
        operator = Operator(self._plane, flags=_PATIENT)
        try:
            yield operator
        finally:
            operator.close()

    def _start(self, operator: Operator, done: Callable[[], float]) -> str:
        meter = Meter({"apiserver": self._plane.api_servers[0].pid})
        before, begin = meter.read(), time.monotonic()
        operator.start()
        ready = time.monotonic() - begin
        complete = done() - begin
        spent = before.until(meter.read())
        used = cpu_seconds(operator.pid)
        return (
            f"/readyz after {ready:.1f} s, all judged and written after {complete:.1f} s, "
            f"{used:.1f} s of CPU, API server {spent.cpu['apiserver']:.1f} s, "
            f"etcd and other programs {max(0.0, spent.others - used) / spent.seconds:.1f} cores; "
            f"peak memory {_mib(peak_memory(operator.pid))}"
        )

    def _all_written(self) -> float:
        return self.reports.wait(lambda: len(self.reports.generations) >= self.count)

    def _judged(self, operator: Operator) -> float:
        deadline = time.monotonic() + _TIMEOUT
        while operator.metric("crdkeeper_definition_conditions", condition="Ready") < self.count:
            if time.monotonic() > deadline:
                raise TimeoutError("not all CRDs have been judged")
            time.sleep(0.1)
        return time.monotonic()

    def _answered(self) -> float:
        """The seconds until no answer of a probe changes a report any more; some follow the first reports."""
        begin, writes = time.monotonic(), -1
        while writes != self.reports.writes:
            if time.monotonic() - begin > _TIMEOUT:
                raise TimeoutError("reports are written all the time")
            writes = self.reports.writes
            time.sleep(_UNCHANGED_SECONDS)
        return time.monotonic() - begin - _UNCHANGED_SECONDS

    def _at_rest(self, operator: Operator) -> str:
        meter = Meter({"operator": operator.pid})
        before = meter.read()
        time.sleep(_AT_REST_SECONDS)
        used = before.until(meter.read())
        resident = resident_memory(operator.pid)
        return f"{_mib(resident)} resident, {100 * used.cpu['operator'] / used.seconds:.1f} % of a core"

    def _follow_changes(self, changes: int) -> str:
        server = Server(self._plane.kubeconfig)
        took = []
        for number in range(changes):
            # Spread over all, in an order that no cache has seen.
            name = definitions.name(number * 7919 % self.count)
            generation = self.reports.generations[name] + 1
            begin = time.monotonic()
            version = definitions.version(f"Change {number}.", self._fields)
            server.merge(f"{_CRDS}/{name}", {"spec": {"versions": [version]}})
            took.append(self.reports.wait_for(name, generation) - begin)
        return f"{changes} changes: {_spread(took)}"

    def _storm(self, changes: int, seconds: float) -> str:
        """Change that many CRDs within so many seconds, or as fast as the API server lets us."""
        begin = time.monotonic()
        sent: dict[str, tuple[int, float]] = {}

        def change(first: int) -> None:
            server = Server(self._plane.kubeconfig)
            for number in range(first, changes, _STORM_CLIENTS):
                time.sleep(max(0.0, begin + number * seconds / changes - time.monotonic()))
                name = definitions.name(number)
                generation = self.reports.generations[name] + 1
                version = definitions.version(f"Storm {number}.", self._fields)
                server.merge(f"{_CRDS}/{name}", {"spec": {"versions": [version]}})
                sent[name] = generation, time.monotonic()

        with ThreadPoolExecutor(_STORM_CLIENTS) as clients:
            list(clients.map(change, range(_STORM_CLIENTS)))
        took = time.monotonic() - begin
        for name, (generation, _) in sent.items():
            self.reports.wait_for(name, generation)
        # From the API server's answer: it may be slower than the operator.
        late = [max(0.0, self.reports.since[name] - at) for name, (_, at) in sent.items()]
        return f"{changes} changes within {took:.1f} s: {_spread(late)}"


def _spread(took: list[float]) -> str:
    took.sort()
    p99 = took[min(len(took) - 1, int(0.99 * len(took)))]
    return f"p50 {median(took):.3f} s, p99 {p99:.3f} s, worst {took[-1]:.3f} s"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


def _tell(what: str) -> None:
    print(what, file=sys.stderr)


def main() -> None:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description="Measure the reports on many CRDs.")
    parser.add_argument("--definitions", type=int, default=2000)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--storm", type=int, default=500, help="CRDs changed at once (500)")
    parser.add_argument("--storm-seconds", type=float, default=10.0, help="the time in which they are (10)")
    parser.add_argument(
        "--fields",
        type=int,
        default=definitions.FIELDS,
        help="of each CRD: 150 are 36 KB, 40 are 10 KB (150)",
    )
    parser.add_argument("--starts", action="store_true", help="measure nothing but two starts")
    arguments = parser.parse_args()
    with (
        noise_shown(),
        tempfile.TemporaryDirectory() as directory,
        ControlPlane(Path(directory), controllers=_CONTROLLERS) as plane,
    ):
        benchmark = Benchmark(plane, arguments.definitions, arguments.fields)
        if arguments.starts:
            lines = benchmark.starts()
        else:
            lines = benchmark.run(arguments.changes, arguments.storm, arguments.storm_seconds)
    print(f"{arguments.definitions:,} CRDs of {benchmark.size:,} bytes")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
