"""The operator's metrics (Prometheus). Labels are bounded: resources and migrations, never objects."""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from crdkeeper.core.migration.evidence import Outcome
from crdkeeper.operations.migration.sweep import Observer

_COUNTED = (Outcome.REWRITTEN, Outcome.CURRENT, Outcome.GONE, Outcome.REFUSED)
_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class OperatorMetrics:
    """All metrics of one process, in their own registry."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.objects = Counter(
            "crdkeeper_migration_objects",
            "Objects that migrations tried to write, by result.",
            ("resource", "outcome"),
            registry=self.registry,
        )
        self.requests = Counter(
            "crdkeeper_migration_requests",
            "Rewrite requests by HTTP status code; 0 means no response.",
            ("resource", "code"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "crdkeeper_migration_request_seconds",
            "Latency of rewrite requests.",
            ("resource",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.migrations = Gauge(
            "crdkeeper_migrations", "StorageMigrations by state.", ("state",), registry=self.registry
        )
        self.quarantined = Gauge(
            "crdkeeper_migration_quarantined_objects",
            "Objects that could not be written yet.",
            ("migration",),
            registry=self.registry,
        )
        self.definitions = Gauge(
            "crdkeeper_definitions",
            "CRDs by state: current (only one stored version) or outdated (more than one).",
            ("state",),
            registry=self.registry,
        )
        self.conditions = Gauge(
            "crdkeeper_definition_conditions",
            "CRDs by the status and reason of each condition in their reports.",
            ("condition", "status", "reason"),
            registry=self.registry,
        )
        self.conversions = Gauge(
            "crdkeeper_version_conversions",
            "VersionConversions by the status and reason of Ready.",
            ("status", "reason"),
            registry=self.registry,
        )
        self.finalizers = Counter(
            "crdkeeper_finalizers_released",
            "Finalizers released from objects in deletion on behalf of DefinitionPolicies.",
            ("resource", "finalizer"),
            registry=self.registry,
        )
        self.retirements = Gauge(
            "crdkeeper_version_retirements",
            "VersionRetirements by the status and reason of Ready.",
            ("status", "reason"),
            registry=self.registry,
        )
        self.composer_writes = Counter(
            "crdkeeper_composer_writes",
            "Changes that the composer made, by what it changed: see docs/operating.md.",
            ("what",),
            registry=self.registry,
        )
        self.leader = Gauge(
            "crdkeeper_leader", "1 on the replica that holds the Lease.", registry=self.registry
        )

    def observer(self, resource: str) -> Observer:
        """The callback with which a sweep over `resource` reports each write."""
        seconds = self.seconds.labels(resource)
        outcomes = {each: self.objects.labels(resource, each.value) for each in _COUNTED}

        codes: dict[int, Counter] = {}

        def observe(outcome: Outcome, code: int, took: float) -> None:
            seconds.observe(took)
            if code not in codes:
                codes[code] = self.requests.labels(resource, code)
            codes[code].inc()
            if counter := outcomes.get(outcome):
                counter.inc()

        return observe

    def exposition(self) -> bytes:
        """The response to a scrape."""
        return generate_latest(self.registry)
