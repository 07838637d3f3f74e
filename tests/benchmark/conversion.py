"""Our conversion webhook compared to one written by hand in Go, for the same two versions of a CronTab.

`make bench-conversion` prints it: both webhooks called directly, then through a real API server, alternating,
in one run. The legend says what the API server converts, and when.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from tests.benchmark import conversionsubject as subject
from tests.benchmark.command import noise_shown
from tests.benchmark.conversioncontestants import GO, LOOPBACK, ByHand, Contestant, Ours
from tests.benchmark.load import Failed, Sample, Target, get, load, post
from tests.benchmark.meter import Meter, memory_with_children
from tests.benchmark.server import Server
from tests.certificates import Authority
from tests.controlplane.plane import ControlPlane

LEGEND: Final = """\
directly         ConversionReviews from stored v1 to v1alpha1, by HTTP/1.1 over kept-alive TLS connections,
                 as API servers ask the webhook of a Service. Each client waits for its answer.
new connections  a TLS handshake for each request. An API server keeps 25 idle connections to a webhook; for
                 what it asks at the same time beyond that it makes new ones.
API server       with --watch-cache=false, so that all reads are converted: else a LIST is answered from what
                 was converted when it came into the cache. A LIST asks for one object after the other, as it
                 reads them from etcd.
not converted    the same reads at the version that is stored: the API server's own share.
CPU              user and system time of the webhook (and of the API server) for each object.
Memory           the resident size of all processes of a webhook, where pages that they share count once.
crdkeeper is     our figure divided by Go's in the same round, the median of these. More than 1 is better for
                 objects/s, less than 1 for all others."""

OBJECTS: Final = 500
_DIRECT: Final = ((1, 1), (1, 8), (1, 32), (500, 1), (500, 4), (500, 8))
"""Objects in a review, and clients."""
_READS: Final = ((1, 8), (1, 64), (500, 1), (500, 4))
_STORED: Final = "not converted"
_WEBHOOK, _APISERVER = "webhook", "apiserver"


@dataclass(slots=True)
class Section:
    """The same work by all contestants, round by round."""

    title: str
    objects: int
    """In one answer."""
    turns: dict[str, Callable[[], Sample]]
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def round(self, number: int) -> None:
        """Have each contestant work once, in alternating order: a slower machine affects all alike."""
        for name, turn in list(self.turns.items())[:: -1 if number % 2 else 1]:
            self.samples.setdefault(name, []).append(turn())

    def lines(self) -> list[str]:
        """The table."""
        made = [_columns(self.title, "objects/s", "p50", "p99", "CPU", "apiserver CPU")]
        for name, samples in self.samples.items():
            rates = [each.answers * self.objects / each.seconds for each in samples]
            made.append(
                _columns(
                    f"  {name}",
                    f"{median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})",
                    f"{1000 * median(each.quantile(0.5) for each in samples):.2f} ms",
                    f"{1000 * median(each.quantile(0.99) for each in samples):.2f} ms",
                    self._cpu(samples, _WEBHOOK),
                    self._cpu(samples, _APISERVER),
                )
            )
        figures: list[Callable[[Sample], float]] = [
            lambda each: each.answers / each.seconds,
            lambda each: each.quantile(0.5),
            lambda each: each.quantile(0.99),
            lambda each: each.usage.cpu[_WEBHOOK] / each.answers,
        ]
        go = self.samples[GO]
        for name in (each for each in self.samples if each not in (GO, _STORED)):
            ratios = []
            for figure in figures:
                rounds = zip(map(figure, self.samples[name]), map(figure, go), strict=True)
                ratios.append(f"{median(one / other if other else 0.0 for one, other in rounds):.2f}")
            made.append(_columns(f"  {name} is", *ratios, ""))
        return made

    def _cpu(self, samples: Sequence[Sample], name: str) -> str:
        if name not in samples[0].usage.cpu:
            return "-"
        used = median(each.usage.cpu[name] / each.answers for each in samples)
        return f"{1e6 * used / self.objects:,.0f} us"

    def to_object(self) -> dict[str, object]:
        """As JSON."""
        rounds = {
            name: [
                {
                    "seconds": each.seconds,
                    "objects": each.answers * self.objects,
                    "p50": each.quantile(0.5),
                    "p99": each.quantile(0.99),
                    "usage": each.usage.to_object(),
                }
                for each in samples
            ]
            for name, samples in self.samples.items()
        }
        return {"title": self.title, "rounds": rounds}


def _columns(first: str, *others: str) -> str:
    widths = (25, 12, 12, 10, 15)
    return first.ljust(52) + "".join(each.rjust(width) for each, width in zip(others, widths, strict=True))


def _clients(number: int) -> str:
    return f"{number} client{'s' if number > 1 else ''}"


def direct(contestants: Sequence[Contestant], seconds: float) -> list[Section]:
    """Both webhooks called as an API server calls them."""

    def turn(each: Contestant, objects: int, at_once: int, reconnect: bool) -> Callable[[], Sample]:
        numbers = range(OBJECTS)
        parts = [numbers[start : start + objects] for start in range(0, OBJECTS, objects)]
        requests = [
            post(
                each.path,
                subject.review(each.group, "v1alpha1", [subject.stored(each.group, "v1", i) for i in part]),
            )
            for part in parts
        ]
        target = Target(f"{LOOPBACK}:{each.port}", LOOPBACK, each.ca_file)
        meter = Meter({_WEBHOOK: each.process.pid})
        return lambda: load(target, requests, meter, at_once=at_once, seconds=seconds, reconnect=reconnect)

    plans = [(objects, at_once, False) for objects, at_once in _DIRECT] + [(1, 8, True)]
    return [
        Section(
            f"directly, {objects} in a review, {_clients(at_once)}"
            + (", new connections" if reconnect else ""),
            objects,
            {each.title: turn(each, objects, at_once, reconnect) for each in contestants},
        )
        for objects, at_once, reconnect in plans
    ]


def install(plane: ControlPlane, contestants: Sequence[Contestant]) -> None:
    """The CRDs with their webhooks and objects."""
    for each in contestants:
        crd = subject.definition(each.group, each.client_config)
        for document in (each.service, crd):
            plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(document))
        plane.kubectl.wait_established(f"crd/{each.resource}")
        items = [subject.manifest(each.group, subject.STORAGE, i) for i in range(OBJECTS)]
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        plane.kubectl("create", "-f", "-", input=body)


def through(plane: ControlPlane, contestants: Sequence[Contestant], seconds: float) -> list[Section]:
    """Reads from the API server."""
    server = Server(plane.kubeconfig)
    ca_file = plane.ca_file
    target = Target(f"{server.host}:{server.port}", server.host, ca_file)

    def turn(each: Contestant, version: str, objects: int, at_once: int) -> Callable[[], Sample]:
        path = f"/apis/{each.group}/{version}/namespaces/{subject.NAMESPACE}/crontabs"
        names = [f"/crontab-{i:05}" for i in range(OBJECTS)] if objects == 1 else [""]
        requests = [get(path + name, server.authorization) for name in names]
        meter = Meter({_WEBHOOK: each.process.pid, _APISERVER: plane.api_servers[0].pid})
        return lambda: load(target, requests, meter, at_once=at_once, seconds=seconds)

    sections = []
    for objects, at_once in _READS:
        what = "GET" if objects == 1 else f"LIST of {objects}"
        turns = {each.title: turn(each, "v1alpha1", objects, at_once) for each in contestants}
        turns[_STORED] = turn(contestants[0], subject.STORAGE, objects, at_once)
        sections.append(Section(f"API server, {what}, {_clients(at_once)}", objects, turns))
    return sections


def reviews_of_a_list(plane: ControlPlane, ours: Ours) -> str:
    """The API server's requests for one list, as our webhook counts them."""
    before = ours.counted()
    plane.kubectl("get", "--raw", f"/apis/{ours.group}/v1alpha1/crontabs")
    after = ours.counted()
    return f"One LIST of {OBJECTS} made {after[0] - before[0]} reviews of {after[1] - before[1]} objects."


