"""Tables and ages look like kubectl's."""

import pytest

from crdkeeper.cli.output.table import age, table


def test_columns_are_aligned_and_lines_end_without_blanks() -> None:
    lines = table(("NAME", "AGE"), [("a-long-name", "5m"), ("b", "")])
    assert lines == ["NAME          AGE", "a-long-name   5m", "b             -"]
    assert table(("NAME", "AGE"), [("b", "1s")], with_headers=False) == ["b   1s"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (18_060, "5h1m"),
        (86_400, "24h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (700_000, "8d"),
        (70_000_000, "2y80d"),
        (300_000_000, "9y"),
    ],
)
def test_an_age_in_at_most_two_units(seconds: float, text: str) -> None:
    assert age(seconds) == text
