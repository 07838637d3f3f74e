"""How messages of the composer list things."""

from collections.abc import Sequence
from typing import Final

from crdkeeper.core.text import count

SHOWN: Final = 5
"""The most problems, changes or composites that a message names."""


def listed(texts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f"; and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
    return "; ".join(texts[:SHOWN]) + more


def sentences(texts: Sequence[str], called: str) -> str:
    """The first of texts that are sentences, and how many more there are of what is called so."""
    more = [f"And {count(len(texts) - SHOWN, f'more {called}')}."] if len(texts) > SHOWN else []
    return " ".join([*texts[:SHOWN], *more])


def own_rules(rules: str) -> str:
    """What to do about rights that the composer's manifests give it, but that it lacks."""
    return f"Apply manifests/composer, whose ClusterRole has the missing rule: {rules}"
