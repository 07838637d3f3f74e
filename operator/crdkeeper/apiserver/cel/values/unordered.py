"""Lists that macros make of maps: the server iterates over maps in random order, so theirs is unknown.

Results that do not depend on the order can be computed; all others are Indeterminate.
"""

from collections.abc import Sequence
from typing import Final

from crdkeeper.apiserver.cel.values.equality import certainly_different
from crdkeeper.apiserver.cel.values.membership import in_elements
from crdkeeper.apiserver.cel.values.values import (
    Indeterminate,
    ListValue,
    MapValue,
    Value,
    elements_of,
    is_list,
)

ORDERLY: Final = frozenset(
    (
        "join",
        "slice",
        "first",
        "last",
        "indexOf",
        "lastIndexOf",
        "reverse",
        "format",
        "isSorted",
        "flatten",
        "distinct",
        "unwrapOpt",
        "optional.unwrap",
    )
)
"""Functions whose results depend on the order of a list."""
NO_ORDER: Final = "the order in which the server goes through a map"
"""The message for a result that depends on it."""


def unknown_order() -> Indeterminate:
    """Why a result that depends on the order is unknown."""
    return Indeterminate(NO_ORDER)


class Unordered(ListValue):
    """A list of at least two elements in unknown order."""

    __slots__ = ("_elements",)

    def __init__(self, elements: list[Value]) -> None:
        self._elements = elements

    def elements(self) -> list[Value]:
        """The elements, in some order."""
        return self._elements

    def equals(self, other: Value) -> bool:
        """False if no order would be equal; otherwise Indeterminate."""
        if not is_list(other):
            return False
        others = list(elements_of(other))
        if len(others) != len(self._elements):
            return False
        for each in self._elements:
            at = next((at for at, value in enumerate(others) if not certainly_different(each, value)), None)
            if at is None:
                return False
            del others[at]
        raise unknown_order()

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value."""
        return in_elements(self._elements, value)

    def plus(self, other: Sequence[Value]) -> Value:
        """All elements of both."""
        return Unordered([*self._elements, *other])


def has_no_order(values: Value) -> bool:
    """Whether the server visits the elements or entries of a value in a random order."""
    return isinstance(values, MapValue) or type(values) is Unordered


def made_from(values: Value, elements: list[Value]) -> Value:
    """A list that a macro has made of the elements or entries of a value."""
    if len(elements) > 1 and has_no_order(values):
        return Unordered(elements)
    return elements
