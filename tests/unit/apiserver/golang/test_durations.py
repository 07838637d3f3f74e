"""Durations as Go shows them, each printed by time.Duration.String of Go 1.26, and those in words."""

import pytest

from crdkeeper.apiserver.golang import durations

SHOWN = [
    (0, "0s"),
    (1, "1ns"),
    (999, "999ns"),
    (1_100, "1.1\u00b5s"),
    (2_200_000, "2.2ms"),
    (999_999_999, "999.999999ms"),
    (1_000_000_000, "1s"),
    (3_300_000_000, "3.3s"),
    (60_000_000_000, "1m0s"),
    (245_000_000_000, "4m5s"),
    (245_001_000_000, "4m5.001s"),
    (18_367_001_000_000, "5h6m7.001s"),
    (480_000_000_001, "8m0.000000001s"),
    (36_000_000_000_000, "10h0m0s"),
    (2**63 - 1, "2562047h47m16.854775807s"),
    (-(2**63), "-2562047h47m16.854775808s"),
]


@pytest.mark.parametrize(("nanoseconds", "text"), SHOWN)
def test_a_duration_is_shown_as_go_shows_it(nanoseconds: int, text: str) -> None:
    assert durations.shown(nanoseconds) == text
    assert durations.parse(text) == nanoseconds


def test_digits_without_a_unit_take_no_quadratic_time() -> None:
    assert durations.WORDED.findall("1s" + "1" * 1_000_000) == [("1", "s")]
    assert durations.WORDED.findall("12 days,3\tweeks 45 \u00b5s6") == [
        ("12", "days"), ("3", "weeks"), ("45", "\u00b5s"),
    ]  # fmt: skip
