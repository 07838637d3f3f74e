"""The webhook's metrics (Prometheus). Labels are bounded: resources, never objects."""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """All metrics of one process, in a registry of their own."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "crdkeeper_conversion_requests",
            "ConversionReviews by what became of them: converted, failed (an object could not be), refused.",
            ("resource", "outcome"),
            registry=self.registry,
        )
        self.objects = Counter(
            "crdkeeper_conversion_objects", "Objects converted.", ("resource",), registry=self.registry
        )
        self.seconds = Histogram(
            "crdkeeper_conversion_seconds",
            "Time from the whole request to the answer.",
            ("resource",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.problems = Gauge(
            "crdkeeper_conversion_rule_problems",
            "Files and rules that do not serve as they are now; the log says why.",
            registry=self.registry,
        )
        self.expiry = Gauge(
            "crdkeeper_webhook_certificate_expiry_timestamp_seconds",
            "When the serving certificate expires, as Unix time.",
            registry=self.registry,
        )

    def exposition(self) -> bytes:
        """The text for a scrape."""
        return generate_latest(self.registry)
