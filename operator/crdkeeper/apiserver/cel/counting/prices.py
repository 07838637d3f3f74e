"""The cost of a call.

The cost of an overload that a library of cel-go tracks comes first, then Kubernetes' cost for the function,
then cel-go's own. Follows costCall (cel-go: interpreter/runtimecost.go, ext/lists.go, ext/sets.go) and
CostEstimator.CallCost (k8s.io/apiserver: pkg/cel/library/cost.go).
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from crdkeeper.apiserver.cel.cost.librarycosts import SORTED_ELEMENTS
from crdkeeper.apiserver.cel.counting.tracker import TOO_LONG
from crdkeeper.apiserver.cel.library.names import NamedFormat
from crdkeeper.apiserver.cel.library.quantity import Quantity
from crdkeeper.apiserver.cel.library.semver import Semver
from crdkeeper.apiserver.cel.library.urls import CelUrl
from crdkeeper.apiserver.cel.run.panics import integer_or_panic, lister_or_panic
from crdkeeper.apiserver.cel.run.weights import MOST_VALUES
from crdkeeper.apiserver.cel.syntax.nodes import Op
from crdkeeper.apiserver.cel.values.network import Cidr, Ip
from crdkeeper.apiserver.cel.values.sizes import held_size, size_of
from crdkeeper.apiserver.cel.values.values import (
    Indeterminate,
    MapValue,
    Value,
    elements_of,
    is_list,
)

Price: TypeAlias = Callable[[Sequence[Value], Value], int]
"""The cost of a call by its arguments, of which a target is the first, and its result. An argument, and the
result, may be an EvaluationError.
"""

CALL: Final = 1
LIST: Final = 10
MAP: Final = 30
_TEXT: Final = 0.1
"""For each character that is read."""
_PATTERN: Final = 0.25
"""For each character of a pattern."""


def _reading(size: int, factor: float = 1) -> int:
    return math.ceil(size * factor * _TEXT)


def _matching(text: int, pattern: int) -> int:
    return math.ceil((1.0 + text) * _TEXT) * math.ceil(pattern * _PATTERN)


def _flat(args: Sequence[Value], result: Value) -> int:
    return CALL


def _first(args: Sequence[Value], result: Value) -> int:
    return _reading(size_of(args[0]))


def _first_held(args: Sequence[Value], result: Value) -> int:
    return _reading(held_size(args[0]))


def _rebuilt(args: Sequence[Value], result: Value) -> int:
    return _reading(size_of(args[0]), 2)


def _joined(args: Sequence[Value], result: Value) -> int:
    return _reading(size_of(result), 2)


def _searched(args: Sequence[Value], result: Value) -> int:
    return _matching(size_of(args[0]), size_of(args[1]))


def _matched(args: Sequence[Value], result: Value) -> int:
    return _matching(held_size(args[0]), held_size(args[1]))


def _traversed(args: Sequence[Value], result: Value) -> int:
    return traversal(args[0])


def traversal(value: Value) -> int:
    """The cost of walking through a value. Raises Indeterminate for one that has too many others.

    The server finds two values for each field that CEL does not see: no key, and an error at it.
    """
    total = values = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        values += 1
        if values > MOST_VALUES:
            raise Indeterminate(TOO_LONG)
        if type(each) is str:
            total += int(len(each.encode(errors="surrogatepass")) * _TEXT)
        elif type(each) is bytes:
            total += int(len(each) * _TEXT)
        elif is_list(each):
            waiting += elements_of(each)
        elif isinstance(each, MapValue):
            keys = each.key_list()
            waiting += keys
            waiting += [each.find(key) for key in keys]
            total += 2 * (len(each) - len(keys))
        elif type(each) is Indeterminate:
            raise Indeterminate(*each.args)
        else:
            total += 1
    return total


def _within(args: Sequence[Value], result: Value) -> int:
    return _reading(2 * size_of(args[0]))


def _within_text(args: Sequence[Value], result: Value) -> int:
    return _within(args, result) + _reading(size_of(args[1]))


def _network_within(args: Sequence[Value], result: Value) -> int:
    return _within(args, result) + _reading(size_of(args[0])) + 1


def _network_text_within(args: Sequence[Value], result: Value) -> int:
    return _network_within(args, result) + _reading(size_of(args[1]))


def _validated(args: Sequence[Value], result: Value) -> int:
    if type(args[0]) is not NamedFormat:
        return CALL
    return _matching(size_of(args[1]), args[0].pattern_size)


_OF_ONE_STEP: Final = frozenset((Quantity, Ip, Cidr, NamedFormat, CelUrl, Semver))


def _equal(args: Sequence[Value], result: Value) -> int:
    return CALL if type(args[0]) in _OF_ONE_STEP else _compared(args, result)


def _compared(args: Sequence[Value], result: Value) -> int:
    return _reading(min(held_size(args[0]), held_size(args[1])))


def _second_held(args: Sequence[Value], result: Value) -> int:
    return _reading(held_size(args[1]))


def _added(args: Sequence[Value], result: Value) -> int:
    return _reading(held_size(args[0]) + held_size(args[1]))


def _contained(args: Sequence[Value], result: Value) -> int:
    return _reading(held_size(args[0])) * _reading(held_size(args[1]))


def _listed(args: Sequence[Value], result: Value) -> int:
    return held_size(args[1])


def _new_list(factor: float, size: int) -> int:
    return int(size * (1.0 if factor < 0 else factor)) + CALL + LIST


def _produced(args: Sequence[Value], result: Value) -> int:
    return _new_list(1, size_of(result))


def _flattened(args: Sequence[Value], result: Value) -> int:
    depth = integer_or_panic(args[1]) if len(args) == 2 else 1
    return _new_list(depth, size_of(args[0]))


def _self_compared(values: Value) -> int:
    elements = elements_of(lister_or_panic(values))
    if not elements:
        return _new_list(2.0, 0)
    texts = type(elements[0]) is str or type(elements[0]) is bytes
    return _new_list(2.0 + _TEXT if texts else 2.0, len(elements) ** 2)


def _sorted(args: Sequence[Value], result: Value) -> int:
    return _self_compared(args[0])


def _sorted_by(args: Sequence[Value], result: Value) -> int:
    return _self_compared(args[1])


def _sets(factor: int) -> Price:
    return lambda args, result: CALL + factor * size_of(args[0]) * size_of(args[1])


_TRACKED: Final[dict[str, Price]] = {
    "list_slice": _produced,
    "list_flatten": _flattened,
    "list_flatten_int": _flattened,
    "lists_range": _produced,
    "list_reverse": _produced,
    "list_distinct": _sorted,
    **{f"list_{each}_sort": _sorted for each in SORTED_ELEMENTS},
    **{f"list_{each}_sortByAssociatedKeys": _sorted_by for each in SORTED_ELEMENTS},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
_OF_KUBERNETES: Final[dict[str, Price]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _first),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _rebuilt),
    "join": _joined,
    "find": _searched,
    "findAll": _searched,
    "containsIP": _within,
    "containsCIDR": _network_within,
    "validate": _validated,
    Op.EQUALS: _equal,
}
"""By function name."""
_OF_OVERLOADS: Final[dict[str, Price]] = {
    "cidr_ip": _flat,
    "cidr_contains_ip_string": _within_text,
    "cidr_contains_cidr_string": _network_text_within,
}
"""Overloads of functions of Kubernetes that differ from the others."""
_STANDARD: Final[dict[str, Price]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _second_held),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _first_held),
    "in_list": _listed,
    **{
        f"{relation}_{kind}": _compared
        for relation in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "equals": _compared,
    "not_equals": _compared,
    "add_string": _added,
    "add_bytes": _added,
    "matches": _matched,
    "matches_string": _matched,
    "contains_string": _contained,
}


def price_of(function: str, overload: str) -> Price:
    """The price of a function's overload, whose name is empty if the checker left several."""
    for prices, name in (
        (_TRACKED, overload),
        (_OF_OVERLOADS, overload),
        (_OF_KUBERNETES, function),
        (_STANDARD, overload),
    ):
        found = prices.get(name)
        if found is not None:
            return found
    return _flat


BY_RESULT: Final = frozenset((_joined, _produced))
"""Prices that are known only after the call."""
