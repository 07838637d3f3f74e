"""List functions: Kubernetes' (library/lists.go), version 3 of cel-go's lists extension, and sets."""

import math
from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from crdkeeper.apiserver.cel.values.arithmetic import ORDERED, add, unknown_operator
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.equality import compare, equal_values
from crdkeeper.apiserver.cel.values.membership import contains
from crdkeeper.apiserver.cel.values.overloads import Overload, Table, Unguarded, typed
from crdkeeper.apiserver.cel.values.times import Duration, Timestamp
from crdkeeper.apiserver.cel.values.unordered import Unordered, unknown_order
from crdkeeper.apiserver.cel.values.values import (
    EvaluationError,
    Indeterminate,
    Uint,
    Value,
    declared_name,
    elements_of,
    is_list,
    no_overload,
    read,
    type_name,
)
from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT

COMPARABLE: Final = (
    "int",
    "uint",
    "double",
    "bool",
    Duration.type_name,
    Timestamp.type_name,
    "string",
    "bytes",
)
SUMMABLE: Final = ("int", "uint", "double", Duration.type_name)
ZEROS: Final[dict[str, Value]] = {
    "int": 0,
    "uint": Uint(0),
    "double": 0.0,
    Duration.type_name: Duration(0),
}
_EXACT: Final = 2**53
"""Up to this, a double has every whole number."""
MAX_RANGE: Final = 1_000_000
"""The longest list of lists.range: a longer one exceeds the server's cost limit."""


def _ordered(value: Value) -> Value:
    value = read(value)
    if type(value) not in ORDERED:
        raise no_overload()
    return value


def _order(left: Value, right: Value) -> int | None:
    """The order of two values; None if Compare returns an error, which these functions ignore."""
    try:
        return compare(left, right)
    except EvaluationError:
        return None


def _is_sorted(values: Value) -> bool:
    previous: Value = None
    for at, each in enumerate(elements_of(values)):
        value = _ordered(each)
        if at and _order(previous, value) == 1:
            return False
        previous = value
    return True


def _best(name: str, worse: int) -> Callable[[Value], Value]:
    def best(values: Value) -> Value:
        items = elements_of(values)
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        result = _ordered(items[0])
        for each in items[1:]:
            value = _ordered(each)
            if _order(result, value) == worse:
                result = value
        return result

    return best


def total(values: Value, zero: Value) -> Value:
    """`values.sum()`, starting from zero in the elements' type."""
    result = zero
    for each in elements_of(values):
        result = add(result, read(each))
    return result


