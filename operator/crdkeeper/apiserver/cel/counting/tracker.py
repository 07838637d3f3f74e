"""The count of one evaluation's cost."""

from typing import Any, Final

from crdkeeper.apiserver.cel.values.values import Indeterminate

UNSET: Final = object()
"""Stands in the place of an accumulator that nobody has asked for yet."""
TOO_LONG: Final = "to count what the evaluation costs would take too long"


class Stopped(Exception):
    """The cost is above the limit: the API server ends the evaluation here."""


class Tracker:
    """The state of one evaluation: the cost so far, and the variables in their places."""

    __slots__ = ("by_chance", "cost", "limit", "slots", "unordered", "work")

    def __init__(self, slots: list[Any], limit: int, work: int) -> None:
        """`work` is how many steps of ours are left."""
        self.cost = 0
        self.limit = limit
        self.work = work
        self.slots = slots
        self.by_chance = False
        """Whether the cost depends on the order in which the server went through a map."""
        self.unordered = 0
        """How many loops over maps are under way."""

    def charge(self, cost: int) -> None:
        """Add to the cost. Raises Stopped."""
        self.cost += cost
        if self.cost > self.limit:
            raise Stopped

    def spend(self, work: int) -> None:
        """Count work of ours, which bounds time and memory. Raises Indeterminate."""
        self.work -= work
        if self.work < 0:
            raise Indeterminate(TOO_LONG)
