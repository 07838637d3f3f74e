"""Texts that patterns match."""

import pytest
import re2

from crdkeeper.core.patterntexts import texts_of

PATTERNS = [
    "^a$",
    "^[a-z]+$",
    "^[^a-z]$",
    "^(a|bc|)d?$",
    r"^\d{3}-\d{2,}$",
    "^[-a-zA-Z0-9.]{0,5}$",
    "^(?:x(?P<name>y)z)*$",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    r"^\$\{[A-Z_]+\}$",
    "^.{2}$",
    "abc|def",
    r"^[\w.]+@[\w.]+$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_most_of_them_match(pattern: str) -> None:
    found = texts_of(pattern)
    matching = [each for each in found if re2.search(pattern, each)]
    assert len(matching) > len(found) / 2
    assert len(found) < 100


@pytest.mark.parametrize("pattern", ["(?i)a", r"\pL", "[[:alpha:]]", "(", "a{2,1001}", "*", "a" * 2_000])
def test_what_is_not_read(pattern: str) -> None:
    assert texts_of(pattern) == []


def test_characters_at_the_borders_of_another_pattern() -> None:
    assert "n" in texts_of("^[a-z]$", ["^[a-mo-z]$"])
