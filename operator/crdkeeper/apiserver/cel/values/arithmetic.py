"""The operators + - * / % and - of CEL on run-time values: overflow, division by zero, unsupported types.

An operator reports "no such overload" in two ways, like cel-go's interpreter: with the name of the operator
if the left operand's type does not have it at all, without if the right one does not match. Types that
receive calls (string, duration, timestamp) always report it without.
"""

import math
import operator
from collections.abc import Callable
from typing import Final

from crdkeeper.apiserver.cel.values.times import Duration, Timestamp, between, shifted
from crdkeeper.apiserver.cel.values.unordered import Unordered, without_order
from crdkeeper.apiserver.cel.values.values import (
    EvaluationError,
    ListValue,
    Uint,
    Value,
    elements_of,
    is_list,
    no_overload,
)
from crdkeeper.apiserver.golang.numbers import MAX_INT, MAX_UINT, MIN_INT

_RECEIVERS: Final = (str, Duration, Timestamp)


def unknown_operator(name: str, left: Value) -> EvaluationError:
    """The error of an operator, or function without own overloads, that the left operand's type lacks."""
    if type(left) in _RECEIVERS:
        return no_overload()
    return EvaluationError(f"no such overload: {name}")


def _int(value: int) -> int:
    if MIN_INT <= value <= MAX_INT:
        return value
    raise EvaluationError("integer overflow")


def _uint(value: int) -> Uint:
    if 0 <= value <= MAX_UINT:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def add(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _int(left + right)
        if kind is str or kind is float or kind is bytes or kind is list:
            return left + right
        if kind is Uint:
            return _uint(int(left) + int(right))
    if kind is Duration:
        if type(right) is Timestamp:
            return shifted(right, left.order)
        if type(right) is Duration:
            return Duration(_int(left.order + right.order))
        raise no_overload()
    if kind is Timestamp:
        if type(right) is Duration:
            return shifted(left, right.order)
        raise no_overload()
    if is_list(left):
        return _concatenated(left, right)
    if kind is int or kind is str or kind is float or kind is bytes or kind is Uint:
        raise no_overload()
    raise unknown_operator("_+_", left)


def _concatenated(left: Value, right: Value) -> Value:
    if not is_list(right):
        raise no_overload()
    others = elements_of(right)
    if isinstance(left, ListValue):
        made = left.plus(others)
    elif left:
        made = left + others if others else left
    else:
        return right
    return without_order(left, right, made) if type(right) is Unordered else made


def subtract(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _int(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return _uint(int(left) - int(right))
        if kind is Duration:
            return Duration(_int(left.order - right.order))
        if kind is Timestamp:
            return between(left, right)
    if kind is Timestamp and type(right) is Duration:
        return shifted(left, _int(-right.order))
    raise _mismatch("_-_", left, kind in (int, float, Uint))


def multiply(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _int(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return _uint(int(left) * int(right))
    raise _mismatch("_*_", left, kind in (int, float, Uint))


def divide(left: Value, right: Value) -> Value:
    """`left / right`, with whole numbers truncated towards zero. Raises EvaluationError."""
    kind = type(left)
    if kind is type(right):
        if kind is float:
            return _quotient(left, right)
        if kind is int or kind is Uint:
            if right == 0:
                raise EvaluationError("division by zero")
            return _truncated(kind, left, right)
    raise _mismatch("_/_", left, kind in (int, float, Uint))


def _truncated(kind: type, left: int, right: int) -> Value:
    quotient = abs(left) // abs(right)
    return Uint(quotient) if kind is Uint else _int(-quotient if (left < 0) != (right < 0) else quotient)


def _quotient(left: float, right: float) -> float:
    if right != 0 or right != right:
        return left / right
    if left != left or left == 0:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def modulo(left: Value, right: Value) -> Value:
    """`left % right`, with the sign of the left operand. Raises EvaluationError."""
    kind = type(left)
    if kind is type(right) and (kind is int or kind is Uint):
        if right == 0:
            raise EvaluationError("modulus by zero")
        if kind is Uint:
            return Uint(int(left) % int(right))
        if left == MIN_INT and right == -1:
            raise EvaluationError("integer overflow")
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    raise _mismatch("_%_", left, kind in (int, Uint))


def negate(value: Value) -> Value:
    kind = type(value)
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(_int(-value.order))
    if kind is bool:
        raise no_overload()
    raise unknown_operator("-_", value)


def _mismatch(name: str, left: Value, known: bool) -> EvaluationError:
    return no_overload() if known else unknown_operator(name, left)


BINARY: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
}
ORDERED: Final = frozenset((int, Uint, float, str, bytes, bool, Duration, Timestamp))
"""The types whose values are ordered."""
RELATIONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
