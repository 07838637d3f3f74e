"""Texts that Go changes in another way than Python."""

import pytest

from crdkeeper.apiserver.golang.strings import to_lower


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
