"""The composer's metrics about composites. Labels are bounded: definitions, reasons, kinds, never names."""

import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from sys import intern
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from crdkeeper.api.meta import READY
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.core.composites.reasons import PAUSED, RECONCILED, RESPONSIVE, SYNCED
from crdkeeper.core.templates.kinds import group_of

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_MOST_KINDS: Final = 100
_OTHER: Final = "other"
"""Of all other kinds: who writes Compositions decides how many there are."""

_Condition = tuple[str, ...]
"""Its type, status and reason."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """What is counted of one composite."""

    conditions: tuple[_Condition, ...] = ()
    pending: tuple[tuple[str, int], ...] = ()
    """By kind: how many objects are not ready."""
    since: tuple[tuple[str, float], ...] = ()
    """By the type of a condition that is not True: since when, in seconds since 1970."""


class ComposingMetrics(Collector):
    """Counts passes and what they write, and composites by what their statuses say."""

    def __init__(
        self, registry: CollectorRegistry, writes: Counter, clock: Callable[[], float] = time.time
    ) -> None:
        """`writes` counts all changes of the composer, by what it changed; `clock` has seconds since 1970."""
        self._writes = writes
        self._clock = clock
        self._counted: dict[str, _Counted] = {}
        """By the key of a composite, which begins with its definition."""
        self._conditions: Counts[_Condition] = Counts()
        self._pending: Counts[str] = Counts()
        self._waiting: dict[tuple[str, str], dict[str, float]] = {}
        """By definition and condition: since when composites wait, by their keys."""
        self._passes = Counter(
            "crdkeeper_composite_passes",
            "Passes over composites, by result: synced, not-synced, retried, failed, skipped.",
            ("result",),
            registry=registry,
        )
        self._seconds = Histogram(
            "crdkeeper_composite_pass_seconds",
            "Time that a pass over a composite took, by phase: gather, plan, apply.",
            ("phase",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.events = Counter(
            "crdkeeper_composite_events",
            "Events about composites, by what became of them: sent, or dropped as too many.",
            ("result",),
            registry=registry,
        )
        registry.register(self)

    def passed(self, key: str, report: PassReport, *, error: str = "", gone: bool = False) -> None:
        """A pass has ended; `error` is the result if it did not get to its end.

        `gone`: so has the composite. What the pass has written counts all the same.
        """
        for write, number in report.writes.items():
            self._writes.labels(write.value).inc(number)
        for phase, seconds in report.seconds.items():
            self._seconds.labels(phase.value).observe(seconds)
        if report.status is not None and not gone:
            before = self._counted.get(key)
            self._move(key, _counted(report.status, before, self._clock()))
        self._passes.labels(error or _result(report.status)).inc()

    def forget(self, key: str) -> None:
        """The composite is gone, or its definition is not looked after any more."""
        self._move(key, _Counted())

    def collect(self) -> Iterator[Metric]:
        """What a scrape shows of the composites."""
        conditions = GaugeMetricFamily(
            "crdkeeper_composite_conditions",
            "Composites by the status and reason of each condition.",
            labels=("condition", "status", "reason"),
        )
        for labels, number in self._conditions.items():
            conditions.add_metric(labels, number)
        pending = GaugeMetricFamily(
            "crdkeeper_composite_pending_objects",
            "Objects of composites that are not ready, by kind.",
            labels=("kind",),
        )
        shown = dict(self._pending.most_common(_MOST_KINDS))
        for kind, number in shown.items():
            pending.add_metric((kind,), number)
        if len(shown) < len(self._pending):
            pending.add_metric((_OTHER,), self._pending.total() - sum(shown.values()))
        waiting = GaugeMetricFamily(
            "crdkeeper_composite_waits_since_timestamp_seconds",
            "Since when the composite of a definition waits that has waited for longest, by the condition "
            "that is not True; paused ones do not count.",
            labels=("definition", "condition"),
        )
        for of, since in self._waiting.items():
            waiting.add_metric(of, min(since.values()))
        yield from (conditions, pending, waiting)

    def _move(self, key: str, now: _Counted) -> None:
        before = self._counted.pop(key, _Counted())
        if now != _Counted():
            self._counted[key] = now
        self._add(before, -1)
        self._add(now, 1)
        name = key.partition("\n")[0]
        for condition, _ in before.since:
            waiting = self._waiting[name, condition]
            del waiting[key]
            if not waiting:
                del self._waiting[name, condition]
        for condition, at in now.since:
            self._waiting.setdefault((name, condition), {})[key] = at

    def _add(self, counted: _Counted, sign: int) -> None:
        for each in counted.conditions:
            self._conditions[each] += sign
            if not self._conditions[each]:
                del self._conditions[each]
        for kind, number in counted.pending:
            self._pending[kind] += sign * number
            if not self._pending[kind]:
                del self._pending[kind]


def _counted(status: Mapping[str, Any], before: _Counted | None, now: float) -> _Counted:
    """What to count of a status, and was counted of it last; None if it was not yet.

    Who may write the status can write another time into it, to which the alerts for all composites would
    listen. So what was seen counts: a condition that was True is not so since now, and what waits already
    does not wait for longer. Only what is seen first, as after a restart, is known from the status alone.
    """
    conditions = status["conditions"]
    fields = "type", "status", "reason"
    named = tuple(tuple(intern(each[field]) for field in fields) for each in conditions)
    known = dict(before.since) if before is not None else {}
    otherwise = now if before is not None else 0.0
    since = tuple(
        (of, min(max(_seconds(each["lastTransitionTime"]), known.get(of, otherwise)), now))
        for each in conditions
        if (of := intern(each["type"])) in (SYNCED, READY, RESPONSIVE) and each["status"] != "True"
    )
    paused = (SYNCED, PAUSED.status, PAUSED.name) in named
    return _Counted(named, _pending(status), () if paused else since)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _pending(status: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    found: Counts[str] = Counts()
    for each in (status.get("crdkeeper") or {}).get("resources") or ():
        if not each.get("ready"):
            at = each["object"]
            kind, group = at["kind"], group_of(at["apiVersion"])
            found[intern(f"{kind}.{group}" if group else kind)] += 1
    return tuple(found.items())


def _result(status: Mapping[str, Any] | None) -> str:
    """Of a pass that got to its end; one over a composite that needs nothing, or is gone, says nothing."""
    if status is None:
        return "skipped"
    synced = any(
        each["type"] == SYNCED and each["reason"] == RECONCILED.name for each in status["conditions"]
    )
    return "synced" if synced else "not-synced"
