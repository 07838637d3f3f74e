"""How messages of the composer list things."""

from collections.abc import Sequence
from typing import Final

SHOWN: Final = 5
"""The most problems, changes or composites that a message names."""


def listed(texts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f"; and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
    return "; ".join(texts[:SHOWN]) + more
