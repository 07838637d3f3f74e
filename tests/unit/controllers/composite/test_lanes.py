"""Tenants whose composites take long do not use up the workers."""

from crdkeeper.controllers.composite.lanes import Lanes


def test_a_slow_tenant_gets_some_workers_and_others_all() -> None:
    lanes = Lanes()
    for each in ("slow", "late"):
        assert lanes.enter(each)
        lanes.leave(each, 30.0)
    began = [lanes.enter(each) for each in ("slow", "slow", "late", "late", "slow", "late")]
    assert began == [True] * 4 + [False] * 2
    assert all(lanes.enter("quick") for _ in range(20))
    lanes.leave("slow", 30.0)
    assert lanes.enter("late")


def test_who_is_quick_again_counts_as_such() -> None:
    lanes = Lanes()
    assert lanes.enter("a")
    lanes.leave("a", 30.0)
    assert lanes.enter("a")
    lanes.leave("a", 0.1)
    assert all(lanes.enter("a") for _ in range(20))
