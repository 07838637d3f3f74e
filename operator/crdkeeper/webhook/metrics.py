"""The webhook's metrics (Prometheus). Labels are bounded: resources, never objects."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import Metric

from crdkeeper.core.conversion.objects import ConversionTally
from crdkeeper.webhook.http.types import Response

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

_COUNTED: Final = ("counter", "histogram")
Tally = list[tuple[str, str, dict[str, str], float]]
"""Family, sample, labels and value of all that is counted."""


class WebhookMetrics:
    """All metrics of one process, in their own registry."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "crdkeeper_conversion_requests",
            "ConversionReviews by result: converted, failed (an object could not be converted), refused.",
            ("resource", "outcome"),
            registry=self.registry,
        )
        self.objects = Counter(
            "crdkeeper_conversion_objects", "Objects converted.", ("resource",), registry=self.registry
        )
        self.ignored = Counter(
            "crdkeeper_conversion_ignored_aside",
            "Values in annotations of objects that were not restored, because no conversion kept them aside.",
            ("resource",),
            registry=self.registry,
        )
        self.stand_ins = Counter(
            "crdkeeper_conversion_stand_ins",
            "Values without a counterpart at the other version, whose field shows a stand-in or nothing.",
            ("resource",),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "crdkeeper_conversion_seconds",
            "Time from receiving the whole request to the response.",
            ("resource",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.changes = Counter(
            "crdkeeper_change_requests",
            "Changes of CRDs that API servers asked about, by result: allowed, warned (allowed with "
            "warnings), denied, unexamined (allowed for lack of time), refused (no AdmissionReview).",
            ("outcome",),
            registry=self.registry,
        )
        self.change_seconds = Histogram(
            "crdkeeper_change_seconds",
            "Time to judge a change of a CRD; API servers wait for two seconds.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.connections = Counter(
            "crdkeeper_webhook_connections",
            "Connections accepted. An API server keeps 25 idle and opens more for concurrent requests.",
            registry=self.registry,
        )
        self._accepted = 0
        self._meters: dict[str, tuple[Histogram, Counter, Counter, Counter, Counter]] = {}
        """Avoids a lookup by `labels` for each request."""
        self.problems = Gauge(
            "crdkeeper_conversion_rule_problems",
            "Files and rules whose current content is not served. The log says why.",
            registry=self.registry,
        )
        self.stale = Gauge(
            "crdkeeper_conversion_rules_stale_seconds",
            "How long changes to the rules may have been missed; 0 while the API server reports changes.",
            registry=self.registry,
        )
        self.expiry = Gauge(
            "crdkeeper_webhook_certificate_expiry_timestamp_seconds",
            "When the serving certificate expires, as Unix time.",
            registry=self.registry,
        )

    def answered(
        self, resource: str, seconds: float, objects: int, tally: ConversionTally, *, failed: bool
    ) -> None:
        """A ConversionReview was answered."""
        meters = self._meters.get(resource)
        if meters is None:
            meters = self._meters[resource] = (
                self.seconds.labels(resource),
                self.objects.labels(resource),
                self.requests.labels(resource, "converted"),
                self.requests.labels(resource, "failed"),
                self.ignored.labels(resource),
            )
        times, count, converted, not_converted, unbelieved = meters
        times.observe(seconds)
        if tally.stand_ins:
            self.stand_ins.labels(resource).inc(tally.stand_ins)
        count.inc(objects)
        (not_converted if failed else converted).inc()
        if tally.ignored:
            unbelieved.inc(tally.ignored)

    def judged(self, outcome: str, seconds: float) -> None:
        """A request about a change of a CRD was answered."""
        self.changes.labels(outcome).inc()
        self.change_seconds.observe(seconds)

    def connections_are(self, accepted: int) -> None:
        """Set how many connections have been accepted so far."""
        self.connections.inc(accepted - self._accepted)
        self._accepted = accepted

    def refused(self, resource: str) -> None:
        """A request was not a ConversionReview, or its resource has no rules (an empty name)."""
        self.requests.labels(resource, "refused").inc()

    def answer(self, others: Sequence[Tally] = ()) -> Response:
        """The response to a scrape, with what other processes counted."""
        whole = _Summed(self.registry, added([self.tally(), *others])) if others else self.registry
        headers = f"Content-Type: {CONTENT_TYPE_LATEST}\r\n"
        return Response(generate_latest(whole), headers=headers.encode())

    def tally(self) -> Tally:
        """What this process counted, for another one to sum."""
        return [
            (family.name, each.name, each.labels, each.value)
            for family in self.registry.collect()
            if family.type in _COUNTED
            for each in family.samples
        ]


def added(tallies: Iterable[Tally]) -> Tally:
    """The sum of what several processes counted."""
    sums: dict[tuple[str, str, tuple[tuple[str, str], ...]], float] = {}
    for tally in tallies:
        for family, sample, labels, value in tally:
            key = family, sample, tuple(labels.items())
            sums[key] = sums.get(key, 0.0) + value
    return [(family, sample, dict(labels), value) for (family, sample, labels), value in sums.items()]


class _Summed:
    """A registry whose counters and histograms include those of other processes."""

    def __init__(self, own: CollectorRegistry, sums: Tally) -> None:
        self._own, self._sums = own, sums

    def collect(self) -> Iterator[Metric]:
        """Called for each scrape."""
        for family in self._own.collect():
            if family.type in _COUNTED:
                made = Metric(family.name, family.documentation, family.type)
                for name, sample, labels, value in self._sums:
                    if name == family.name:
                        made.add_sample(sample, labels, value)
                yield made
            else:
                yield family
