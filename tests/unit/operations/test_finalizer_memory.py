"""What is remembered of objects in deletion, and for how long."""

from datetime import timedelta

from crdkeeper.core.finalizers.holding import Held
from crdkeeper.operations.finalizers.memory import Memory
from tests.unit.core.finalizers.test_rule import HOUR, NOW, found

MOST = 20_000


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def at(version: str, uid: str = "u", *times: str) -> Held:
    return found(*times, uid=uid, resourceVersion=version)


def test_a_change_is_a_write_until_a_later_one() -> None:
    memory = Memory(Clock())
    assert memory.compare(at("1"), NOW).written is None
    assert memory.compare(at("1"), NOW + HOUR).written is None
    assert memory.compare(at("2"), NOW + HOUR).written == NOW + HOUR
    again = memory.compare(at("2", "u", "2026-01-02T11:00:00Z"), NOW + 2 * HOUR)
    assert (again.written, again.writer, again.written_since) == (NOW + HOUR, "", True)
    named = memory.compare(at("3", "u", "2026-01-02T12:00:00Z"), NOW - HOUR)
    assert (named.written, named.writer) == (NOW, "m0")


def test_a_write_that_leaves_a_time_keeps_it_and_its_manager() -> None:
    """Looks come later than the writes that they show."""
    memory = Memory(Clock())
    memory.compare(at("1", "u", "2026-01-02T10:30:00Z"), NOW)
    dated = memory.compare(at("2", "u", "2026-01-02T11:00:00Z"), NOW)
    assert (dated.written, dated.writer) == (NOW - HOUR, "m0")
    removed = memory.compare(at("3", "u", "2026-01-02T11:00:00Z"), NOW)
    assert (removed.written, removed.writer) == (NOW, "")
    again = memory.compare(at("4", "u", "2026-01-02T11:30:00Z"), NOW + HOUR)
    assert (again.written, again.writer) == (NOW - HOUR / 2, "m0")


def test_our_own_write_is_none() -> None:
    memory = Memory(Clock())
    memory.wrote(at("1"), "2")  # never seen
    memory.compare(at("1"), NOW)
    memory.wrote(at("1"), "2")
    assert memory.compare(at("2"), NOW).written is None
    assert memory.compare(at("3"), NOW).written == NOW


def test_objects_of_which_there_are_too_many_take_no_place_of_others() -> None:
    clock = Clock()
    memory = Memory(clock)
    for look in range(3):
        clock.now = 60.0 * look
        for each in range(MOST + 10):
            memory.compare(at(f"{look}", f"u{each}"), NOW)
    later = NOW + timedelta(hours=5)
    assert memory.compare(at("9", "u0"), later).written == later
    assert memory.compare(at("9", f"u{MOST + 5}"), later).written is None
    # Those that are gone make room.
    clock.now += 4 * 3600.0
    memory.compare(at("1", "new"), later)
    assert memory.compare(at("2", "new"), later).written == later


def test_since_when_an_object_is_watched() -> None:
    memory = Memory(Clock())
    assert memory.compare(at("1"), NOW).watched_since == NOW
    assert memory.compare(at("2"), NOW + HOUR).watched_since == NOW
    for each in range(MOST):
        memory.compare(at("1", f"u{each}"), NOW)
    assert memory.compare(at("1", "no-room"), NOW).watched_since is None


def test_what_was_not_looked_at_for_long_may_have_changed_after_its_last_time() -> None:
    """Such as while a conversion webhook kept the objects from being listed."""
    clock = Clock()
    memory = Memory(clock)
    memory.compare(at("1", "u", "2026-01-02T07:00:00Z"), NOW)
    clock.now = 5 * 3600.0
    found = memory.compare(at("9", "u", "2026-01-02T08:00:00Z"), NOW)
    assert (found.written, found.writer) == (NOW, "")


def test_a_clock_that_was_ahead_holds_nothing() -> None:
    memory = Memory(Clock())
    memory.compare(at("1"), NOW + 1000 * HOUR)
    memory.compare(at("2"), NOW + 1000 * HOUR)
    found = memory.compare(at("2"), NOW)
    assert (found.watched_since, found.written) == (NOW, NOW)


def test_what_is_gone_leaves_its_place() -> None:
    memory = Memory(Clock())
    for each in range(MOST):
        memory.compare(at("1", f"u{each}"), NOW)
    memory.wrote(at("1", "u0"), "1")
    memory.forget(at("1", "u1"))
    for uid in ("new", "newer"):
        assert memory.compare(at("1", uid), NOW).watched_since == NOW
    assert memory.compare(at("1", "newest"), NOW).watched_since is None
