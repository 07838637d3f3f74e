"""Since when a version may have been out of use, by the CRD alone."""

from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.core.retirement.since import versions_changed_at
from tests.unit.builders import crd


def entry(time: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"manager": "m", "operation": "Update", "time": time, "fieldsV1": {"f:spec": fields}, **more}


def test_only_managers_of_the_versions_count() -> None:
    """Otherwise each new certificate of a conversion webhook would begin the quiet period again."""
    found = crd(
        managedFields=[
            entry("2026-01-01T00:00:00Z", {"f:versions": {}}),
            entry("2026-01-02T00:00:00Z", {"f:versions": {}}),
            entry("2026-01-03T00:00:00Z", {"f:conversion": {}}),
        ]
    )
    assert versions_changed_at(found) == datetime(2026, 1, 2, 0, 0, 1, tzinfo=UTC)


def test_without_such_a_manager_every_change_of_spec_counts() -> None:
    found = crd(
        managedFields=[
            entry("2026-01-03T00:00:00Z", {"f:conversion": {}}),
            entry("2026-01-04T00:00:00Z", {}, subresource="status"),
        ]
    )
    assert versions_changed_at(found) == datetime(2026, 1, 3, 0, 0, 1, tzinfo=UTC)


def test_nothing_is_known_without_managed_fields() -> None:
    assert versions_changed_at(crd()) is None


@pytest.mark.parametrize("forged", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_forged_time_is_no_error(forged: str) -> None:
    """Python has no year 0, and no second after the year 9999."""
    forgery, other = entry(forged, {"f:versions": {}}), entry("2026-01-01T00:00:00Z", {"f:versions": {}})
    found = versions_changed_at(crd(managedFields=[forgery, other]))
    assert found is not None
    assert found >= datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
