"""Texts that Go changes in another way than Python."""

import pytest

from crdkeeper.apiserver.golang.strings import to_lower, trim_space


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
