"""The composer's metrics about definitions. Labels are bounded: definitions and reasons, never composites."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinitionStatus

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class CompositeMetrics:
    """Counts definitions by their conditions, composites, and what the composer writes for definitions."""

    def __init__(self, registry: CollectorRegistry, writes: Counter) -> None:
        """`writes` counts all changes of the composer, by what it changed."""
        self._counted: dict[str, set[tuple[str, str, str]]] = {}
        self._conditions = Gauge(
            "crdkeeper_composite_definition_conditions",
            "CompositeResourceDefinitions by the status and reason of each condition.",
            ("condition", "status", "reason"),
            registry=registry,
        )
        self._composites = Gauge(
            "crdkeeper_composites", "Composites by definition.", ("definition",), registry=registry
        )
        self.writes = writes
        self.seconds = Histogram(
            "crdkeeper_composer_reconcile_seconds",
            "Time to look at a definition and take the next step.",
            buckets=_BUCKETS,
            registry=registry,
        )

    def count(self, name: str, status: CompositeResourceDefinitionStatus) -> None:
        """Count a definition by its status, and no longer by an earlier one."""
        self._composites.labels(name).set(status.composites)
        self._move(name, {(each.type, each.status, each.reason) for each in status.conditions})

    def forget(self, name: str) -> None:
        """The definition is gone."""
        if name in self._counted:
            self._composites.remove(name)
            self._move(name, set())

    def _move(self, name: str, now: set[tuple[str, str, str]]) -> None:
        before = self._counted.pop(name, set())
        if now:
            self._counted[name] = now
        for each in before - now:
            self._conditions.labels(*each).dec()
        for each in now - before:
            self._conditions.labels(*each).inc()
