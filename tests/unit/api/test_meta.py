"""Conditions and times that follow Kubernetes' conventions."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from crdkeeper.api.meta import Condition, ConditionStatus, find_condition, format_time, set_condition
from crdkeeper.api.texts import MESSAGE_BYTES
from tests.unit.builders import NOW, later


def put(
    conditions: list[Condition],
    status: ConditionStatus,
    reason: str = "Because",
    *,
    message: str = "So.",
    seconds: float = 0,
    generation: int = 1,
) -> bool:
    return set_condition(
        conditions, "Ready", status, reason, message, generation=generation, now=later(seconds)
    )


def test_a_condition_begins_now() -> None:
    conditions: list[Condition] = []
    assert put(conditions, "Unknown")
    assert conditions == [
        Condition(
            type="Ready",
            status="Unknown",
            observed_generation=1,
            last_transition_time=NOW,
            reason="Because",
            message="So.",
        )
    ]


@pytest.mark.parametrize(
    ("status", "reason", "moved", "changed"),
    [
        ("True", "Because", False, False),
        ("True", "Otherwise", False, True),
        ("False", "Because", True, True),
        ("Unknown", "Otherwise", True, True),
    ],
    ids=["the same", "another reason", "another status", "both"],
)
def test_the_time_moves_with_the_status_alone(
    status: ConditionStatus, reason: str, moved: bool, changed: bool
) -> None:
    conditions: list[Condition] = []
    put(conditions, "True")
    assert put(conditions, status, reason, message="Now so.", seconds=60, generation=2) is changed
    (found,) = conditions
    assert found.last_transition_time == later(60 if moved else 0)
    assert (found.status, found.reason, found.message) == (status, reason, "Now so.")
    assert found.observed_generation == 2


def test_the_time_is_that_of_the_last_change() -> None:
    conditions: list[Condition] = []
    for seconds, status in enumerate(("True", "False", "False", "True", "True")):
        put(conditions, "True" if status == "True" else "False", seconds=seconds)
    assert conditions[0].last_transition_time == later(3)


def test_conditions_keep_their_places() -> None:
    conditions: list[Condition] = []
    for type_ in ("A", "B", "C"):
        set_condition(conditions, type_, "Unknown", "Pending", "", generation=1, now=NOW)
    set_condition(conditions, "B", "True", "Done", "", generation=1, now=NOW)
    assert [each.type for each in conditions] == ["A", "B", "C"]


def test_a_message_is_cut_to_a_bound() -> None:
    conditions: list[Condition] = []
    put(conditions, "True", message="ä" * 1_000_000)
    assert conditions[0].message == "ä" * 2046 + "…"
    assert len(conditions[0].message.encode()) <= MESSAGE_BYTES


def test_find_condition() -> None:
    conditions: list[Condition] = []
    put(conditions, "True")
    assert find_condition(conditions, "Ready") is conditions[0]
    assert find_condition(conditions, "Succeeded") is None


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime(2026, 1, 2, 3, 4, 5, 999999, tzinfo=UTC),
        datetime(2026, 1, 2, 5, 4, 5, tzinfo=timezone(timedelta(hours=2))),
    ],
    ids=["UTC", "with a fraction", "elsewhere"],
)
def test_times_are_written_as_the_api_server_does(moment: datetime) -> None:
    assert format_time(moment) == "2026-01-02T03:04:05Z"


def test_objects_are_written_in_camel_case_without_what_is_unset() -> None:
    condition = Condition(
        type="Ready", status="True", last_transition_time=NOW, reason="Because", message="So."
    )
    assert condition.to_object() == {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 0,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "reason": "Because",
        "message": "So.",
    }


def test_fields_of_a_newer_version_are_ignored() -> None:
    assert Condition.model_validate(
        {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "reason": "Because",
            "message": "",
            "invented": 1,
        }
    ).to_object().keys() == {
        "type",
        "status",
        "observedGeneration",
        "lastTransitionTime",
        "reason",
        "message",
    }


def test_a_year_has_four_digits() -> None:
    assert format_time(datetime(5, 1, 2, tzinfo=UTC)) == "0005-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        # What the API server stores, and no datetime in UTC can be.
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z"),
    ],
)
def test_a_time_of_somebody_else_can_be_written_again(text: str, read: str) -> None:
    value = {"type": "A", "status": "True", "lastTransitionTime": text, "reason": "B", "message": ""}
    assert Condition.model_validate(value).to_object()["lastTransitionTime"] == read
