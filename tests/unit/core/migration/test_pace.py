"""Pace, budget and backoff in numbers; tests/property tests them with simulated servers."""

import pytest

from crdkeeper.core.migration.pace import Budget, Pace, backoff


def answered(pace: Pace, latency: float, times: int) -> Pace:
    for _ in range(times):
        pace.answered(latency)
    return pace


@pytest.mark.parametrize(("maximum", "concurrency"), [(1, 1), (2, 2), (64, 4)])
def test_it_begins_with_few(maximum: int, concurrency: int) -> None:
    assert Pace(maximum).concurrency == concurrency


@pytest.mark.parametrize("maximum", [1, 3, 16])
def test_more_fly_as_long_as_latency_stays(maximum: int) -> None:
    assert answered(Pace(maximum), 0.01, 1000).concurrency == maximum


def test_fewer_fly_when_requests_queue() -> None:
    pace = answered(Pace(64), 0.01, 1000)
    before = pace.concurrency
    assert answered(pace, 0.2, 100).concurrency < before


def test_throttling_halves_down_to_one() -> None:
    pace = answered(Pace(64), 0.01, 1000)
    seen = [pace.concurrency]
    for _ in range(8):
        pace.throttled()
        seen.append(pace.concurrency)
    assert seen == [64, 32, 16, 8, 4, 2, 1, 1, 1]


def test_the_making_of_connections_is_no_measure() -> None:
    slow_at_first = answered(answered(Pace(64), 5.0, 8), 0.01, 40)
    assert slow_at_first.concurrency == answered(Pace(64), 0.01, 48).concurrency


@pytest.mark.parametrize(
    ("units", "pause", "waits"),
    [
        (1, 0.0, [0.0, 0.0, 0.5, 1.0, 1.5]),
        (1, 0.5, [0.0, 0.0, 0.0, 0.0, 0.0]),
        (1, 0.25, [0.0, 0.0, 0.0, 0.25, 0.5]),
        (4, 2.0, [1.0, 1.0, 1.0, 1.0, 1.0]),
    ],
    ids=["at once", "at the rate", "at twice the rate", "more than a second's worth"],
)
def test_a_budget_of_two_per_second(units: float, pause: float, waits: list[float]) -> None:
    budget = Budget(2.0)
    assert [budget.reserve(units, 100.0 + pause * number) for number in range(5)] == pytest.approx(waits)


def test_what_was_not_used_is_not_saved_up() -> None:
    budget = Budget(2.0)
    budget.reserve(2, 100.0)
    assert budget.reserve(2, 1000.0) == 0.0
    assert budget.reserve(1, 1000.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("round_", "wait"), [(0, 2.0), (1, 4.0), (2, 8.0), (5, 60.0), (31, 60.0), (10**6, 60.0)]
)
def test_backoff(round_: int, wait: float) -> None:
    assert backoff(round_, 2.0, 60.0) == wait


def test_the_longest_wait_can_be_shorter_than_the_first() -> None:
    assert backoff(0, 10.0, 3.0) == 3.0
