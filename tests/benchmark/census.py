"""`make bench-census`: a count of very many objects, by an operator that is killed on the way.

Reports say how many objects a CRD has, and which versions their managedFields name. The operator counts a
page of metadata at a time, within a budget of pages per second, and a restarted one continues where the
former was. The kills are at even parts of the count. The benchmark fails if the count is wrong, or if more
pages were requested than the budget allows; it never fails for a figure.

As with very many objects to migrate, the API server runs without watch caches: each page is read from etcd.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from crdkeeper.api.definitionreport import DefinitionReport, DefinitionReportStatus
from crdkeeper.cluster.probes.census import PAGE, PAGES_PER_SECOND
from crdkeeper.cluster.resources.kinds import REPORTS
from crdkeeper.core.migration.counts import format_duration
from tests.benchmark.command import execute, parser_of, show, tell
from tests.benchmark.contestants import server_pids
from tests.benchmark.distance import Distance
from tests.benchmark.meter import Meter, Usage, cpu_seconds, peak_memory, resident_memory
from tests.benchmark.migration import Benchmark
from tests.benchmark.server import Server
from tests.benchmark.subject import CRD, GROUP, PLURAL, WrongResult
from tests.cluster.harness.operator import Operator
from tests.cluster.harness.requestcounts import counted
from tests.controlplane.plane import ControlPlane

_CONTROLLERS: Final = ("clusterrole-aggregation-controller",)
_KILLS: Final = 10
_POLL_SECONDS: Final = 1.0
_SHOWN_SECONDS: Final = 30.0
_SPAN_SECONDS: Final = 60.0
_NO_NEWS_SECONDS: Final = 600.0
_OTHER_PAGES: Final = 20
"""The looks for other conditions, and after each kill a page that was on its way."""


@dataclass(slots=True)
class Count:
    """What was seen of one count."""

    objects: int
    seconds: float = 0.0
    """From the first page to the complete census, with the restarts."""
    pages: int = 0
    again: list[int] = field(default_factory=list)
    """For each kill, the pages that the next process had to list again."""
    pauses: list[float] = field(default_factory=list)
    """For each kill, the seconds until the next page."""
    busiest: float = 0.0
    """Pages per second in the minute that had most."""
    resident: list[int] = field(default_factory=list)
    """Bytes of the last process, a second apart."""
    peak: int = 0
    """Bytes, the most of all processes."""
    milliseconds: float = 0.0
    """CPU of the last process per page."""
    servers: Usage | None = None
    """Of API server and etcd, all the time."""


class Following:
    """Follows one count to its end, and kills the operator on the way."""

    def __init__(
        self, plane: ControlPlane, operator: Operator, objects: int, kills: int, rate: float
    ) -> None:
        self._operator = operator
        self._server = Server(plane.kubeconfig)
        self._meter = Meter(server_pids(plane))
        self._kills = [(number + 1) * objects // (kills + 1) for number in range(kills)]
        self._rate = rate
        self._first = self._pages()
        self._samples: list[tuple[float, int]] = []
        self._shown = 0.0
        self._process = (0.0, 0)
        """CPU seconds and pages when the last process had begun."""
        self.count = Count(objects)

    def run(self) -> Count:
        """Raises WrongResult."""
        before, began = self._meter.read(), time.monotonic()
        self._operator.start()
        while (status := self._status()) is None or status.census is None:
            self._look(status)
            time.sleep(_POLL_SECONDS)
        found = self.count
        found.seconds, found.servers = time.monotonic() - began, before.until(self._meter.read())
        found.pages = self._pages() - self._first
        found.peak = max(found.peak, peak_memory(self._operator.pid))
        spent, pages = self._process
        found.milliseconds = 1000 * (cpu_seconds(self._operator.pid) - spent) / max(1, found.pages - pages)
        found.busiest = self._busiest()
        self._check(status.census.objects)
        return found

    def _check(self, objects: int) -> None:
        found, other = self.count, _OTHER_PAGES + 2 * len(self.count.again)
        if objects != found.objects:
            raise WrongResult(f"{objects:,} of {found.objects:,} objects were counted")
        least = -(-found.objects // PAGE)
        if found.pages > least + sum(found.again) + other:
            raise WrongResult(
                f"{found.pages:,} pages, of which {least:,} and {sum(found.again)} are explained"
            )
        if found.busiest * _SPAN_SECONDS > self._rate * _SPAN_SECONDS + other:
            raise WrongResult(f"{found.busiest:.1f} pages per second, more than {self._rate:g}")

    def _look(self, status: DefinitionReportStatus | None) -> None:
        now, pages = time.monotonic(), self._pages() - self._first
        if not self._samples or pages != self._samples[-1][1]:
            self._samples.append((now, pages))
        elif now - self._samples[-1][0] > _NO_NEWS_SECONDS:
            raise WrongResult(f"no page was requested for {_NO_NEWS_SECONDS:.0f} s")
        self.count.resident.append(resident_memory(self._operator.pid))
        counting = status.counting.objects if status is not None and status.counting is not None else 0
        if self._kills and counting >= self._kills[0]:
            self._kills.pop(0)
            self._kill()
        elif now - self._shown > _SHOWN_SECONDS:
            self._shown = now
            memory = self.count.resident[-1] / 2**20
            tell(f"  {counting:,} objects counted, {pages:,} pages, {memory:.0f} MiB")

    def _kill(self) -> None:
        found = self.count
        found.peak = max(found.peak, peak_memory(self._operator.pid))
        self._operator.kill()
        killed, pages = time.monotonic(), self._still()
        status = self._status()
        known = status.counting.objects if status is not None and status.counting is not None else 0
        found.again.append(pages - sum(found.again) - known // PAGE)
        self._operator.start()
        while self._pages() - self._first == pages:
            if time.monotonic() - killed > _NO_NEWS_SECONDS:
                raise WrongResult("no page was requested after a kill")
            time.sleep(_POLL_SECONDS / 4)
        found.pauses.append(time.monotonic() - killed)
        found.resident.clear()
        self._process = cpu_seconds(self._operator.pid), self._pages() - self._first
        tell(
            f"  killed at {pages:,} pages: {found.again[-1]} to list again, the next after "
            f"{found.pauses[-1]:.1f} s"
        )

    def _still(self) -> int:
        """The pages so far, when those that were on their way have been answered."""
        last = -1
        while (pages := self._pages() - self._first) != last:
            last = pages
            time.sleep(_POLL_SECONDS)
        return pages

    def _pages(self) -> int:
        return counted(self._server.raw("/metrics").decode(), GROUP, PLURAL, "LIST")

    def _status(self) -> DefinitionReportStatus | None:
        """Of the CRD's report; None if there is none yet."""
        found = self._server.send("GET", f"{REPORTS}?fieldSelector=metadata.name%3D{CRD}")["items"]
        return DefinitionReport.model_validate(found[0]).status if found else None

    def _busiest(self) -> float:
        best = 0.0
        for begin, pages in self._samples:
            later = [each for each in self._samples if each[0] <= begin + _SPAN_SECONDS]
            best = max(best, (later[-1][1] - pages) / _SPAN_SECONDS)
        return best


