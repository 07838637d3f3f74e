"""Lists that macros make of maps: the server iterates over maps in random order, so theirs is unknown.

Results that do not depend on the order can be computed; all others are Indeterminate.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from crdkeeper.apiserver.cel.values.membership import in_elements
from crdkeeper.apiserver.cel.values.values import (
    Indeterminate,
    ListValue,
    MapValue,
    Uint,
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
_COUNTABLE: Final = frozenset((str, bytes, bool, int, Uint, float))
"""Types whose values can be counted to find out whether a list has the same ones as another."""


def unknown_order() -> Indeterminate:
    """Why a result that depends on the order is unknown."""
    return Indeterminate(NO_ORDER)


class Unordered(ListValue):
    """A list of at least two elements in unknown order.

    Only the first ones, `ordered` of them, may be where they are for the server: what the others were added
    to. What was added to a set or a list with keys has the rules of that for equality, and for what is added
    next: `ruled` has the same elements in some order, and these rules.
    """

    __slots__ = ("_elements", "_ruled", "ordered", "replaces")
    has_order = False

    def __init__(self, elements: list[Value], ordered: int = 0, ruled: ListValue | None = None) -> None:
        self._elements = elements
        self._ruled = ruled
        self.ordered = ordered
        self.replaces = ruled is not None and ruled.replaces

    def elements(self) -> list[Value]:
        """The elements, in some order."""
        return self._elements

    def equals(self, other: Value) -> bool:
        """False if no order would be equal; otherwise Indeterminate. The order does not matter to a set."""
        return self.matches(other) if self._ruled is None else bool(self._ruled.equals(other))

    def matches(self, other: Value) -> bool:
        """Whether a list without such rules equals it: False as far as counting shows it, or Indeterminate.

        What cannot be counted would have to be compared with each element, and the comparison could fail. So
        it does not matter which of the lists is on the left.
        """
        if not is_list(other):
            return False
        others = elements_of(other)
        if len(others) != len(self._elements):
            return False
        types = {type(each) for each in (*self._elements, *others)}
        if len(types) == 1 and types <= _COUNTABLE and Counter(self._elements) != Counter(others):
            return False
        raise unknown_order()

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value."""
        return in_elements(self._elements, value)

    def plus(self, other: Sequence[Value]) -> Value:
        """All elements of both."""
        if self._ruled is None:
            return Unordered([*self._elements, *other], self.ordered)
        made = self._ruled.plus(other)
        return Unordered(made.elements(), self.ordered, made)


def without_order(left: Value, added: Unordered, made: Value) -> Value:
    """The sum `made` of a list and one in unknown order.

    Raises Indeterminate for a list with keys if the order may decide which elements it has.
    """
    kept, elements = len(elements_of(left)), elements_of(made)
    if type(made) is list:
        return Unordered(made, kept + added.ordered)
    if made.replaces and len(elements) < kept + len(added.elements()):
        raise unknown_order()
    if type(made) is Unordered or len(elements) == kept:
        return made
    return Unordered(elements, kept, made)


def has_no_order(values: Value) -> bool:
    """Whether the server visits the elements or entries of a value in a random order."""
    return isinstance(values, MapValue) or type(values) is Unordered


def made_from(values: Value, elements: list[Value]) -> Value:
    """A list that a macro has made of the elements or entries of a value."""
    if len(elements) > 1 and has_no_order(values):
        return Unordered(elements)
    return elements
