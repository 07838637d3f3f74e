"""The size of values, on which the cost of functions depends.

Follows the values of cel-go that are a Sizer, and ip.go and cidr.go in k8s.io/apiserver/pkg/cel.
"""

from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.network import Cidr, Ip
from crdkeeper.apiserver.cel.values.values import ListValue, MapValue, Value

_BITS_OF_BYTE = 8


def size_of(value: Value) -> int:
    """Characters, bytes, elements or entries; an address has bytes, a CIDR the bytes of its prefix.

    Other values have no size, and count as 1.
    """
    kind = type(value)
    if kind is str or kind is bytes or kind is list:
        return len(value)
    if isinstance(value, ListValue):
        return len(value.elements())
    if isinstance(value, MapValue):
        return len(value)
    if kind is Ip:
        return int(value.bits) // _BITS_OF_BYTE
    if kind is Cidr:
        return -(-int(value.length) // _BITS_OF_BYTE)
    return 1


def held_size(value: Value) -> int:
    """The size of an optional's value, or of the value (actualSize of cel-go's interpreter)."""
    while type(value) is OptionalValue and value is not NONE:
        value = value.value
    return size_of(value)
