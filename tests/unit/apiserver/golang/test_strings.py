"""Texts that Go changes in another way than Python, and characters that not every Unicode has."""

import unicodedata

import pytest

from crdkeeper.apiserver.golang.strings import is_printable, to_lower, trim_space


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("WidGet", "widget"),
        ("\u00c4\u00d6", "\u00e4\u00f6"),
        # Python makes two characters of it.
        ("W\u0130dget", "widget"),
        # For Python, another letter at the end of a word.
        ("\u039f\u03a3", "\u03bf\u03c3"),
    ],
)
def test_lower_case(text: str, expected: str) -> None:
    assert to_lower(text) == expected


@pytest.mark.parametrize("space", list("\t\n\v\f\r \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"))
def test_white_space(space: str) -> None:
    assert trim_space(f"{space}a{space}b{space}") == f"a{space}b"


@pytest.mark.parametrize("other", list("\x1c\x1d\x1e\x1f\u200b\ufeff"))
def test_what_is_no_white_space_for_go(other: str) -> None:
    assert trim_space(other) == other


@pytest.mark.skipif(unicodedata.unidata_version > "15.1", reason="Unicode of Python is later than Go's")
def test_characters_since_unicode_3_2() -> None:
    """Such as emoji, which are in warnings."""
    assert is_printable("\u26a0") is True


@pytest.mark.parametrize(
    ("chars", "printable"),
    [
        ("a \u00e9\u4e2d\U00020000", True),
        ("\t\x7f\u00a0\u200b\ue000", False),
        # U+2FFC is in Python 3.13, but not in Go 1.26.
        ("\u0378\u2ffc", None),
    ],
)
def test_what_is_printable(chars: str, printable: bool | None) -> None:
    assert {is_printable(each) for each in chars} == {printable}
