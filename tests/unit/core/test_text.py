"""Counts in readable form."""

import pytest

from crdkeeper.core.text import count


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 objects"), (1, "1 object"), (2, "2 objects"), (12345, "12,345 objects")],
)
def test_count(number: int, words: str) -> None:
    assert count(number, "object") == words
