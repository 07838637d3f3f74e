"""`x in [constants]`, which cel-go turns into a set lookup (interpreter/decorators.go)."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from crdkeeper.apiserver.cel.values.values import Indeterminate, Uint, Value, type_name
from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT

_UNHASHABLE: Final = frozenset(("bytes", "kubernetes.Semver", "kubernetes.NamedFormat"))
"""Types that cannot be keys of a map in Go, so that the lookup of such a value panics."""


def constant_set(values: Sequence[Any]) -> Callable[[Value], bool] | None:
    """A test whether a value is one of the constants; None if their types do not allow a lookup.

    An int and a double are the same constant if the int, as a double, equals it.
    The test raises Indeterminate for a value that makes the server panic.
    """
    if not values or not all(type(each) in (int, Uint, float, str, bool) for each in values):
        return None
    known: set[tuple[type, Value]] = set()
    for each in values:
        known.add((type(each), each))
        if type(each) is int:
            known.add((float, float(each)))
            if each >= 0:
                known.add((Uint, Uint(each)))
        elif type(each) is Uint:
            known.add((float, float(int(each))))
            if each <= MAX_INT:
                known.add((int, int(each)))
        elif type(each) is float and each.is_integer():
            if MIN_INT < each < MAX_INT:
                known.add((int, int(each)))
            if 0 <= each <= 2**64 - 1:
                known.add((Uint, Uint(int(each))))

    def contains(value: Value) -> bool:
        if type(value) in (int, float, str, bool, Uint):
            return (type(value), value) in known
        if type_name(value) in _UNHASHABLE:
            raise Indeterminate("a panic of the API server")
        return False

    return contains
