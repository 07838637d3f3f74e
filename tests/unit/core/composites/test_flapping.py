"""When an object that has to be written again and again is written next."""

from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.flapping import Flaps, changed_by, changer_of
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.composites.standing import PassOutcome, status_of
from crdkeeper.core.diagnosis.verdict import Reason
from crdkeeper.core.templates.namespaces import Identity

ORDERS = Identity("", "ConfigMap", "shop", "orders")
OTHER = Identity("", "ConfigMap", "shop", "other")


def composite(generation: int = 1) -> Composite:
    return Composite("x/v1", "Database", "shop", "a", "u1", generation, (), False, False, frozenset())


def write(flaps: Flaps, reason: Reason, now: float, identity: Identity = ORDERS) -> bool:
    """Write it, unless it is paused."""
    if flaps.pause("u1", reason, identity, now) is not None:
        return False
    flaps.wrote(composite(), reason, identity, f"{identity} flaps.", now)
    return True


@pytest.mark.parametrize("reason", [reasons.OVERWRITTEN, reasons.VANISHING])
def test_who_overwrites_all_the_time_gets_pauses_that_grow(reason: Reason) -> None:
    flaps = Flaps()
    written = [now for now in range(600) if write(flaps, reason, float(now))]
    assert written == [0, 1, 2, 17, 47, 107, 227, 347, 467, 587]
    verdict = flaps.verdict("u1", 600.0)
    assert verdict is not None and verdict.reason is reason
    assert verdict.message.startswith("ConfigMap shop/orders flaps. The composer has written it 10 times. ")


def test_other_objects_and_other_causes_are_written_at_once() -> None:
    flaps = Flaps()
    for now in range(4):
        write(flaps, reasons.OVERWRITTEN, float(now))
    paused = flaps.pause("u1", reasons.OVERWRITTEN, ORDERS, 4.0)
    assert (
        paused is not None
        and paused.reason is reasons.SLOWED_DOWN
        and "ConfigMap shop/orders" in paused.message
    )
    assert write(flaps, reasons.OVERWRITTEN, 4.0, OTHER)
    # A change of the composite, which is not what they fight about.
    assert write(flaps, reasons.CHANGING, 4.0)
    assert flaps.pause("u2", reasons.OVERWRITTEN, ORDERS, 4.0) is None


def test_what_is_put_back_now_and_then_is_no_fight() -> None:
    flaps = Flaps()
    assert all(write(flaps, reasons.OVERWRITTEN, 700.0 * number) for number in range(10))
    assert flaps.verdict("u1", 6400.0) is None and flaps.left("u1", 6400.0) is None


def test_changes_are_slowed_down_only_if_there_are_many_in_a_row() -> None:
    flaps = Flaps()
    # Of any object: they follow from each other.
    written = [
        now for now in range(120) if write(flaps, reasons.CHANGING, float(now), (ORDERS, OTHER)[now % 2])
    ]
    assert written[:20] == list(range(20)) and written[20:] == [24, 34, 54, 84, 114]
    # What takes a step each minute is how other controllers work.
    calm = Flaps()
    assert all(write(calm, reasons.CHANGING, 61.0 * number) for number in range(100))
    assert calm.verdict("u1", 6100.0) is None


def test_it_is_looked_at_again_when_the_pause_ends_and_when_it_is_quiet() -> None:
    flaps = Flaps()
    for now in range(3):
        write(flaps, reasons.OVERWRITTEN, float(now))
    assert flaps.left("u1", 2.0) == 15.0
    assert flaps.left("u1", 20.0) == 582.0
    assert flaps.verdict("u1", 601.0) is not None and flaps.verdict("u1", 602.0) is None
    flaps.forget("u1")
    assert flaps.left("u1", 2.0) is None


def test_what_is_quiet_takes_no_memory() -> None:
    flaps = Flaps()
    write(flaps, reasons.CHANGING, 0.0)
    flaps.wrote(
        Composite.of({"apiVersion": "x/v1", "kind": "A", "metadata": {"name": "b", "uid": "u2"}}),
        reasons.CHANGING,
        OTHER,
        "",
        200.0,
    )
    assert list(flaps._known) == ["u2"]


def conditions(before: list[Any], flaps: Flaps, now: float) -> list[Any]:
    value: dict[str, Any] = {"metadata": {}, "status": {"conditions": before}}
    outcome = PassOutcome(flapping=flaps.verdict("u1", now))
    made: list[Any] = status_of(value, composite(), outcome, "us", datetime.now(UTC))["conditions"]
    return made


def test_responsive_comes_with_the_first_fight_and_stays() -> None:
    flaps = Flaps()
    told = conditions([], flaps, 0.0)
    assert "Responsive" not in [each["type"] for each in told]
    for now in range(3):
        write(flaps, reasons.OVERWRITTEN, float(now))
    told = conditions(told, flaps, 3.0)
    (said,) = (each for each in told if each["type"] == "Responsive")
    assert (said["status"], said["reason"]) == ("False", "Overwritten")
    told = conditions(told, flaps, 700.0)
    (said,) = (each for each in told if each["type"] == "Responsive")
    assert (said["status"], said["reason"]) == ("True", "Quiet")


def test_who_changes_what() -> None:
    live = {
        "data": {"a": "1", "b": "2"},
        "metadata": {"annotations": {"crdkeeper.dev/applied": "x", "t": "1"}},
    }
    made = {
        "data": {"a": "1", "b": "3"},
        "metadata": {"annotations": {"crdkeeper.dev/applied": "y", "t": "2"}},
    }
    said = changed_by(ORDERS, made, live, "")
    assert said.startswith(
        "ConfigMap shop/orders (data.b, metadata.annotations.t) changes all the time, because "
    )
    entries = [
        {"manager": "kubectl", "time": "2026-01-01T00:00:00Z"},
        {"manager": "gitops", "time": "2026-01-02T00:00:00Z"},
        {"manager": "us", "time": "2026-01-03T00:00:00Z"},
        {"manager": "x", "time": "2026-01-04T00:00:00Z", "subresource": "status"},
    ]
    who = changer_of({"metadata": {"managedFields": entries}}, "us")
    assert "because gitops changes the composite." in changed_by(ORDERS, made, live, who)
    assert changer_of({"metadata": {}}, "us") == "somebody unknown to metadata.managedFields"
