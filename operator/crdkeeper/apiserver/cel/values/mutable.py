"""The empty list as the variable of optMap, optFlatMap and sortBy.

These macros expand to a fold whose result is the variable. In cel-go the result of a fold changes in place
if it begins as an empty list (folder.ResolveName in interpreter/interpretable.go): `l + ['x']` changes `l`.
"""

from collections.abc import Sequence

from crdkeeper.apiserver.cel.values.equality import equal_values
from crdkeeper.apiserver.cel.values.membership import in_elements
from crdkeeper.apiserver.cel.values.values import Indeterminate, ListValue, Value, elements_of, is_list


class MutableList(ListValue):
    """A list that is changed by what is added to it, and otherwise like one that an expression has made."""

    __slots__ = ("_elements",)

    def __init__(self) -> None:
        self._elements: list[Value] = []

    def elements(self) -> list[Value]:
        """The elements so far, in a list that remains as it is."""
        return self._elements

    def equals(self, other: Value) -> bool:
        return equal_values(self._elements, other)

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value."""
        return in_elements(self._elements, value)

    def plus(self, other: Sequence[Value]) -> Value:
        """The same list, with the elements of another one. Raises Indeterminate if that is itself."""
        if other and other is self._elements:
            raise Indeterminate("a list added to itself, whose size the API server then gets wrong")
        self._elements = [*self._elements, *other]
        return self


def as_variable(value: Value) -> Value:
    """The value of such a variable."""
    return MutableList() if is_list(value) and not elements_of(value) else value


def as_result(value: Value) -> Value:
    """The result of such a fold, which does not change any more."""
    return value.elements() if type(value) is MutableList else value
