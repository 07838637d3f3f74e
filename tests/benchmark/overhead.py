"""`make bench-overhead`: what a migration costs the API server beside the patches, part by part.

In turns, on one control plane, the same objects are rewritten by a bare client without the operator, by the
same client beside an operator at rest, and by the operator, always with 16 requests in flight. What the
operator requests is counted by the API server's own metrics; what a page of a list and a save of the progress
cost is measured by repeating each. The figures are the API server's CPU, and it never fails for one.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from crdkeeper.api.meta import GROUP as OUR_GROUP
from crdkeeper.api.meta import VERSION
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.probes.census import PAGE as CENSUS_PAGE
from crdkeeper.cluster.resources.objects import PAGE
from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST
from tests.benchmark import contestants
from tests.benchmark.command import execute, parser_of, show, tell
from tests.benchmark.contestants import Work
from tests.benchmark.distance import Distance
from tests.benchmark.meter import Meter
from tests.benchmark.migration import Benchmark
from tests.benchmark.server import Server
from tests.benchmark.subject import GROUP, PLURAL
from tests.controlplane.plane import ControlPlane

_AT_ONCE: Final = 16
_SERVER: Final = "kube-apiserver"
_REPEATED: Final = 100
_IDLE_SECONDS: Final = 3.0
_CONTROLLERS: Final = ("clusterrole-aggregation-controller", "serviceaccount-controller")
_SAVES: Final = f" {StorageMigration.plural}/status"
_LISTS: Final = f"LIST {PLURAL}"
_SAMPLE: Final = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_ALONE, _BESIDE, _OURS, _SECOND = (
    "the patches alone",
    "the patches, beside an operator at rest",
    "crdkeeper, up to Rewritten",
    "crdkeeper, from Rewritten to Succeeded",
)


@dataclass(slots=True)
class Parts:
    """Milliseconds of the API server's CPU, per object or as named, by round."""

    turns: dict[str, list[float]] = field(default_factory=dict)
    page: list[float] = field(default_factory=list)
    census_page: list[float] = field(default_factory=list)
    save: list[float] = field(default_factory=list)
    requests: list[Counter[str]] = field(default_factory=list)

    def add(self, name: str, milliseconds: float) -> None:
        """One turn's."""
        self.turns.setdefault(name, []).append(milliseconds)


class Overhead(Benchmark):
    """The turns of all, and the parts."""

    def measure(self, rounds: int) -> Parts:
        """Each turn once per round, in alternating order."""
        parts, server = Parts(), Server(self._plane.kubeconfig)
        turns: list[Callable[[], None]] = [
            lambda: self._patch(parts, _ALONE),
            lambda: self._beside(parts),
            lambda: self._migrate(parts, server),
        ]
        for number in range(rounds):
            tell(f"round {number + 1} of {rounds}")
            for turn in turns[:: -1 if number % 2 else 1]:
                turn()
            parts.page.append(self._page(server, PAGE))
            parts.census_page.append(self._page(server, CENSUS_PAGE))
        return parts

    def _patch(self, parts: Parts, name: str) -> None:
        self.subject.flip()
        work = self._bare(_AT_ONCE)
        self.subject.check()
        parts.add(name, self._per_object(work))

    def _beside(self, parts: Parts) -> None:
        with self._operator():
            self._patch(parts, _BESIDE)

    def _migrate(self, parts: Parts, server: Server) -> None:
        name = next(self._names)
        with self._operator() as operator:
            self.subject.flip()
            before = _requests(server)
            limits = {"minConcurrency": _AT_ONCE, "maxConcurrency": _AT_ONCE}
            work = contestants.crdkeeper(self._plane, operator, name, limits=limits)
            parts.requests.append(_requests(server) - before)
            self.subject.check()
        assert work.whole is not None
        second = work.whole.cpu[_SERVER] - work.usage.cpu[_SERVER]
        parts.add(_OURS, self._per_object(work))
        parts.add(_SECOND, 1000 * second / self.subject.count)
        path = f"/apis/{OUR_GROUP}/{VERSION}/{StorageMigration.plural}/{name}/status"
        parts.save.append(self._cost(lambda: self._save(server, path)) / _REPEATED)

    def _save(self, server: Server, path: str) -> None:
        for number in range(_REPEATED):
            server.merge(path, {"status": {"progress": {"rewritten": number}}})

    def _page(self, server: Server, limit: int) -> float:
        """What a page of the list costs."""
        path = f"/apis/{GROUP}/{self.subject.version}/{PLURAL}"

        def listed() -> None:
            for _ in server.list(path, accept=METADATA_ONLY_LIST, limit=limit):
                pass

        return self._cost(listed) / _pages(self.subject.count, limit)

    def _cost(self, work: Callable[[], None]) -> float:
        """Milliseconds of the API server's CPU, without what it uses when idle."""
        meter = Meter({_SERVER: self._plane.api_servers[0].pid})
        before = meter.read()
        time.sleep(_IDLE_SECONDS)
        idle = before.until(meter.read())
        before = meter.read()
        work()
        return 1000 * before.until(meter.read()).without(idle).cpu[_SERVER]

    def _per_object(self, work: Work) -> float:
        return 1000 * work.usage.cpu[_SERVER] / self.subject.count


