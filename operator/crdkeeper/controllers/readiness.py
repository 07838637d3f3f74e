"""The metric that counts objects of crdkeeper's kinds by Ready: a new kind is counted without a line here."""

from collections import Counter
from collections.abc import Iterator
from typing import Protocol, cast

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from crdkeeper.api.meta import READY, Condition, find_condition
from crdkeeper.controllers.state import ClusterState


class _Status(Protocol):
    conditions: list[Condition]


class _Judged(Protocol):
    """What each kind is that users write."""

    status: _Status


class Readiness(Collector):
    """Counts at each scrape what the state holds whole."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One metric, by kind and by the status of Ready; an object without it counts as Unknown."""
        family = GaugeMetricFamily(
            "crdkeeper_objects",
            "Objects of crdkeeper's kinds by the status of their condition Ready.",
            labels=("kind", "status"),
        )
        for kind in self._state.kinds():
            counts = Counter(_ready(cast(_Judged, each)) for each in self._state.of(kind).values())
            for status in ("True", "False", "Unknown"):
                family.add_metric((kind.__name__, status), counts[status])
        yield family


def _ready(found: _Judged) -> str:
    ready = find_condition(found.status.conditions, READY)
    return ready.status if ready is not None else "Unknown"
