"""The cost of calling a function, and the maximum size of its result.

In the API server three parts decide, in this order: the libraries of cel-go, the CostEstimator of
k8s.io/apiserver (pkg/cel/library/cost.go, by the function's name), and cel-go for the standard library. A
function that none of them knows costs 1.
"""

import math
from collections.abc import Callable, Sequence

from crdkeeper.apiserver.cel.cost.callcosts import Argument, CallCost, matching
from crdkeeper.apiserver.cel.cost.costpaths import declared_size
from crdkeeper.apiserver.cel.cost.estimates import (
    MAX,
    NOTHING,
    ONE,
    REGEX_FACTOR,
    TEXT_FACTOR,
    UNKNOWN,
    Range,
    add,
    multiply,
    reading,
    scale,
)
from crdkeeper.apiserver.cel.cost.librarycosts import LIBRARY, STANDARD
from crdkeeper.apiserver.cel.syntax.nodes import Op
from crdkeeper.apiserver.cel.types.declared import Declared


def function_cost(
    function: str,
    overload: str,
    target: Argument | None,
    arguments: Sequence[Argument],
    declared: Declared,
) -> CallCost:
    """The cost of a call without that of its arguments; `declared` is where paths start."""
    by_overload = LIBRARY.get(overload)
    if by_overload is not None:
        return by_overload(target, arguments)
    if function in _OVER_ELEMENTS and target is not None:
        return _over_elements(function, target, declared)
    if function == "join" and target is not None:
        return _join(target, arguments, declared)
    by_name = _KUBERNETES.get(function)
    if by_name is not None:
        found = by_name(overload, target, arguments)
        if found is not None:
            return found
    standard = STANDARD.get(overload)
    if standard is not None:
        return standard(target, arguments)
    return CallCost(ONE)


_Named = Callable[[str, Argument | None, Sequence[Argument]], CallCost | None]

_OVER_ELEMENTS = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"))


def _element_size(target: Argument, declared: Declared) -> Range:
    if target.path is None:
        return UNKNOWN
    size = declared_size(declared, target.path, "@items")
    return UNKNOWN if size is None else size


def _over_elements(function: str, target: Argument, declared: Declared) -> CallCost:
    size = target.size_or_unknown
    parameters = target.type.parameters
    if parameters:
        cost = ONE
        if parameters[0].kind in ("string", "bytes"):
            cost = add(cost, reading(_element_size(target, declared)))
        return CallCost(multiply(size, cost))
    return CallCost(size if function == "includes" else reading(size))


def _join(target: Argument, arguments: Sequence[Argument], declared: Declared) -> CallCost:
    count = target.size_or_unknown
    size = NOTHING
    if target.type.parameters:
        size = multiply(count, _element_size(target, declared))
    if arguments:
        separators = (max(count[0] - 1, 0), max(count[1] - 1, 0))
        size = add(size, multiply(arguments[0].size_or_unknown, separators))
    return CallCost(reading(size), size)


def _constant(_overload: str, _target: Argument | None, _arguments: Sequence[Argument]) -> CallCost:
    return CallCost(ONE)


def _read_argument(
    _overload: str, _target: Argument | None, arguments: Sequence[Argument]
) -> CallCost | None:
    return CallCost(reading(arguments[0].size_or_unknown)) if arguments else None