def _lines(found: Count, rate: float) -> list[str]:
    assert found.servers is not None
    per_page = {name: 1000 * used / found.pages for name, used in found.servers.cpu.items()}
    quarter = max(1, len(found.resident) // 4)
    first, last = fmean(found.resident[:quarter]), fmean(found.resident[-quarter:])
    servers = ", ".join(f"{name} {each:.1f} ms" for name, each in per_page.items())
    others = found.servers.others / found.seconds
    lines = [
        f"{found.objects:,} objects counted in {format_duration(found.seconds)}: {found.pages:,} pages, "
        f"{found.pages / found.seconds:.1f} per second, {found.busiest:.1f} in the minute that had most "
        f"(budget: {rate:g})",
        f"  CPU per page: operator {found.milliseconds:.1f} ms, {servers}; other programs and the operator "
        f"{others:.1f} cores",
        f"  memory of the last process: {first / 2**20:.0f} MiB in its first quarter, {last / 2**20:.0f} MiB "
        f"in its last; peak of all {found.peak / 2**20:.0f} MiB",
    ]
    if found.again:
        least, most = min(found.again), max(found.again)
        lines.append(
            f"  killed {len(found.again)} times: {least} to {most} pages listed again, median "
            f"{median(found.again):.0f}; next page after {min(found.pauses):.1f} to "
            f"{max(found.pauses):.1f} s"
        )
    return lines


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The whole benchmark; prints and returns the figures."""
    with tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory:
        plane = ControlPlane(
            Path(directory), controllers=_CONTROLLERS, extra_apiserver_flags={"watch-cache": "false"}
        )
        with Distance(0, url=plane.url, directory=Path(directory)) as distance, plane:
            benchmark = Benchmark(plane, distance, options.namespaces)
            tell(f"making {options.objects:,} objects")
            benchmark.subject.grow(options.objects)
            flags = {"kubeconfig": str(benchmark.account), "pages-per-second": f"{options.rate:g}"}
            operator = Operator(plane, identity="bench", flags=flags)
            try:
                found = Following(plane, operator, options.objects, options.kills, options.rate).run()
            finally:
                operator.close()
    show(_lines(found, options.rate))
    return asdict(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if the count is wrong, or took more requests than allowed, else 0."""
    parser = parser_of("census", __doc__)
    parser.add_argument("--objects", type=int, default=100_000, metavar="N")
    parser.add_argument("--namespaces", type=int, default=10_000, metavar="N")
    parser.add_argument("--kills", type=int, default=_KILLS, metavar="N")
    parser.add_argument(
        "--rate", type=float, default=PAGES_PER_SECOND, metavar="N", help="budget of pages per second"
    )
    return execute(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