def _pages(objects: int, limit: int) -> int:
    return -(-objects // limit)


def _requests(server: Server) -> Counter[str]:
    """How many requests the API server has answered so far, by what they were."""
    found: Counter[str] = Counter()
    for labels, value in _SAMPLE.findall(server.raw("/metrics").decode()):
        named = dict(_LABEL.findall(labels))
        what = "/".join(filter(None, (named["resource"], named["subresource"])))
        if named["resource"] != "leases":
            found[f"{named['verb']} {what}"] += round(float(value))
    return found


def _table(objects: int, parts: Parts) -> list[str]:
    rounds = len(parts.requests)
    counted = Counter(
        {what: round(median(each[what] for each in parts.requests)) for what in set().union(*parts.requests)}
    )
    saves = sum(number for what, number in counted.items() if what.endswith(_SAVES))
    pages = 2 * _pages(objects, PAGE)
    single = {
        f"{pages} pages of the two passes": (pages, parts.page),
        f"{counted[_LISTS] - pages} pages of the census": (counted[_LISTS] - pages, parts.census_page),
        f"{saves} saves of the status": (saves, parts.save),
    }
    return [
        f"CPU of the API server per object; medians of {rounds} rounds (lowest-highest), {objects:,} objects",
        "",
        *(f"{name:<46}{_spread(each)}" for name, each in parts.turns.items()),
        "",
        *(
            f"{name:<46}{number * median(each) / objects:6.2f} ms, as{_spread(each)} each"
            for name, (number, each) in single.items()
        ),
        "",
        "Requests from before the migration to Succeeded, without Leases: "
        + ", ".join(f"{number} {what}" for what, number in counted.most_common() if number),
    ]


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):6.2f} ms ({min(values):.2f}-{max(values):.2f})"


def run(options: argparse.Namespace) -> Mapping[str, Any]:
    """The whole benchmark; prints the table and returns the figures."""
    with tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory:
        plane = ControlPlane(Path(directory), controllers=_CONTROLLERS)
        with Distance(0, url=plane.url, directory=Path(directory)) as distance, plane:
            overhead = Overhead(plane, distance)
            overhead.subject.grow(options.objects)
            parts = overhead.measure(options.rounds)
    show(_table(options.objects, parts))
    return {
        "turns": parts.turns,
        "page": parts.page,
        "censusPage": parts.census_page,
        "save": parts.save,
        "requests": [dict(each) for each in parts.requests],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an object was not rewritten that should have been, else 0."""
    parser = parser_of("overhead", __doc__)
    parser.add_argument("--objects", type=int, default=5000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    return execute(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
