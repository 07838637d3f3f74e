"""When every API server stores at the new version. The CRD's resourceVersion is 100 here."""

from datetime import datetime
from typing import Any

import pytest

from crdkeeper.core.migration.observation import ApiServerLease, Observation
from crdkeeper.core.migration.settle import RollCall, Settling, settling, stale_leases
from tests.unit.builders import NOW, definition, later, lease, seen


def settled(
    look: Observation, changed: float | None = -1000, renewed: float | None = -1000, **changes: Any
) -> Settling:
    options: dict[str, Any] = {"settle_seconds": 65, "require_leases": True, "now": NOW, **changes}
    return settling(
        look,
        changed_at=None if changed is None else later(changed),
        renewed_at=None if renewed is None else later(renewed),
        **options,
    )


@pytest.mark.parametrize(
    ("changed", "renewed", "wait"),
    [
        (-65, -65, 0),
        (-64, -65, 1),
        (-65, -64, 1),
        (-10, -5, 60),
        (None, -65, 65),
        (-65, None, 65),
        (5, -65, 70),
    ],
    ids=["over", "change too new", "seen too late", "both", "change unknown", "not seen", "clocks differ"],
)
def test_time_counts_from_change_and_roll_call(
    changed: float | None, renewed: float | None, wait: float
) -> None:
    assert settled(seen(lease()), changed, renewed).wait == wait


def test_a_server_that_was_not_seen_holds_all_up() -> None:
    state = settled(seen(lease("a", 101), lease("b", 100), lease("c", 99, expires_in=60)))
    assert state.wait > 0
    assert state.reason == "APIServerNotSeen"
    assert "2 API servers" in state.message
    assert "b, c" in state.message
    assert f"{later(3600):%H:%M:%S} UTC" in state.message


def test_a_server_that_is_gone_for_good_is_not_waited_for() -> None:
    assert settled(seen(lease("a", 101), lease("b", 100, expires_in=0))).wait == 0


@pytest.mark.parametrize(
    ("look", "require", "words"),
    [
        (seen(lease("a"), lease("b")), True, "2 API servers of 2 seen alive after the change"),
        (seen(lease(version=1)), False, "not checked, as requested"),
        (Observation(None, definition(), leases=None), True, "reading API server Leases is not permitted"),
        (seen(), True, "the cluster publishes no API server Leases"),
    ],
    ids=["seen", "ignored", "forbidden", "none"],
)
def test_it_says_what_the_proof_rests_on(look: Observation, require: bool, words: str) -> None:
    state = settled(look, renewed=None if not (look.leases and require) else -100, require_leases=require)
    assert (state.wait, state.reason) == (0, "Settled")
    assert words in state.message


@pytest.mark.parametrize(
    "look", [Observation(None, definition(), leases=None), seen()], ids=["no right", "none"]
)
def test_where_no_server_can_be_seen_time_alone_counts(look: Observation) -> None:
    assert settled(look, changed=-60, renewed=None).wait == 5


def test_no_time_at_all_may_be_asked_for() -> None:
    assert settled(seen(lease()), changed=0, renewed=0, settle_seconds=0).wait == 0


@pytest.mark.parametrize("settle_seconds", [0, 65])
def test_without_a_complete_roll_call_no_time_is_enough(settle_seconds: int) -> None:
    state = settled(seen(lease()), changed=-1000, renewed=None, settle_seconds=settle_seconds)
    assert state.wait > 0
    assert "renewed its Lease once" in state.message


@pytest.mark.parametrize(
    ("version", "expires_in", "above", "stale"),
    [
        (101, 60, 0, False),
        (100, 60, 0, True),
        (99, 60, 0, True),
        (99, 0, 0, False),
        (101, 60, 101, True),
        (102, 60, 101, False),
        (101, 60, 50, False),
    ],
)
def test_stale_leases(version: int, expires_in: float, above: int, stale: bool) -> None:
    one = lease("a", version, expires_in)
    assert list(stale_leases(seen(one), NOW, above)) == [one] * stale


def test_revisions_are_compared_as_numbers() -> None:
    assert not stale_leases(seen(lease(version=1000), resourceVersion="999"), NOW)


def test_leases_of_a_resource_without_a_crd_tell_nothing() -> None:
    assert not stale_leases(Observation(None, None, leases=[lease(version=1)]), NOW)


Look = tuple[ApiServerLease, ...]


def completed(*looks: Look | None) -> datetime | None:
    """When the roll call was complete, with one observation per second."""
    roll = RollCall()
    for second, leases in enumerate(looks):
        look = Observation(None, definition(), leases=None) if leases is None else seen(*leases)
        roll.look(look, later(second))
    return roll.complete_at


@pytest.mark.parametrize(
    ("looks", "second"),
    [
        ([(lease("a", 101),), (lease("a", 101),), (lease("a", 102),)], 2),
        ([(lease("a", 99),), (lease("a", 101),), (lease("a", 102),)], 2),
        ([(lease("a", 101), lease("b", 102)), (lease("a", 103), lease("b", 102))], None),
        ([(lease("a", 101), lease("b", 102)), (lease("a", 103), lease("b", 104))], 1),
        ([(lease("a", 101), lease("b", 99)), (lease("a", 103), lease("b", 104))], None),
        ([(lease("a", 101),), (lease("a", 101), lease("b", 99)), (lease("a", 102), lease("b", 99))], None),
        ([(lease("a", 101),), (lease("a", 102), lease("b", 99, expires_in=-1))], 1),
        ([None, None], None),
        ([(), ()], None),
        ([None, (lease("a", 101),), (lease("a", 102),)], 2),
    ],
    ids=[
        "twice",
        "after a while",
        "one of two only once",
        "both twice",
        "the second one just once",
        "one more appears",
        "one is dead",
        "no right to look",
        "none published",
        "the right comes late",
    ],
)
def test_roll_call(looks: list[Look | None], second: int | None) -> None:
    assert completed(*looks) == (None if second is None else later(second))


def test_a_complete_roll_call_stays_complete() -> None:
    assert completed((lease(version=101),), (lease(version=102),), (lease(version=50),)) == later(1)


@pytest.mark.parametrize("seconds", [0, 65])
def test_it_says_that_the_second_renewal_is_missing(seconds: int) -> None:
    state = settled(seen(lease()), -100, None, settle_seconds=seconds)
    assert state.wait > 0
    assert state.reason == "Settling"
    assert "next renewal" in state.message


def test_without_a_crd_each_server_must_be_seen_alive_once_more() -> None:
    roll = RollCall()
    roll.look(Observation(None, leases=[lease("a", 50), lease("b", 60)]), NOW)
    roll.look(Observation(None, leases=[lease("a", 70), lease("b", 60)]), later(1))
    assert roll.complete_at is None
    roll.look(Observation(None, leases=[lease("a", 70), lease("b", 71)]), later(2))
    assert roll.complete_at == later(2)
