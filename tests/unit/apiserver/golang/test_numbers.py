"""Which texts Go reads as numbers (strconv)."""

from time import process_time

import pytest

from crdkeeper.apiserver.golang.numbers import parse_float


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5e-3", -0.0015),
        ("0x1.8p1", 3.0),
        ("0x1.p1", 2.0),
        ("0X.8P0", 0.5),
        ("", None),
        (".", None),
        ("1.2.3", None),
        ("1e", None),
        ("1e5.", None),
        ("0x1", None),
        ("0xp1", None),
    ],
)
def test_a_double(text: str, value: float | None) -> None:
    assert parse_float(text) == value


@pytest.mark.parametrize("start", ["", ".", "1e", "0x", "0x.", "0x1p"])
def test_what_is_no_number_is_known_in_linear_time(start: str) -> None:
    seconds = process_time()
    assert parse_float(f"{start}{'1' * 200_000}x") is None
    assert process_time() - seconds < 5
