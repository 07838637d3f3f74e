"""Pace, budget and backoff in numbers; tests/property tests them with simulated servers."""

import pytest

from crdkeeper.core.migration.pace import Budget, Pace, backoff


def answered(pace: Pace, latency: float, times: int) -> Pace:
    for _ in range(times):
        pace.answered(latency)
    return pace


def most(pace: Pace, latency: float, times: int) -> int:
    """The most that could be in flight meanwhile."""
    return max(answered(pace, latency, 1).concurrency for _ in range(times))


@pytest.mark.parametrize(
    ("maximum", "minimum", "concurrency"), [(1, 1, 1), (2, 1, 2), (64, 1, 4), (64, 8, 8), (2, 8, 2)]
)
def test_it_begins_with_few(maximum: int, minimum: int, concurrency: int) -> None:
    assert Pace(maximum, minimum).concurrency == concurrency


@pytest.mark.parametrize("maximum", [1, 3, 16, 48])
def test_more_fly_as_long_as_latency_stays(maximum: int) -> None:
    assert most(Pace(maximum), 0.01, 1000) == maximum


def test_fewer_fly_when_requests_queue() -> None:
    pace = answered(Pace(64), 0.01, 1000)
    before = pace.concurrency
    for _ in range(600):
        pace.answered(0.01 if pace.concurrency <= 4 else 0.2)
    assert pace.concurrency < before


def test_what_is_slow_even_for_few_does_not_queue() -> None:
    pace = answered(Pace(64), 0.01, 1000)
    before = pace.concurrency
    assert most(answered(pace, 0.2, 600), 0.2, 300) == before


@pytest.mark.parametrize("number", [1, 5, 64])
def test_a_number_can_be_fixed(number: int) -> None:
    pace = Pace(number, number)
    for latency in (0.001, 1.0, 0.001):
        assert {answered(pace, latency, 1).concurrency for _ in range(2000)} == {number}


def test_latency_does_not_push_it_below_the_minimum() -> None:
    pace = answered(Pace(64, 8), 0.01, 1000)
    assert min(answered(pace, 10.0, 1).concurrency for _ in range(5000)) == 8


def test_throttling_does_and_it_returns() -> None:
    pace = Pace(64, 8)
    for _ in range(3):
        pace.throttled()
    assert pace.concurrency == 1
    assert most(pace, 10.0, 200) >= 8


def test_throttling_halves_down_to_one() -> None:
    pace = Pace(64, 64)
    seen = [pace.concurrency]
    for _ in range(8):
        pace.throttled()
        seen.append(pace.concurrency)
    assert seen == [64, 32, 16, 8, 4, 2, 1, 1, 1]


def test_what_was_throttled_is_not_tried_again_at_once() -> None:
    pace = answered(Pace(64), 0.01, 200)
    assert pace.concurrency == 64
    pace.throttled()
    assert most(pace, 0.01, 1500) == 32
    assert most(pace, 0.01, 2000) == 64


def test_the_making_of_connections_is_no_measure() -> None:
    slow_at_first = answered(answered(Pace(64), 5.0, 8), 0.01, 40)
    assert slow_at_first.concurrency == answered(Pace(64), 0.01, 48).concurrency > 4


@pytest.mark.parametrize(
    ("units", "pause", "waits"),
    [
        (1, 0.0, [0.0, 0.5, 1.0, 1.5, 2.0]),
        (1, 0.5, [0.0, 0.0, 0.0, 0.0, 0.0]),
        (1, 0.25, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (4, 2.0, [0.0, 0.0, 0.0, 0.0, 0.0]),
        (4, 1.0, [0.0, 1.0, 2.0, 3.0, 4.0]),
    ],
    ids=["at once", "at the rate", "at twice the rate", "large ones at the rate", "large ones at twice it"],
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
