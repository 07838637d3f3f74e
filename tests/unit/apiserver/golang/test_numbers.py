"""Which texts Go reads as numbers (strconv)."""

from time import process_time

import pytest

from crdkeeper.apiserver.golang.numbers import MAX_INT, MAX_UINT, MIN_INT, parse_float, parse_int, parse_uint

ZEROS = "0" * 5_000


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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+7", 7),
        (ZEROS, 0),
        (f"{ZEROS}7", 7),
        (f"-{ZEROS}7", -7),
        (f"{ZEROS}{MAX_INT}", MAX_INT),
        (str(MAX_INT + 1), None),
        (str(MIN_INT), MIN_INT),
        (str(MIN_INT - 1), None),
        (f"{ZEROS}1{ZEROS}", None),
        ("", None),
        ("+", None),
        ("--7", None),
    ],
    ids=lambda each: str(each)[-24:],
)
def test_an_integer_may_have_leading_zeros(text: str, value: int | None) -> None:
    assert parse_int(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{ZEROS}{MAX_UINT}", MAX_UINT),
        (f"{ZEROS}{MAX_UINT + 1}", None),
        (f"1{ZEROS}", None),
        ("+1", None),
    ],
    ids=lambda each: str(each)[-24:],
)
def test_an_unsigned_integer_may_have_leading_zeros(text: str, value: int | None) -> None:
    assert parse_uint(text) == value
