"""What is remembered of objects in deletion, and for how long."""

from dataclasses import replace
from datetime import timedelta

import pytest

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


class Looks:
    """Looks at one object, at hours after the first."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.memory = Memory(self.clock)

    def at(self, hours: float, object_: Held, *, wrong: float = 0.0) -> Held:
        """What a look shows; `wrong` is how many hours the API server's clock is ahead."""
        self.clock.now = 3600.0 * hours
        return self.memory.compare(object_, NOW + (hours + wrong) * HOUR)


def test_a_change_is_a_write_until_a_later_one() -> None:
    looks = Looks()
    assert looks.at(0, at("1")).written is None
    assert looks.at(1, at("1")).written is None
    assert looks.at(2, at("2")).written == NOW + 2 * HOUR
    again = looks.at(3, at("2"))
    assert (again.written, again.writer, again.written_since) == (NOW + 2 * HOUR, "", True)


def test_a_change_names_its_manager_and_counts_from_the_look() -> None:
    """After a write that has left a time, another one may have removed something."""
    looks = Looks()
    looks.at(0, at("1", "u", "2026-01-02T10:30:00Z"))
    dated = looks.at(1, at("2", "u", "2026-01-02T11:00:00Z"))
    assert (dated.written, dated.writer) == (NOW + HOUR, "m0")
    same = looks.at(2, at("2", "u", "2026-01-02T11:00:00Z"))
    assert (same.written, same.writer) == (NOW + HOUR, "m0")
    removed = looks.at(3, at("3", "u", "2026-01-02T11:00:00Z"))
    assert (removed.written, removed.writer) == (NOW + 3 * HOUR, "")


def test_a_time_in_the_future_counts_as_now_also_after_a_change() -> None:
    looks = Looks()
    for hours in range(4):
        seen = replace(at("1" if hours == 0 else "2"), written=NOW + hours * HOUR, writer="m")
        found = looks.at(hours, seen)
        assert (found.written, found.writer) == (NOW + hours * HOUR, "m")


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
    looks = Looks()
    assert looks.at(0, at("1")).watched_since == NOW
    assert looks.at(1, at("2")).watched_since == NOW
    for each in range(MOST):
        looks.memory.compare(at("1", f"u{each}"), NOW)
    assert looks.memory.compare(at("1", "no-room"), NOW).watched_since is None


@pytest.mark.parametrize("wrong", [1000.0, -1000.0])
def test_a_clock_that_was_wrong_neither_holds_nor_releases(wrong: float) -> None:
    looks = Looks()
    looks.at(0, at("1"), wrong=wrong)
    looks.at(1, at("2"), wrong=wrong)
    found = looks.at(2, at("2"))
    assert (found.watched_since, found.written) == (NOW, NOW + HOUR)
    found = looks.at(3, at("2"), wrong=wrong)
    assert found.watched_since == NOW + wrong * HOUR
    found = looks.at(4, at("2"))
    assert (found.watched_since, found.written) == (NOW, NOW + HOUR)


def test_clocks_that_differ_a_little_change_nothing_that_is_shown() -> None:
    looks = Looks()
    looks.at(0, at("1"))
    looks.at(1, at("2"))
    for wrong in (0.001, -0.001):
        found = looks.at(2, at("2"), wrong=wrong)
        assert (found.watched_since, found.written) == (NOW, NOW + HOUR)


def test_what_is_gone_leaves_its_place() -> None:
    memory = Memory(Clock())
    for each in range(MOST):
        memory.compare(at("1", f"u{each}"), NOW)
    memory.wrote(at("1", "u0"), "1")
    memory.forget(at("1", "u1"))
    for uid in ("new", "newer"):
        assert memory.compare(at("1", uid), NOW).watched_since == NOW
    assert memory.compare(at("1", "newest"), NOW).watched_since is None
