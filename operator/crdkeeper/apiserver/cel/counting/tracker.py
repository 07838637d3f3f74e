"""The count of one evaluation's cost."""

from typing import Any, Final

from crdkeeper.apiserver.cel.values.values import Indeterminate

UNSET: Final = object()
"""Marks an accumulator that has not been used yet."""
TOO_LONG: Final = "to count what the evaluation costs would take too long"


class Stopped(Exception):
    """The cost exceeds the limit: the API server ends the evaluation here."""


class Tracker:
    """The state of one evaluation: the cost so far, and the values of the variables."""

    __slots__ = ("by_chance", "cost", "limit", "slots", "unordered", "work")

    def __init__(self, slots: list[Any], limit: int, work: int) -> None:
        """`work` is the remaining number of our own steps."""
        self.cost = 0
        self.limit = limit
        self.work = work
        self.slots = slots
        self.by_chance = False
        """Whether the cost depends on the order in which the server iterated over a map."""
        self.unordered = 0
        """How many loops over maps are in progress."""

    def charge(self, cost: int) -> None:
        """Add to the cost. Raises Stopped."""
        self.cost += cost
        if self.cost > self.limit:
            raise Stopped

    def spend(self, work: int) -> None:
        """Count our own work, which limits time and memory. Raises Indeterminate."""
        self.work -= work
        if self.work < 0:
            raise Indeterminate(TOO_LONG)
