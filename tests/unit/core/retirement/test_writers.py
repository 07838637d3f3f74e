"""The census of a version's writers: right counts, bounded memory, and no trust in what tenants write."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crdkeeper.core.retirement.evidence import SHOWN
from crdkeeper.core.retirement.writers import MOST_WRITERS, WriterTally

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)


def entry(manager: str = "helm", version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "apiVersion": f"example.com/{version}", **more}


def item(name: str, *entries: Mapping[str, Any], namespace: str = "ns") -> dict[str, Any]:
    metadata = {"name": name, "managedFields": list(entries)}
    return {"metadata": {**metadata, "namespace": namespace} if namespace else metadata}


def tally(*items: Mapping[str, Any]) -> WriterTally:
    found = WriterTally("example.com", "v1", lambda: NOW)
    found.add(items)
    return found


def test_writers_are_counted_by_manager_and_namespace() -> None:
    found = tally(
        item("a", entry(time="2026-11-20T00:00:00Z"), entry("kubectl", "v2", operation="Apply")),
        item("b", entry(time="2026-11-21T00:00:00Z"), entry("op", subresource="status")),
        item("a", entry(time="2026-11-19T00:00:00Z"), namespace="other"),
        item("c", namespace=""),
    )
    assert (found.counted, found.objects, found.writer_count) == (4, 3, 3)
    assert found.newest == datetime(2026, 11, 21, tzinfo=UTC)
    helm, other, status = found.writers()
    assert (helm.manager, helm.operation, helm.namespace, helm.objects) == ("helm", "Update", "ns", 2)
    assert (helm.last, helm.examples) == (found.newest, ("ns/a", "ns/b"))
    assert (other.namespace, other.examples) == ("other", ("other/a",))
    assert (status.manager, status.subresource, status.last) == ("op", "status", None)


def test_other_groups_and_versions_are_not_the_version() -> None:
    same_end = {"manager": "x", "operation": "Update", "apiVersion": "other.example.com/v1"}
    found = tally(item("a", entry(version="v11"), entry(version="v1beta1"), same_end, {"manager": "y"}))
    assert (found.counted, found.objects, found.writers(), found.newest) == (1, 0, (), None)


@pytest.mark.parametrize("forged", ["9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "-0001-12-31T00:00:00Z"])
def test_a_time_in_the_future_counts_as_now(forged: str) -> None:
    """It may be a write right now: whoever forges one keeps a version, and takes none away."""
    found = tally(
        item("a", entry("forger", time=forged), entry("forger", "v2", time=forged)),
        item("b", entry(time="2026-11-23T11:59:59Z")),
    )
    assert found.newest == NOW
    forger, helm = found.writers()
    assert (forger.manager, forger.last, forger.ahead) == ("forger", NOW, f"{forged} of ns/a")
    assert (helm.manager, helm.ahead) == ("helm", "")


def test_a_clock_that_is_a_little_ahead_is_believed() -> None:
    found = tally(item("b", entry(time="2026-11-23T12:04:00Z")))
    assert found.newest == datetime(2026, 11, 23, 12, 4, tzinfo=UTC)
    assert found.writers()[0].ahead == ""


def test_time_goes_on_while_objects_are_counted() -> None:
    times = iter((NOW, NOW + timedelta(minutes=10)))
    found = WriterTally("example.com", "v1", lambda: next(times))
    found.add([item("a", entry("early", time="2026-11-23T13:00:00Z"))])
    found.add([item("b", entry("late", time="2026-11-23T12:09:00Z"))])
    assert [(each.manager, each.last) for each in found.writers()] == [
        ("late", NOW + timedelta(minutes=9)),
        ("early", NOW),
    ]


def test_invented_managers_take_no_memory_and_hide_nobody_who_still_writes() -> None:
    invented = [item(f"o{i}", entry(f"m{i}", time="2026-01-01T00:00:00Z")) for i in range(3 * MOST_WRITERS)]
    found = tally(item("real", entry("real", time="2026-11-01T00:00:00Z")), *invented)
    assert len(found._counts) <= MOST_WRITERS
    assert found.writer_count == 3 * MOST_WRITERS + 1
    assert len(found.writers()) == SHOWN
    assert found.writers()[0].manager == "real"
    assert found.objects == 3 * MOST_WRITERS + 1
