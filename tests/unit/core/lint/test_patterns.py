"""Which patterns are anchored, and which are only at their ends."""

import pytest

from crdkeeper.core.lint.patterns import is_loose, is_unanchored


@pytest.mark.parametrize(
    ("pattern", "unanchored", "loose"),
    [
        ("^a$", False, False),
        ("a", True, False),
        ("^https://", False, False),
        (r"\.png$", False, False),
        (r"a\$", True, False),
        (r"a\\$", False, False),
        (".*", False, False),
        ("(^a|^b)c", False, False),
        ("(^a|b)c", True, False),
        ("a(b$|c$)", False, False),
        ("a(b$|c)", True, False),
        ("(a)(b)", True, False),
        ("(a)(b$)", False, False),
        ("a.*", False, False),
        (".*a", False, False),
        ("(.*)a", False, False),
        ("a()", True, False),
        ("^a|(b$)", False, True),
        ("^a|b$", False, True),
        ("^a$|b", False, False),
        ("^$|^a", False, False),
        ("^a$|b$|^c$", False, True),
        ("(^a|b$)", False, True),
        ("^(a|b)$", False, False),
        ("^[a|b]$", False, False),
        (r"^a\|b$", False, False),
        ("^[]|]a$", False, False),
        ("^[^]|]a$", False, False),
        ("(?i)^a$", False, False),
        ("(?i)a", True, False),
        ("(?:^a$)", False, False),
        (r"\Aa\z", False, False),
        ("a|b", True, False),
        ("", True, False),
        ("(((", True, False),
        ("[", True, False),
    ],
)
def test_patterns(pattern: str, unanchored: bool, loose: bool) -> None:
    assert (is_unanchored(pattern), is_loose(pattern)) == (unanchored, loose)


def test_long_patterns_are_left_alone() -> None:
    assert is_unanchored("(" * 450 + "a" + ")" * 450)
    assert not is_unanchored("(" * 100_000 + "a" + ")" * 100_000)
    assert not is_loose("^a|" * 100_000 + "b$")
