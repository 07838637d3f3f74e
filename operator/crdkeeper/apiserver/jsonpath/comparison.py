"""How a filter of a JSONPath compares two values (client-go third_party/forked/golang/template/funcs.go)."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Incomparable(Exception):
    """Go cannot compare: values of different types, lists, maps, null, or an invalid operator."""


@dataclass(frozen=True, slots=True)
class Native:
    """A byte of a string, which a wildcard selects there, or an integer written in the path.

    It compares like any integer, but has a Go type that number columns do not show.
    """

    value: int


def compare(left: Any, operator: str, right: Any) -> bool:
    """Compare two values; an integer and a float are never equal or ordered. Raises Incomparable."""
    function = _COMPARE.get(operator)
    left, right = map(_plain, (left, right))
    one, other = _kind(left), _kind(right)
    if function is None or one is None or other is None:
        raise Incomparable
    if one is bool and operator not in ("==", "!="):
        raise Incomparable
    if one is not other:
        raise Incomparable
    if isinstance(left, str):
        # By bytes, as in Go.
        left, right = left.encode(errors="surrogatepass"), right.encode(errors="surrogatepass")
    return function(left, right)


def _plain(value: Any) -> Any:
    if isinstance(value, Native):
        return value.value
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return float(value)  # as Go decodes what does not fit
    return value


def _kind(value: Any) -> type | None:
    return next((each for each in (bool, int, float, str) if isinstance(value, each)), None)
