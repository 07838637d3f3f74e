"""What is kept of a report, and which states of it need not be read."""

from datetime import UTC, datetime

import pytest

from crdkeeper.core.diagnosis.findings import FindingSummary
from crdkeeper.core.diagnosis.report import StoredReport, on_record, wanted_report
from tests.unit.core.diagnosis.builders import as_read, facts


@pytest.mark.parametrize(
    ("one", "other", "newer"), [("10", "9", True), ("9", "10", False), ("9", "9", False)]
)
def test_newer_is_told_by_the_resource_version(one: str, other: str, newer: bool) -> None:
    def record(version: str) -> StoredReport:
        return StoredReport("r1", version, (), b"", FindingSummary(), b"", "", {})

    assert record(one).is_newer_than(record(other)) is newer


@pytest.mark.parametrize(
    ("known", "found", "included"),
    [
        *(("10", "9", True), ("10", "10", True), ("10", "11", False)),
        *(("10", "", False), ("", "", False), ("10", "x", False), ("x", "x", True)),
    ],
)
def test_a_report_that_was_read_already_is_recognized(known: str, found: str, included: bool) -> None:
    record = on_record(as_read(wanted_report(facts(), {}), version=known))
    assert record.includes({"metadata": {"resourceVersion": found}}) is included
    assert not record.includes({"metadata": {}})


def test_a_time_is_kept_once_for_all_conditions() -> None:
    """Thousands of reports are kept."""
    wanted = wanted_report(facts(now=datetime(2026, 1, 2, 3, 4, 5, 678, UTC)), {})
    for reported in (wanted.reported, on_record(as_read(wanted)).reported):
        assert len(reported) > 1
        assert len({id(each.since) for each in reported.values()}) == 1
    assert wanted.reported == on_record(as_read(wanted)).reported
