"""The parts of the estimate of a call: its arguments, its cost, and costs that several functions share."""

from typing import NamedTuple

from crdkeeper.apiserver.cel.cost.costpaths import CostPath
from crdkeeper.apiserver.cel.cost.estimates import (
    ONE,
    REGEX_FACTOR,
    UNKNOWN,
    Range,
    add,
    multiply,
    reading,
    scale,
)
from crdkeeper.apiserver.cel.syntax.nodes import Literal
from crdkeeper.apiserver.cel.types.types import Type


class CallCost(NamedTuple):
    """The cost of a call, and the size of its result if known."""

    cost: Range
    size: Range | None = None


class Argument(NamedTuple):
    """A target or argument of a call."""

    type: Type
    size: Range | None
    path: CostPath | None
    literal: Literal | None

    @property
    def size_or_unknown(self) -> Range:
        """The size, or the range of all sizes."""
        return UNKNOWN if self.size is None else self.size


def matching(text: Argument, pattern: Argument) -> Range:
    """The cost of matching a pattern."""
    texts = reading(add(text.size_or_unknown, ONE))
    return multiply(texts, scale(pattern.size_or_unknown, REGEX_FACTOR))


def required(target: Argument | None) -> Argument:
    assert target is not None
    return target
