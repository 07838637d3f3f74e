"""Collects changes within bounds: counts each severity completely, but keeps a limited number of each.

A CRD may have tens of thousands of fields, and two of them may have nothing in common. The limit must not
affect the verdict, so the count is exact, and harmless changes never displace the worst.

Work is limited too, in steps of about 5 µs, for every change and every part of a schema: for schemas of 3
MiB, the most that an API server accepts, a full comparison could take hours.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from crdkeeper.core.compatibility.change import Change, Impact, Severities

MAX_KEPT: Final = 2_000
"""Changes kept of each severity, for one CRD."""
MAX_STEPS: Final = 500_000
"""The work on one CRD, with all versions and pairs of versions."""
MAX_RULE_CHARACTERS: Final = 1_200_000
"""In all rules of a CRD. If there are more, the rules of the API server for new CRDs are not checked."""


class Exhausted(Exception):
    """The comparison took more steps than allowed."""


class Allowance:
    """The remaining steps of a comparison."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.spent = 0

    def spend(self, steps: int = 1) -> None:
        """Account for work. Raises Exhausted."""
        self.left -= steps
        self.spent += steps
        if self.left < 0:
            raise Exhausted


class Changes:
    """The changes of one CRD so far. `severities` come from a configuration."""

    def __init__(
        self, allowance: Allowance, *, kept: int = MAX_KEPT, severities: Severities | None = None
    ) -> None:
        self.changes: list[Change] = []
        self.counts: Counter[Impact] = Counter()
        self.chosen = 0
        """Changes with a severity that a team chose and that differs from the one of the effects."""
        self.left_out = 0
        """Changes of kinds that a configuration disables. No other number includes them."""
        self.allowance = allowance
        self._kept = kept
        self._severities = severities or {}

    def add(self, change: Change) -> None:
        """Count a change, and keep it if there are not too many already. Raises Exhausted."""
        self.allowance.spend()
        if change.kind.id in self._severities and not change.kind.fixed:
            chosen = self._severities[change.kind.id]
            if chosen is None:
                self.left_out += 1
                return
            if chosen is not change.severity:
                self.chosen += 1
                change = replace(change, chosen=chosen)
        severity = change.severity
        self.counts[severity] += 1
        if self.counts[severity] <= self._kept:
            self.changes.append(change)

    def spend(self, steps: int = 1) -> None:
        """Account for work. Raises Exhausted."""
        self.allowance.spend(steps)
