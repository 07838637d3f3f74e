"""Equality and order of CEL values, as in types.Equal and the Compare methods of cel-go.

Numbers are compared across int, uint and double as in cel-go, which for doubles means in double precision:
9007199254740993 == 9007199254740992.0. Values of different types are unequal, unless data bound to a schema
is on the left: that reports "no such overload".
"""

from typing import Final

from crdkeeper.apiserver.cel.values.values import (
    EvaluationError,
    ListValue,
    MapValue,
    Opaque,
    Uint,
    Value,
    elements_of,
    is_list,
    no_overload,
    read,
)

_TWO_63: Final = 2.0**63
_TWO_64: Final = 2.0**64


def equal(left: Value, right: Value) -> bool:
    """Whether `left == right`.

    Raises EvaluationError if the server has an error for the pair.
    """
    if left is None or right is None:
        return left is right
    return equal_values(left, right)


def equal_values(left: Value, right: Value) -> bool:
    """`equal` without the special case for null on the right (the Equal method of the left value)."""
    kind = type(left)
    if kind is str or kind is bool or kind is bytes:
        return type(right) is kind and bool(left == right)
    if kind is int or kind is Uint or kind is float:
        return _equal_numbers(left, right)
    if kind is list:
        return _equal_lists(left, right)
    if left is None:
        return right is None
    value: Opaque | ListValue | MapValue = read(left)
    return value.equals(read(right))


def certainly_different(left: Value, right: Value) -> bool:
    """Whether two elements differ; an error counts as no difference (baseList.Equal, baseMap.Equal)."""
    try:
        return not equal(read(left), read(right))
    except EvaluationError:
        return False


def _equal_lists(left: list[Value], right: Value) -> bool:
    if not is_list(right):
        return False
    if type(right) is not list and not right.has_order:
        return bool(right.matches(left))
    others = elements_of(right)
    return len(left) == len(others) and not any(map(certainly_different, left, others))


def _equal_numbers(left: Value, right: Value) -> bool:
    kind, other = type(left), type(right)
    if kind is other:
        return bool(left == right)
    if other is not int and other is not Uint and other is not float:
        return False
    if left != left or right != right:
        return False
    return _compare_numbers(left, right) == 0


def _compare_numbers(left: Value, right: Value) -> int:
    """-1, 0 or 1 for two numbers, neither of them NaN (common/types/compare.go)."""
    kind, other = type(left), type(right)
    if kind is not other and (kind is float or other is float):
        if kind is float:
            return _compare_double(left, right)
        return -_compare_double(right, left)
    return int(left > right) - int(left < right)


def _compare_double(double: float, whole: int) -> int:
    low, high = (0.0, _TWO_64) if type(whole) is Uint else (-_TWO_63, _TWO_63)
    if double < low:
        return -1
    if double > high:
        return 1
    rounded = float(whole)
    return (double > rounded) - (double < rounded)


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1 for `left` less than, equal to or greater than `right`.

    Raises EvaluationError for NaN and for types without a common order; the caller ensures that the type of
    `left` is ordered at all.
    """
    kind, other = type(left), type(right)
    if kind is int or kind is Uint or kind is float:
        if kind is float and left != left:
            raise EvaluationError("NaN values cannot be ordered")
        if other is not int and other is not Uint and other is not float:
            raise no_overload()
        if other is float and right != right:
            raise EvaluationError("NaN values cannot be ordered")
        return _compare_numbers(left, right)
    if kind is not other:
        raise no_overload()
    if isinstance(left, Opaque):
        return _compare_opaque(left, right)
    return int(left > right) - int(left < right)


def _compare_opaque(left: Value, right: Value) -> int:
    one, two = left.order, right.order
    return int(one > two) - int(one < two)
