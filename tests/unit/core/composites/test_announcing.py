"""Which Events tell what a pass over a composite has changed."""

from typing import Any

import pytest

from crdkeeper.core.composites.announcing import CompositeEvent, EventBudget, announcements
from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.templates.namespaces import Identity

UNKNOWN: tuple[str, str] = ("", "")


def conditions(synced: tuple[str, str], ready: tuple[str, str]) -> list[dict[str, Any]]:
    named = (("Synced", synced), ("Ready", ready), ("Reconciling", ("True", "Creating")))
    return [
        {"type": type_, "status": status, "reason": reason, "message": f"about {reason}"}
        for type_, (status, reason) in named
        if reason
    ]


SYNCED = ("True", "ReconcileSuccess")
CREATING = ("False", "Creating")
AVAILABLE = ("True", "Available")
NOT_SYNCED = ("False", "NotSynced")
REFUSED = ("False", "Refused")
FAILED = ("False", "Failed")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ((UNKNOWN, UNKNOWN), (SYNCED, CREATING), []),
        ((SYNCED, CREATING), (SYNCED, CREATING), []),
        ((SYNCED, CREATING), (SYNCED, AVAILABLE), [("Normal", "Available")]),
        ((SYNCED, AVAILABLE), (SYNCED, CREATING), [("Normal", "Creating")]),
        ((SYNCED, AVAILABLE), (REFUSED, NOT_SYNCED), [("Warning", "Refused")]),
        ((REFUSED, NOT_SYNCED), (FAILED, NOT_SYNCED), [("Warning", "Failed")]),
        ((("False", "ReconcilePending"), NOT_SYNCED), (SYNCED, CREATING), []),
        ((UNKNOWN, UNKNOWN), (("False", "NoRevision"), NOT_SYNCED), [("Warning", "NoRevision")]),
        ((SYNCED, AVAILABLE), (("False", "ReconcilePaused"), NOT_SYNCED), [("Normal", "ReconcilePaused")]),
        ((SYNCED, AVAILABLE), (SYNCED, ("False", "Deleting")), [("Normal", "Deleting")]),
        (
            (REFUSED, NOT_SYNCED),
            (SYNCED, AVAILABLE),
            [("Normal", "ReconcileSuccess"), ("Normal", "Available")],
        ),
    ],
)
def test_conditions_are_told_when_their_reason_changes(
    before: tuple[Any, Any], after: tuple[Any, Any], told: list[tuple[str, str]]
) -> None:
    found = announcements(conditions(*before), conditions(*after), ())
    assert [(each.type, each.reason) for each in found] == told
    assert all(each.note == f"about {each.reason}" for each in found)


def test_texts_of_strangers_have_no_effect() -> None:
    after = conditions(REFUSED, NOT_SYNCED)
    after[0]["message"] = "denied\n\x1b[2J"
    assert announcements((), after, ()) == [CompositeEvent("Warning", "Refused", "denied\\n\\x1b[2J")]


def config_map(name: str) -> Identity:
    return Identity("", "ConfigMap", "shop", name)


def test_what_was_done_to_objects_is_told_by_what_it_was() -> None:
    many = [(CompositeWrite.CREATED, config_map(f"m{number}")) for number in range(5)]
    done = [
        (CompositeWrite.APPLIED, config_map("changed")),
        (CompositeWrite.DELETED, config_map("again")),
        (CompositeWrite.CREATED, config_map("again")),
        (CompositeWrite.DELETED, config_map("old")),
        (CompositeWrite.RELEASED, config_map("left")),
        *many,
    ]
    assert announcements((), (), done) == [
        CompositeEvent(
            "Normal",
            "ObjectsCreated",
            "Created ConfigMap shop/m0, ConfigMap shop/m1, ConfigMap shop/m2 and 2 more objects.",
        ),
        CompositeEvent("Normal", "ObjectsRecreated", "Deleted and created again ConfigMap shop/again."),
        CompositeEvent("Normal", "ObjectsDeleted", "Deleted ConfigMap shop/old."),
        CompositeEvent("Normal", "ObjectsReleased", "Left to nobody ConfigMap shop/left."),
    ]


def test_one_composite_cannot_send_as_many_as_it_likes() -> None:
    budget = EventBudget()
    assert sum(budget.take("shop", "noisy", "Warning", 0.1 * each) for each in range(100)) == 10
    assert budget.take("shop", "other", "Warning", 10.0)
    assert not budget.take("shop", "noisy", "Warning", 20.0)
    assert budget.take("shop", "noisy", "Warning", 80.0)
    # What it has not sent for long is not saved up.
    assert sum(budget.take("shop", "noisy", "Warning", 10_000.0) for _ in range(100)) == 10


def test_one_tenant_cannot_either_with_many_composites() -> None:
    budget = EventBudget()
    # Hundreds whose conditions change all the time.
    taken = [budget.take("noisy", f"{each % 1_000}", "Warning", 0.01 * each) for each in range(6_000)]
    assert 20 + 58 <= sum(taken) <= 20 + 60
    # Also another one with many, at any moment.
    others = [budget.take("shop", f"s{each}", "Warning", 60.0) for each in range(100)]
    assert sum(others) == 20
    assert budget.take("noisy", "new", "Normal", 60.0)


def test_all_together_cannot_either_and_warnings_have_room() -> None:
    budget = EventBudget()
    assert sum(budget.take(f"t{each % 100}", f"{each}", "Normal", 0.0) for each in range(1_000)) == 50
    assert budget.take("t1", "broken", "Warning", 0.0)
    assert sum(budget.take(f"t{each % 100}", f"{each}", "Normal", 2.0) for each in range(1_000)) == 10
