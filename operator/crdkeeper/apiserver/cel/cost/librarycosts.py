"""The costs of functions by overload: those of cel-go's libraries, and those of its standard library.

Follows ext/lists.go, ext/sets.go and checker/cost.go of cel-go.
"""

from collections.abc import Callable, Sequence
from typing import Final

from crdkeeper.apiserver.cel.cost.callcosts import Argument, CallCost, matching, required
from crdkeeper.apiserver.cel.cost.estimates import MAX, ONE, TEXT_FACTOR, Range, add, multiply, reading, scale

Cost = Callable[[Argument | None, Sequence[Argument]], CallCost]
"""The cost of a call with a target and arguments."""

_CALL_AND_LIST: Range = (11, 11)


def _new_list(factor: float, size: Range) -> CallCost:
    return CallCost(add(scale(size, factor), _CALL_AND_LIST), size)


def _whole(argument: Argument, default: int) -> int:
    """The value of a non-negative integer literal."""
    literal = argument.literal
    if literal is None or literal.kind != "int":
        return default
    assert isinstance(literal.value, int)
    return max(literal.value, 0)


def _slice(target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    size = required(target).size_or_unknown
    # A difference of unsigned integers: an end before the start gives a huge list.
    count = (_whole(arguments[1], size[1]) - _whole(arguments[0], 0)) % (MAX + 1)
    return _new_list(1, (count, count))


def _flatten(target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    depth = _whole(arguments[0], MAX) if arguments else 1
    return _new_list(float(depth), required(target).size_or_unknown)


def _range(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    count = _whole(arguments[0], MAX)
    return _new_list(1, (count, count))


def _reverse(target: Argument | None, _arguments: Sequence[Argument]) -> CallCost:
    return _new_list(1, required(target).size_or_unknown)


def _squared(argument: Argument, factor: float) -> CallCost:
    size = argument.size_or_unknown
    return _new_list(factor, multiply(size, size))


def _sort(element: str) -> Cost:
    factor = 2 + (TEXT_FACTOR if element in ("string", "bytes") else 0.0)
    return lambda target, _: _squared(required(target), factor)


def _sort_by(element: str) -> Cost:
    factor = 2 + (TEXT_FACTOR if element in ("string", "bytes") else 0.0)
    return lambda _, arguments: _squared(arguments[0], factor)


def _sets(factor: float) -> Cost:
    def cost(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
        pairs = multiply(arguments[0].size_or_unknown, arguments[1].size_or_unknown)
        return CallCost(add(scale(pairs, factor), ONE))

    return cost


SORTED_ELEMENTS: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)
"""The types of elements in the overloads of sort() and sortBy()."""
LIBRARY: dict[str, Cost] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": lambda target, _: _squared(required(target), 2),
    **{f"list_{each}_sort": _sort(each) for each in SORTED_ELEMENTS},
    **{f"list_{each}_sortByAssociatedKeys": _sort_by(each) for each in SORTED_ELEMENTS},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
"""These take precedence over Kubernetes' own costs."""


def _string_to_bytes(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    size = arguments[0].size_or_unknown
    # The product overflows in the server.
    return CallCost(reading(size), (size[0], size[1] * 4 % (MAX + 1)))


def _bytes_to_string(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    size = arguments[0].size_or_unknown
    return CallCost(reading(size), (size[0] // 4, size[1]))


def _quote(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    size = arguments[0].size_or_unknown
    return CallCost(reading(size), ((size[0] + 2) % (MAX + 1), (size[1] * 2 + 2) % (MAX + 1)))


def _matches(target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    if target is None:
        return CallCost(matching(arguments[0], arguments[1]))
    return CallCost(matching(target, arguments[0]))


def _contains(target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    text = reading(required(target).size_or_unknown)
    return CallCost(multiply(text, reading(arguments[0].size_or_unknown)))


def _concatenation(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    size = add(arguments[0].size_or_unknown, arguments[1].size_or_unknown)
    return CallCost(reading(size), size)


def _add_lists(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    return CallCost(ONE, add(arguments[0].size_or_unknown, arguments[1].size_or_unknown))


def _compare(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    most = min(arguments[0].size_or_unknown[1], arguments[1].size_or_unknown[1])
    return CallCost(reading((1 if most > 0 else 0, most)))


def _read_first(_target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    return CallCost(reading(arguments[0].size_or_unknown))


STANDARD: dict[str, Cost] = {
    "string_format": lambda target, _: CallCost(reading(required(target).size_or_unknown)),
    "string_to_bytes": _string_to_bytes,
    "bytes_to_string": _bytes_to_string,
    "strings_quote": _quote,
    "starts_with_string": _read_first,
    "ends_with_string": _read_first,
    "in_list": lambda _, arguments: CallCost(scale(arguments[1].size_or_unknown, 1)),
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _concatenation,
    "add_bytes": _concatenation,
    "add_list": _add_lists,
    "equals": _compare,
    "not_equals": _compare,
    **{
        f"{operator}_{kind}": _compare
        for operator in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}
"""These apply last."""
