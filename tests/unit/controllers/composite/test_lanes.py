"""Tenants whose composites take long do not use up the workers."""

from crdkeeper.controllers.composite.lanes import Lanes

LONG = 30.0


def slow_ones(*tenants: str) -> Lanes:
    """Each of them had one composite that took long; it is the time LONG."""
    lanes = Lanes()
    for each in tenants:
        assert lanes.enter(each, f"{each}/first", 0.0)
        assert lanes.leave(each, f"{each}/first", LONG) == []
    return lanes


def begun(lanes: Lanes, tenant: str, count: int, now: float) -> list[str]:
    """Those of so many composites of a tenant whose work begins."""
    keys = [f"{tenant}/{each}" for each in range(count)]
    return [each for each in keys if lanes.enter(tenant, each, now)]


def test_a_tenant_of_whom_nothing_is_known_gets_some_workers() -> None:
    lanes = Lanes()
    assert len(begun(lanes, "new", 20, 0.0)) == 4
    assert len(begun(lanes, "other", 20, 0.0)) == 4


def test_who_waits_has_its_turn_when_one_of_its_own_has_ended() -> None:
    lanes = Lanes()
    begun(lanes, "a", 6, 0.0)
    begun(lanes, "b", 5, 0.0)
    assert lanes.leave("a", "a/0", 0.1) == ["a/4"]
    # Its place is kept until it comes.
    assert not lanes.enter("a", "a/5", 0.1)
    assert lanes.enter("a", "a/4", 0.1)
    assert lanes.leave("a", "a/4", 0.2) == ["a/5"]


def test_slow_tenants_get_some_workers_and_others_theirs() -> None:
    names = ("a", "b", "c")
    lanes = slow_ones(*names)
    assert [len(begun(lanes, each, 5, LONG)) for each in names] == [2, 2, 0]
    assert len(begun(lanes, "quick", 5, LONG)) == 4


def test_slow_tenants_have_their_turns() -> None:
    lanes = slow_ones("a", "b", "c")
    for each in ("a", "b", "c"):
        begun(lanes, each, 5, LONG)
    turns, now = [], LONG
    running = ["a/0", "a/1", "b/0", "b/1"]
    for _ in range(9):
        now += LONG
        ended = running.pop(0)
        for key in lanes.leave(ended[0], ended, now):
            assert lanes.enter(key[0], key, now)
            running.append(key)
            turns.append(key)
    assert len(turns) == 9
    # Of each that waits for as long as they all do, one third.
    assert [sum(each[0] == tenant for each in turns[:6]) for tenant in "abc"] == [2, 2, 2]


def test_what_has_not_ended_yet_counts() -> None:
    lanes = Lanes()
    begun(lanes, "a", 4, 0.0)
    assert begun(slow_ones("b"), "b", 3, LONG) == ["b/0", "b/1"]
    lanes.leave("a", "a/0", 1.0)
    # The other three are slow by now, although nothing slow has ended.
    assert not lanes.enter("a", "a/new", 4.0)
    assert lanes.enter("b", "b/0", 4.0)


def test_one_that_is_quick_does_not_clear_the_others() -> None:
    lanes = slow_ones("a")
    assert lanes.enter("a", "a/quick", LONG)
    lanes.leave("a", "a/quick", LONG + 0.1)
    assert len(begun(lanes, "a", 5, LONG + 0.2)) == 2


def test_who_has_long_not_been_slow_counts_as_quick_again() -> None:
    lanes = slow_ones("a")
    assert len(begun(lanes, "a", 5, LONG + 301.0)) == 4


def test_one_that_comes_again_and_may_begin_waits_no_more() -> None:
    lanes = slow_ones("a", "b", "c")
    assert [len(begun(lanes, each, 2, LONG)) for each in ("a", "b", "c")] == [2, 2, 0]
    assert lanes.enter("c", "c/0", LONG + 301.0)
    assert lanes.leave("a", "a/0", LONG + 302.0) == ["c/1"]
    assert lanes.leave("a", "a/1", LONG + 302.0) == []


def test_many_tenants_of_whom_nothing_is_known_leave_places_for_the_others() -> None:
    lanes = Lanes()
    assert lanes.enter("known", "known/first", 0.0)
    assert lanes.leave("known", "known/first", 0.1) == []
    assert sum(len(begun(lanes, f"new{each}", 4, 0.2)) for each in range(20)) == 8
    assert len(begun(lanes, "known", 5, 0.3)) == 4
    # One that has ended is not new any more; the next of those that are takes its place.
    assert lanes.leave("new0", "new0/0", 0.4) == ["new2/0", "new3/0", "new4/0", "new5/0"]
