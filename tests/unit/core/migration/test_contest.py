"""Comparisons of two numbers of requests in flight, with latencies per block."""

from collections.abc import Iterator, Mapping
from itertools import cycle, repeat

import pytest

from crdkeeper.core.migration.contest import Contest


def compared(latencies: Mapping[int, Iterator[float]], low: int = 8, high: int = 16) -> tuple[bool, int]:
    """The verdict and after how many blocks."""
    contest, blocks = Contest(low, high), 0
    while True:
        verdict, blocks = contest.measured(next(latencies[contest.current])), blocks + 1
        if verdict is not None:
            return verdict, blocks


def test_the_numbers_take_turns_so_that_a_trend_favours_neither() -> None:
    contest = Contest(8, 16)
    seen: list[int] = []
    while len(seen) < 8:
        seen.append(contest.current)
        contest.measured(contest.current * 0.001 * 1.021)
    assert seen == [8, 16, 16, 8, 8, 16, 16, 8]


@pytest.mark.parametrize(("latency", "better"), [(0.01, True), (0.02, False), (0.03, False)])
def test_what_is_clear_is_decided_at_once(latency: float, better: bool) -> None:
    verdict, blocks = compared({8: repeat(0.01), 16: repeat(latency)})
    assert verdict is better
    assert blocks <= 16


@pytest.mark.parametrize(("latency", "better"), [(0.0193, True), (0.0199, False)])
def test_a_small_gain_is_found_in_the_noise(latency: float, better: bool) -> None:
    # Blocks at the high number differ by 12 % without a cause.
    noise = {8: repeat(0.01), 16: (latency * each for each in cycle([1.06, 0.94]))}
    verdict, blocks = compared(noise)
    assert verdict is better
    assert 4 < blocks <= 32


def test_it_ends_although_the_difference_is_open() -> None:
    assert compared({8: cycle([0.005, 0.02]), 16: cycle([0.01, 0.04])})[1] <= 32


def test_a_steady_trend_is_no_gain() -> None:
    # A server that becomes slower by 5 % from block to block.
    slower = [0.01 * 1.05**number for number in range(32)]
    contest = Contest(8, 16)
    for each in slower:
        verdict = contest.measured(each * contest.current / 8)
        if verdict is not None:
            break
    assert verdict is False
