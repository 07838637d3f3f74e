"""What a scrape shows of composites."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from crdkeeper.controllers.composite.metrics import ComposingMetrics
from crdkeeper.controllers.composite.report import PassPhase, PassReport
from crdkeeper.core.composites.deeds import CompositeWrite

DATABASES = "databases.platform.example.com"
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
EARLY_SECONDS, LATE_SECONDS = 1767225600.0, 1767229200.0
NOW = LATE_SECONDS + 3600.0


def metrics(now: Callable[[], float] = lambda: NOW) -> tuple[ComposingMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    writes = Counter("crdkeeper_composer_writes", "Changes.", ("what",), registry=registry)
    return ComposingMetrics(registry, writes, now), registry


def report(
    synced: tuple[str, str],
    ready: tuple[str, str],
    *unready: str,
    since: str = EARLY,
    done: Sequence[CompositeWrite] = (),
) -> PassReport:
    """A pass that has written such conditions; `unready` are kinds of objects."""
    conditions = [
        {"type": type_, "status": status, "reason": reason, "lastTransitionTime": since}
        for type_, (status, reason) in (("Synced", synced), ("Ready", ready))
    ]
    objects: list[Any] = [
        {"object": {"apiVersion": "apps/v1", "kind": each}, "ready": False} for each in unready
    ]
    objects.append({"object": {"apiVersion": "v1", "kind": "Secret"}, "ready": True})
    made = PassReport(status={"conditions": conditions, "crdkeeper": {"resources": objects}})
    for each in done:
        made.wrote(each)
    return made


def samples(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """By the values of the labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


GOOD = ("True", "ReconcileSuccess")
AVAILABLE = ("True", "Available")
CREATED = CompositeWrite.CREATED


def test_composites_are_counted_by_their_last_status() -> None:
    counted, registry = metrics()
    first, second = f"{DATABASES}\nshop\na", f"{DATABASES}\nshop\nb"
    counted.passed(first, report(("False", "Refused"), ("False", "NotSynced"), "Deployment", since=LATE))
    counted.passed(second, report(GOOD, ("False", "Creating"), "Deployment", "StatefulSet"))
    assert samples(registry, "crdkeeper_composite_pending_objects") == {
        ("Deployment.apps",): 2.0,
        ("StatefulSet.apps",): 1.0,
    }
    since = samples(registry, "crdkeeper_composite_waits_since_timestamp_seconds")
    assert since == {(DATABASES, "Synced"): LATE_SECONDS, (DATABASES, "Ready"): EARLY_SECONDS}
    counted.passed(second, report(GOOD, AVAILABLE))
    assert samples(registry, "crdkeeper_composite_conditions") == {
        ("Synced", "False", "Refused"): 1.0,
        ("Ready", "False", "NotSynced"): 1.0,
        ("Synced", "True", "ReconcileSuccess"): 1.0,
        ("Ready", "True", "Available"): 1.0,
    }
    since = samples(registry, "crdkeeper_composite_waits_since_timestamp_seconds")
    assert since == {(DATABASES, "Synced"): LATE_SECONDS, (DATABASES, "Ready"): LATE_SECONDS}
    counted.forget(first)
    assert samples(registry, "crdkeeper_composite_waits_since_timestamp_seconds") == {}
    assert samples(registry, "crdkeeper_composite_pending_objects") == {}


def test_a_paused_composite_raises_no_alarm() -> None:
    counted, registry = metrics()
    counted.passed(f"{DATABASES}\nshop\na", report(("False", "ReconcilePaused"), ("False", "NotSynced")))
    assert samples(registry, "crdkeeper_composite_waits_since_timestamp_seconds") == {}
    assert ("Synced", "False", "ReconcilePaused") in samples(registry, "crdkeeper_composite_conditions")


@pytest.mark.parametrize("forged", ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"])
def test_a_time_that_somebody_else_wrote_raises_no_alarm(forged: str) -> None:
    now = [EARLY_SECONDS + 5.0]
    counted, registry = metrics(lambda: now[0])
    key, creating = f"{DATABASES}\nshop\na", ("False", "Creating")

    def waits() -> dict[tuple[str, ...], float]:
        return samples(registry, "crdkeeper_composite_waits_since_timestamp_seconds")

    counted.passed(key, report(GOOD, creating))
    counted.passed(key, report(GOOD, creating, since=forged))
    assert waits() == {(DATABASES, "Ready"): EARLY_SECONDS}
    counted.passed(key, report(GOOD, AVAILABLE))
    now[0] = NOW
    counted.passed(key, report(GOOD, creating, since=forged))
    counted.passed(key, report(GOOD, creating, since=forged))
    assert waits() == {(DATABASES, "Ready"): NOW}
    # Nor does a time that is to come hide that it waits.
    other = f"{DATABASES}\nshop\nb"
    counted.forget(key)
    counted.passed(other, report(GOOD, creating, since="9999-12-31T23:59:59Z"))
    assert waits() == {(DATABASES, "Ready"): NOW}
    # Unknown composites are known by their statuses, as after a restart; it may have changed to False since.
    counted.passed(other, report(GOOD, creating, since=LATE))
    counted.forget(other)
    counted.passed(other, report(GOOD, creating, since=LATE))
    assert waits() == {(DATABASES, "Ready"): LATE_SECONDS}


def test_passes_and_what_they_write() -> None:
    counted, registry = metrics()
    key = f"{DATABASES}\nshop\na"
    work = report(
        GOOD, AVAILABLE, done=[CompositeWrite.CREATED, CompositeWrite.CREATED, CompositeWrite.STATUS]
    )
    with work.phase(PassPhase.APPLY):
        pass
    counted.passed(key, work)
    # What an error ends has written something, too.
    failed = PassReport()
    failed.wrote(CompositeWrite.FINALIZER)
    counted.passed(key, failed, error="failed")
    counted.passed(key, PassReport())
    assert samples(registry, "crdkeeper_composer_writes_total") == {
        ("object-created",): 2.0,
        ("composite-status",): 1.0,
        ("composite-finalizer",): 1.0,
    }
    assert samples(registry, "crdkeeper_composite_passes_total") == {
        ("synced",): 1.0,
        ("failed",): 1.0,
        ("skipped",): 1.0,
    }
    assert samples(registry, "crdkeeper_composite_pass_seconds_count") == {("apply",): 1.0}


def test_what_the_last_pass_over_a_composite_has_written_counts() -> None:
    counted, registry = metrics()
    last = report(GOOD, ("False", "Deleting"), "Deployment", done=[CompositeWrite.DELETED])
    counted.passed(f"{DATABASES}\nshop\na", last, gone=True)
    assert samples(registry, "crdkeeper_composer_writes_total") == {("object-deleted",): 1.0}
    assert samples(registry, "crdkeeper_composite_passes_total") == {("synced",): 1.0}
    assert samples(registry, "crdkeeper_composite_conditions") == {}


def test_kinds_are_bounded() -> None:
    counted, registry = metrics()
    kinds = [f"Kind{number}" for number in range(150)]
    counted.passed(f"{DATABASES}\nshop\na", report(GOOD, ("False", "Creating"), *kinds))
    pending = samples(registry, "crdkeeper_composite_pending_objects")
    assert len(pending) == 101 and pending["other",] == 50.0
