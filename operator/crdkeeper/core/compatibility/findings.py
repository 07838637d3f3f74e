"""Collects changes within bounds: each severity is counted in full, but only so many of each are kept.

A CRD may hold tens of thousands of fields, and two of them may have nothing in common. The verdict must
not suffer from the bound, so the count is exact and the worst are never crowded out by the harmless ones.
"""

from collections import Counter
from typing import Final

from crdkeeper.core.compatibility.change import Change, Impact

MAX_KEPT: Final = 2_000
"""Changes kept of each severity, for one CRD."""
MAX_STEPS: Final = 2_000_000
"""Schema nodes and pairs of alternatives that are compared for one CRD, all versions and pairs together."""


class Exhausted(Exception):
    """The comparison took more steps than it may."""


class Changes:
    """The changes of one CRD so far."""

    def __init__(self, *, steps: int = MAX_STEPS, kept: int = MAX_KEPT) -> None:
        self.changes: list[Change] = []
        self.counts: Counter[Impact] = Counter()
        self._steps = steps
        self._kept = kept

    def add(self, change: Change) -> None:
        """Counts a change, and keeps it if there are not too many already."""
        severity = change.severity
        self.counts[severity] += 1
        if self.counts[severity] <= self._kept:
            self.changes.append(change)

    @property
    def steps_left(self) -> int:
        """How much work may still be done."""
        return self._steps

    def spend(self, steps: int = 1) -> None:
        """Accounts for work. Raises Exhausted."""
        self._steps -= steps
        if self._steps < 0:
            raise Exhausted
