"""What it takes us to go through values with all that is in them.

For the API server, a comparison costs by the number of fields or elements, whatever is in these.
"""

from typing import Final

from crdkeeper.apiserver.cel.run.bound import OfData
from crdkeeper.apiserver.cel.values.containers import OptionalValue
from crdkeeper.apiserver.cel.values.sizes import held_size, size_of
from crdkeeper.apiserver.cel.values.values import (
    Indeterminate,
    ListValue,
    MapValue,
    Value,
    elements_of,
    is_list,
)

_DEEP: Final = (list, ListValue, MapValue, OptionalValue)
MOST_VALUES: Final = 2_000_000
"""More than a request has. An expression can make a value that has another one twice, and so on."""


def weight_of(value: Value) -> int:
    """How many values a value is, with all that is in it. Raises Indeterminate if they are too many."""
    found = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        found += each.weight if isinstance(each, OfData) else 1
        if found > MOST_VALUES:
            raise Indeterminate("a value that it may take too long to go through")
        if isinstance(each, OfData):
            continue
        if is_list(each):
            waiting += elements_of(each)
        elif isinstance(each, MapValue):
            waiting += [each.find(key) for key in each.key_list()]
        elif type(each) is OptionalValue:
            waiting.append(each.value)
    return found


def comparison(one: Value, two: Value) -> int:
    """What `one == two` takes beyond a step. Raises Indeterminate.

    A value that an expression has made is gone through each time to know it: that counts, too.
    """
    size = held_size(one)
    if not isinstance(one, _DEEP) or size != held_size(two):
        return 0
    if isinstance(one, OfData) and isinstance(two, OfData):
        return min(one.weight, two.weight)
    return max(weight_of(one), weight_of(two))


def search(value: Value, values: Value) -> int:
    """What it takes to compare a value with the elements of a list. Raises Indeterminate."""
    size = size_of(values)
    if not isinstance(value, _DEEP):
        return size
    own, whole = weight_of(value), weight_of(values)
    return size + own + (min(size * own, whole) if isinstance(values, OfData) else whole)


def all_pairs(one: Value, two: Value) -> int:
    """What it takes to compare each element of a list with each one of another. Raises Indeterminate."""
    first, second = weight_of(one), weight_of(two)
    return first + second + min(size_of(one) * second, size_of(two) * first)