def run(options: argparse.Namespace) -> list[Section]:
    """The whole benchmark; prints the tables."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crdkeeper-bench-")))
        authority = Authority()
        ours, by_hand = Ours(authority, directory), ByHand(authority, directory)
        several = [Ours(authority, directory, each) for each in options.processes]
        contestants = (ours, by_hand, *several)
        for each in contestants:
            stack.callback(each.close)
            each.start()
        sections = direct(contestants, options.seconds)
        if not options.skip_api_server:
            flags = {"watch-cache": "false"}
            plane = ControlPlane(directory / "plane", controllers=(), extra_apiserver_flags=flags)
            stack.enter_context(plane)
            install(plane, contestants)
            print(reviews_of_a_list(plane, ours), end="\n\n", flush=True)
            sections += through(plane, contestants, options.seconds)
        for section in sections:
            reviews, _, connections = ours.counted()
            for number in range(options.rounds):
                print(f"{section.title}: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                section.round(number)
            lines, after = section.lines(), ours.counted()
            memory = ", ".join(
                f"{each.title} {memory_with_children(each.process.pid) / 2**20:.0f} MiB"
                for each in contestants
            )
            asked = f"{after[0] - reviews:,} reviews on {after[2] - connections:,} new connections"
            print(*lines, f"  crdkeeper was asked {asked}.", f"  Memory: {memory}.", "", sep="\n", flush=True)
    return sections


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an answer was wrong, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmark.conversion",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each contestant in each round")
    parser.add_argument(
        "--processes", type=int, nargs="*", default=[2], metavar="N", help="also crdkeeper with --processes N"
    )
    parser.add_argument("--skip-api-server", action="store_true", help="ask the webhooks directly alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures of all rounds")
    options = parser.parse_args(arguments)
    size = len(json.dumps(subject.stored("example.com", subject.STORAGE, 0)))
    print(f"Objects of {size:,} bytes; {os.cpu_count()} cores.", end="\n\n")
    try:
        with noise_shown():
            sections = run(options)
    except KeyboardInterrupt:
        return 130
    except Failed as error:
        print(f"The benchmark failed: {error}", file=sys.stderr)
        return 1
    print(LEGEND)
    if options.json:
        options.json.write_text(json.dumps([each.to_object() for each in sections], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