def _is_same_in_any_order(items: list[Value]) -> bool:
    """Whether a sum is the same in any order: without rounding, and without an overflow on the way."""
    kinds = {type(each) for each in items}
    if kinds == {float}:
        if len(items) == 2:
            return True
        if not all(map(math.isfinite, items)):
            return False
        ratios = [each.as_integer_ratio() for each in items]
        unit = max(below for _, below in ratios)
        return bool(sum(abs(above) * (unit // below) for above, below in ratios) <= _EXACT)
    if kinds == {int} or kinds == {Duration}:
        wholes = [each.order if type(each) is Duration else each for each in items]
        least, most = sum(min(each, 0) for each in wholes), sum(max(each, 0) for each in wholes)
        return bool(least >= MIN_INT and most <= MAX_INT)
    return kinds == {Uint}


def _sum(values: Value) -> Value:
    items = elements_of(values)
    if not items:
        raise Indeterminate("the sum of an empty list whose element type is not known")
    if type(values) is Unordered and not _is_same_in_any_order(items):
        raise unknown_order()
    return total(values, ZEROS[type_name(items[0])])


def _equals(left: Value, right: Value) -> bool:
    try:
        return equal_values(read(left), right)
    except EvaluationError:
        return False


def _index_of(values: Value, value: Value) -> int:
    for at, each in enumerate(elements_of(values)):
        if _equals(each, value):
            return at
    return -1


def _last_index_of(values: Value, value: Value) -> int:
    items = elements_of(values)
    for at in range(len(items) - 1, -1, -1):
        if _equals(items[at], value):
            return at
    return -1


def _includes(target: Value, value: Value) -> bool:
    if is_list(target):
        return any(_equals(each, value) for each in elements_of(target))
    return _equals(target, value)


def _slice(values: Value, start: int, end: int) -> list[Value]:
    items = elements_of(values)
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        reason = "start index must be less than or equal to end index"
        raise EvaluationError(f"cannot slice({start}, {end}), {reason}")
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(values: Value, levels: Value = None) -> Value:
    if not is_list(values):
        argument = "" if levels is None else declared_name(levels)
        raise EvaluationError(f"no such overload: {declared_name(values)}.flatten({argument})")
    depth = 1 if levels is None else levels
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    items = elements_of(values)
    ordered = len(items)
    while depth and any(map(is_list, items)):
        items, ordered = _flattened(items, ordered)
        depth -= 1
    return items if ordered == len(items) else Unordered(items, ordered)


def _flattened(items: list[Value], ordered: int) -> tuple[list[Value], int]:
    """The elements of the lists in a list, and how many come first in known order, as `ordered` do here."""
    made: list[Value] = []
    known: int | None = None
    for at, each in enumerate(items):
        if at == ordered and known is None:
            known = len(made)
        if not is_list(each):
            made.append(each)
            continue
        if type(each) is Unordered and known is None:
            known = len(made) + each.ordered
        made += elements_of(each)
    return made, len(made) if known is None else known


def _sort(values: Value) -> Value:
    if not is_list(values):
        raise unknown_operator("sort", values)
    return sort_by_keys(values, elements_of(values))


def sort_by_keys(values: Value, keys: list[Value]) -> Value:
    """The elements in the order of their keys (sortListByAssociatedKeys). Raises EvaluationError.

    Raises Indeterminate if different elements have equal keys and the list is long or unordered: Go's sort is
    not stable.
    """
    items = elements_of(values)
    if not items:
        return values
    if type(read(keys[0])) not in ORDERED:
        raise EvaluationError("list elements must be comparable")
    if len(items) > 1 and len({type(each) for each in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    if any(each != each for each in keys):
        raise Indeterminate("the order of NaN among numbers")

    def by_key(one: int, two: int) -> int:
        return compare(keys[one], keys[two])

    ranked = sorted(range(len(items)), key=cmp_to_key(by_key))
    # Go sorts up to twelve elements by insertion, which is stable.
    if len(items) > 12 or type(values) is Unordered:
        for one, two in pairwise(ranked):
            if compare(keys[one], keys[two]) == 0 and not _equals(items[one], items[two]):
                raise Indeterminate("the order of elements with equal keys")
    return [items[at] for at in ranked]


def _distinct(values: Value) -> Value:
    items = elements_of(values)
    if not items:
        return values
    unique: list[Value] = []
    seen: set[tuple[type, Value]] = set()
    for each in items:
        value = read(each)
        if type(value) in (str, bool, bytes):
            if (type(value), value) in seen:
                continue
            seen.add((type(value), value))
        elif any(_equals(value, other) for other in unique):
            continue
        unique.append(value)
    return unique


def _range(length: int) -> list[Value]:
    if length < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {length}")
    if length > MAX_RANGE:
        raise Indeterminate(f"a list of {length} elements")
    return list(range(length))


def _first(values: Value) -> Value:
    items = elements_of(values)
    return OptionalValue(read(items[0])) if items else NONE


def _last(values: Value) -> Value:
    items = elements_of(values)
    return OptionalValue(read(items[-1])) if items else NONE


def _sets_contain(values: Value, part: Value) -> bool:
    return all(contains(values, read(each)) for each in elements_of(part))


def _sets_intersect(values: Value, others: Value) -> bool:
    for each in elements_of(values):
        try:
            if contains(others, read(each)):
                return True
        except EvaluationError:
            continue
    return False


def _sets_equivalent(values: Value, others: Value) -> bool:
    return _sets_contain(values, others) and _sets_contain(others, values)


MEMBERS: Final[Table] = {
    "isSorted": typed(COMPARABLE, ("list(T)",), _is_sorted),
    "sum": typed(SUMMABLE, ("list(T)",), _sum),
    "min": typed(COMPARABLE, ("list(T)",), _best("min", 1)),
    "max": typed(COMPARABLE, ("list(T)",), _best("max", -1)),
    "indexOf": (Overload(("list", "any"), _index_of),),
    "lastIndexOf": (Overload(("list", "any"), _last_index_of),),
    "includes": (Overload(("any", "any"), _includes),),
    "slice": (Overload(("list", "int", "int"), _slice),),
    "flatten": Unguarded(_flatten),
    "sort": Unguarded(_sort),
    "reverse": (Overload(("list",), lambda values: elements_of(values)[::-1]),),
    "distinct": (Overload(("list",), _distinct),),
    "first": (Overload(("list",), _first),),
    "last": (Overload(("list",), _last),),
}
GLOBALS: Final[Table] = {
    "lists.range": (Overload(("int",), _range),),
    "sets.contains": (Overload(("list", "list"), _sets_contain),),
    "sets.intersects": (Overload(("list", "list"), _sets_intersect),),
    "sets.equivalent": (Overload(("list", "list"), _sets_equivalent),),
}
