"""Which patterns are anchored, and which are only at their ends."""

import pytest

from crdkeeper.core.lint.patterns import _depths, is_unanchored, unmeant


@pytest.mark.parametrize(
    ("pattern", "unanchored", "accepted"),
    [
        ("^a$", False, None),
        ("a", True, None),
        ("^https://", False, None),
        (r"\.png$", False, None),
        (r"a\$", True, None),
        (r"a\\$", False, None),
        (".*", False, None),
        ("(^a|^b)c", False, None),
        ("(^a|b)c", True, None),
        ("a(b$|c$)", False, None),
        ("a(b$|c)", True, None),
        ("(a)(b)", True, None),
        ("(a)(b$)", False, None),
        ("a.*", False, None),
        (".*a", False, None),
        ("(.*)a", False, None),
        ("a()", True, None),
        (r"(a\()", True, None),
        (r"a(\(b$)", False, None),
        ("^a|(b$)", False, "a!"),
        ("^a|b$", False, "a!"),
        ("^a$|b", False, None),
        ("^$|^a", False, None),
        ("^https://|^$", False, None),
        ("^.*|b$", False, None),
        ("^a.*|b$", False, "!b"),
        ("^[a-z]*|[0-9]+$", False, "!"),
        ("^a*.*|b.*$", False, None),
        ("^(?:x|y){2,3}|[[:digit:]]$", False, "xx!"),
        (r"^\d+\.\S|\Bb$", False, "0.a!"),
        ("^[^]a]b|c$", False, "0b!"),
        ("^a$|b$|^c$", False, "!b"),
        ("(^a|b$)", False, "a!"),
        ("^(a|b)$", False, None),
        ("^[a|b]$", False, None),
        (r"^a\|b$", False, None),
        ("^[]|]a$", False, None),
        ("^[^]|]a$", False, None),
        ("(?i)^a$", False, None),
        ("(?i)a", True, None),
        ("(?:^a$)", False, None),
        (r"\Aa\z", False, None),
        ("a|b", True, None),
        ("", True, None),
        ("(((", True, None),
        ("[", True, None),
    ],
)
def test_patterns(pattern: str, unanchored: bool, accepted: str | None) -> None:
    assert (is_unanchored(pattern), unmeant(pattern)) == (unanchored, accepted)


def test_long_patterns_are_left_alone() -> None:
    assert is_unanchored("(" * 50 + "a" * 900 + ")" * 50)
    assert not is_unanchored("(" * 100_000 + "a" + ")" * 100_000)
    assert unmeant("^a|" * 100_000 + "b$") is None


def test_groups_in_groups_are_not_followed_for_long() -> None:
    nested = "(" * 350 + "a" + ")" * 350
    assert not is_unanchored(nested)
    assert not is_unanchored(f"x{nested}")
    assert not is_unanchored(f"{nested}x")
    assert unmeant(f"{nested}|b$") is None
    assert unmeant(f"^a|{nested}") is None
    few = "(" * 50 + "a" + ")" * 50
    assert is_unanchored(f"x{few}")


def test_a_pattern_is_read_once_for_each_group_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0

    def counted(text: str) -> list[tuple[int, int]]:
        nonlocal read
        read += len(text)
        return _depths(text)

    monkeypatch.setattr("crdkeeper.core.lint.patterns._depths", counted)
    assert not is_unanchored("(" * 497 + "<i>" + ")" * 497)
    assert read == 0
    assert is_unanchored("x" + "(" * 50 + "a" * 895 + ")" * 50)
    assert read < 51 * 1000


def test_a_pattern_cannot_make_the_search_for_a_text_expensive() -> None:
    assert unmeant("^" + "(" * 60 + "a" + "{1000}".join([")"] * 60) + "{1000}|b$") is None
    assert unmeant("^((a{900}){900}){900}|b$") in (None, "!b")
