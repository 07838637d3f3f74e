"""JSON values as in Go: integers and floats are two types, even if the numbers are equal.

So 1 is not 1.0 until the object has been stored once: Go writes an integral float without its dot.
"""

from typing import Any

from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT, received


def stored(value: Any) -> Any:
    """A value as it is read after it was stored: a number without a dot is an integer."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and MIN_INT <= value <= MAX_INT else value
    if isinstance(value, int):
        return value if isinstance(value, bool) else received(value)
    if isinstance(value, dict):
        return {key: stored(each) for key, each in value.items()}
    if isinstance(value, list):
        return [stored(each) for each in value]
    return value


def same(left: Any, right: Any) -> bool:
    """Equality in which 1, 1.0 and true are three values (Go's reflect.DeepEqual)."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(each, right[key]) for key, each in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)