def _url(_overload: str, _target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    size = arguments[0].size_or_unknown
    return CallCost(reading(size), size)


def _read_target(_overload: str, target: Argument | None, _arguments: Sequence[Argument]) -> CallCost | None:
    if target is None:
        return None
    size = target.size_or_unknown
    return CallCost(reading(size), size)


def _replace(_overload: str, target: Argument | None, arguments: Sequence[Argument]) -> CallCost | None:
    if target is None or len(arguments) < 2:
        return None
    size = target.size_or_unknown
    old, new = arguments[0].size_or_unknown, arguments[1].size_or_unknown
    most = kept_most = least = kept_least = 0
    if old[0] == 0:
        most, kept_most = min(size[1] + 1, MAX), size[1]
    elif new[1] <= old[0]:
        kept_most = size[1]
    else:
        most = min(math.ceil(float(size[1]) / float(old[0])), MAX)
    if old[1] == 0:
        least, kept_least = min(size[0] + 1, MAX), size[0]
    elif old[1] <= new[0]:
        kept_least = size[0]
    else:
        least = math.ceil(float(size[0]) / float(old[1]))
    result = add(multiply((least, most), new), (kept_least, kept_most))
    return CallCost(scale(size, 2 * TEXT_FACTOR), result)


def _split(_overload: str, target: Argument | None, arguments: Sequence[Argument]) -> CallCost | None:
    if target is None:
        return None
    size = target.size_or_unknown
    most = size[1]
    if len(arguments) > 1:
        literal = arguments[1].literal
        if literal is not None and literal.kind == "int":
            assert isinstance(literal.value, int)
            most = literal.value % (MAX + 1)
    return CallCost(scale(size, 2 * TEXT_FACTOR), (0, most))


def _find(_overload: str, target: Argument | None, arguments: Sequence[Argument]) -> CallCost | None:
    if target is None or not arguments:
        return None
    return CallCost(matching(target, arguments[0]), (0, target.size_or_unknown[1]))


def _ip(overload: str, target: Argument | None, arguments: Sequence[Argument]) -> CallCost | None:
    return CallCost(ONE) if overload == "cidr_ip" else _read_argument(overload, target, arguments)


def _canonical(_overload: str, _target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    return CallCost(scale(arguments[0].size_or_unknown, 2 * TEXT_FACTOR))


_ADDRESS: Range = (4, 16)


def _contains_ip(overload: str, _target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    cost = reading(add(_ADDRESS, _ADDRESS))
    if overload == "cidr_contains_ip_string":
        cost = add(cost, reading(arguments[0].size_or_unknown))
    return CallCost(cost)


def _contains_cidr(overload: str, _target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    cost = add(reading(add(_ADDRESS, _ADDRESS)), reading(_ADDRESS), ONE)
    if overload == "cidr_contains_cidr_string":
        cost = add(cost, reading(arguments[0].size_or_unknown))
    return CallCost(cost)


_LONGEST_FORMAT_PATTERN = 128


def _validate(_overload: str, _target: Argument | None, arguments: Sequence[Argument]) -> CallCost | None:
    if not arguments:
        return None
    cost = reading(arguments[0].size_or_unknown)
    return CallCost(scale(cost, _LONGEST_FORMAT_PATTERN * REGEX_FACTOR))


def _selector(_overload: str, _target: Argument | None, arguments: Sequence[Argument]) -> CallCost:
    size = arguments[0].size_or_unknown
    return CallCost(add((10, 10), reading(size), scale(scale(size, 0.5), 50)))


def _authorization(_overload: str, _target: Argument | None, _arguments: Sequence[Argument]) -> CallCost:
    return CallCost((350_000, 350_000))


_CHEAP_EQUALITY = frozenset(
    (
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.ResourceCheck",
        "kubernetes.authorization.Decision",
    )
)
_LONGEST_FORMAT = 64


def _equals(_overload: str, _target: Argument | None, arguments: Sequence[Argument]) -> CallCost | None:
    left, right = arguments
    name = left.type.name
    if name != right.type.name:
        return None
    if name in _CHEAP_EQUALITY:
        return CallCost(ONE)
    if name == "kubernetes.NamedFormat":
        return CallCost(reading((1, _LONGEST_FORMAT)))
    if name == "kubernetes.URL":
        size = ONE if right.size is None else right.size
        return CallCost(reading((1, size[1])))
    return None


_KUBERNETES: dict[str, _Named] = {
    **dict.fromkeys(("url",), _url),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read_target),
    "replace": _replace,
    "split": _split,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _read_argument),
    "ip": _ip,
    "ip.isCanonical": _canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _read_argument),
    "validate": _validate,
    Op.EQUALS: _equals,
    "check": _authorization,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(
        (
            "serviceAccount",
            "path",
            "group",
            "resource",
            "subresource",
            "namespace",
            "name",
            "allowed",
            "reason",
            "error",
            "errored",
            "masked",
            "prefixLength",
            "family",
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
            "format.named",
            "sign",
            "asInteger",
            "isInteger",
            "asApproximateFloat",
            "isGreaterThan",
            "isLessThan",
            "compareTo",
            "add",
            "sub",
            "major",
            "minor",
            "patch",
            "getScheme",
            "getHostname",
            "getHost",
            "getPort",
            "getEscapedPath",
            "getQuery",
        ),
        _constant,
    ),
}
