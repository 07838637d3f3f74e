"""The pace of writing, with servers that it knows nothing about."""

import heapq
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdkeeper.core.migration.pace import Budget, Pace, backoff

FLOODED = 8.0
"""Mean latency, as a multiple of that of a single request, beyond which others wait for no gain: a real
server still gains at five times it, since etcd writes several changes at once."""

few = settings(max_examples=settings().max_examples // 10)
"""For tests whose examples take long."""
seconds = st.floats(1e-6, 1e6)
events = st.lists(seconds.map(lambda each: ("answered", each)) | st.just(("throttled", 0.0)), max_size=3000)


class Server:
    """Processes `slots` requests at a time, each for about `service` seconds; further ones queue."""

    def __init__(self, slots: int, service: float, jitter: float, random: Random) -> None:
        self.slots = slots
        self.service = service
        self._free = [0.0] * slots
        self._jitter = jitter
        self._random = random

    def take(self, sent: float) -> float:
        """When a request sent at that time will be answered."""
        start = max(heapq.heappop(self._free), sent)
        end = start + self.service * (1 + self._random.uniform(-self._jitter, self._jitter))
        heapq.heappush(self._free, end)
        return end


class Migration:
    """Keeps as many requests in flight as the pace allows."""

    def __init__(self, pace: Pace, server: Server) -> None:
        self.pace = pace
        self.server = server
        self.now = 0.0
        self._flying: list[tuple[float, float]] = []

    def run(self, answers: int) -> tuple[float, float]:
        """Objects per second and mean latency over that many answers."""
        began, total = self.now, 0.0
        for _ in range(answers):
            while len(self._flying) < self.pace.concurrency:
                heapq.heappush(self._flying, (self.server.take(self.now), self.now))
            self.now, sent = heapq.heappop(self._flying)
            total += self.now - sent
            self.pace.answered(self.now - sent)
        return answers / (self.now - began), total / answers


servers = st.builds(
    Server,
    slots=st.integers(2, 32),
    service=st.floats(0.001, 0.5),
    jitter=st.floats(0, 0.5),
    random=st.integers(0, 1000).map(Random),
)


@given(events, st.integers(1, 256))
def test_concurrency_stays_within_its_bounds(course: list[tuple[str, float]], maximum: int) -> None:
    pace = Pace(maximum)
    for event, latency in course:
        if event == "answered":
            pace.answered(latency)
        else:
            pace.throttled()
        assert 1 <= pace.concurrency <= maximum


@given(events, seconds)
def test_it_is_never_stuck_at_one(course: list[tuple[str, float]], latency: float) -> None:
    pace = Pace(64)
    for event, each in course:
        if event == "answered":
            pace.answered(each)
        else:
            pace.throttled()
    highest = 1
    for _ in range(500):
        pace.answered(latency)
        highest = max(highest, pace.concurrency)
    assert highest >= 4


@few
@given(servers)
def test_a_server_is_used_in_full_and_not_flooded(server: Server) -> None:
    migration = Migration(Pace(64), server)
    migration.run(4000)
    rate, latency = migration.run(12000)
    assert rate >= 0.9 * server.slots / server.service
    assert latency <= FLOODED * server.service


@few
@given(servers, st.integers(1, 40))
def test_it_recovers_from_throttling(server: Server, times: int) -> None:
    migration = Migration(Pace(64), server)
    migration.run(2000)
    for _ in range(times):
        migration.pace.throttled()
    assert migration.pace.concurrency <= 32
    migration.run(2000)
    rate, _ = migration.run(6000)
    assert rate >= 0.88 * server.slots / server.service


@few
@pytest.mark.parametrize("factor", [0.1, 10.0])
@given(server=servers)
def test_it_follows_a_server_that_changes(server: Server, factor: float) -> None:
    migration = Migration(Pace(64), server)
    migration.run(4000)
    server.service *= factor
    migration.run(6000)
    rate, latency = migration.run(6000)
    assert rate >= 0.88 * server.slots / server.service
    assert latency <= FLOODED * server.service


reservations = st.lists(
    st.tuples(st.floats(0, 5) | st.just(0.0), st.floats(0.01, 50)), min_size=1, max_size=200
)


@given(reservations, st.floats(0.5, 1000))
def test_a_budget_is_kept_over_every_window(asked: list[tuple[float, float]], per_second: float) -> None:
    budget, now = Budget(per_second), 1000.0
    used: list[tuple[float, float]] = []
    for pause, units in asked:
        now += pause
        used.append((now + budget.reserve(units, now), units))
    assert [time for time, _ in used] == sorted(time for time, _ in used)
    for first in range(len(used)):
        # Units count from when they are used; the first of a window were earned before it.
        total = 0.0
        for time, units in used[first + 1 :]:
            total += units
            assert total <= per_second * (time - used[first][0] + 1.0) * (1 + 1e-9) + 1e-6


@given(reservations, st.floats(0.5, 1000))
def test_a_budget_makes_nobody_wait_without_need(asked: list[tuple[float, float]], per_second: float) -> None:
    budget, now, total = Budget(per_second), 1000.0, 0.0
    for pause, units in asked:
        now += pause
        total += units
        assert budget.reserve(units, now) <= total / per_second + 1e-6


def test_a_budget_allows_for_the_burst_of_one_second() -> None:
    budget = Budget(10)
    assert [budget.reserve(1, 100.0) for _ in range(12)] == pytest.approx([0.0] * 10 + [0.1, 0.2])


@given(st.integers(0, 100_000), st.floats(0.001, 1000), st.floats(0.001, 100_000))
def test_backoff_grows_up_to_its_limit(round_: int, first: float, longest: float) -> None:
    wait = backoff(round_, first, longest)
    assert 0 < wait <= longest
    assert wait <= backoff(round_ + 1, first, longest)
    assert wait == min(longest, first) or round_ > 0
