"""Selection of fields, keys and elements, resolved like cel-go's attributes (interpreter/attributes.go)."""

from typing import Final

from crdkeeper.apiserver.cel.values.display import displayed
from crdkeeper.apiserver.cel.values.unordered import Unordered, unknown_order
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    EvaluationError,
    ListValue,
    MapValue,
    Uint,
    Value,
    declared_name,
    elements_of,
    is_list,
    read,
    type_name,
)
from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT

_GO_TYPES: Final = {
    "null_type": "types.Null",
    "bytes": "types.Bytes",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bool": "types.Bool",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.URL": "cel.URL",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.NamedFormat": "cel.Format",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
}


def go_type(value: Value) -> str:
    """The type of a value as printed by Go's verb %T."""
    if type(value) is list:
        return "*types.baseList"
    if isinstance(value, ListValue):
        return f"*common.{_LISTS.get(type(value).__name__, 'unstructuredList')}"
    if isinstance(value, MapValue):
        return "*common.unstructuredMap" if type(value).__name__ == "BoundMap" else "*types.baseMap"
    return _GO_TYPES.get(type_name(value), type_name(value))


_LISTS: Final = {
    "BoundSet": "unstructuredSetList",
    "BoundMapList": "unstructuredMapList",
    "Union": "refValSetList",
    "MergedMapList": "refValMapList",
}


def lookup(value: Value, key: Value) -> Value:
    """The field, entry or element at a key; MISSING if there is none, or nothing to select from.

    Raises EvaluationError for a key that cannot be used with the value.
    """
    if isinstance(value, MapValue):
        found = value.find(key)
        return found if found is MISSING else read(found)
    if is_list(value):
        return _element(value, key)
    return MISSING


def _element(value: Value, key: Value) -> Value:
    items = elements_of(value)
    index = _index(key)
    if not 0 <= index < len(items):
        return MISSING
    if type(value) is Unordered and index >= value.ordered:
        raise unknown_order()
    if type(value) is not list and type(key) is not int:
        raise EvaluationError(f"unsupported index: {displayed(key)}")
    return read(items[index])


def _index(key: Value) -> int:
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is Uint and key <= MAX_INT:
        return int(key)
    if kind is float and key.is_integer() and MIN_INT < key < MAX_INT:
        return int(key)
    if kind is float or kind is Uint:
        raise EvaluationError(f"unsupported index value {displayed(key)} in list")
    raise EvaluationError(f"unsupported index type '{declared_name(key)}' in list")


def missing(value: Value, key: Value, offset: int | None = None) -> EvaluationError:
    """The error for a key that does not exist; `offset` is where the expression selects it."""
    if is_list(value):
        return EvaluationError(f"index out of bounds: {displayed(key)}", offset)
    return EvaluationError(f"no such key: {displayed(key)}", offset)


def checked_key(key: Value) -> Value:
    """A computed key, if its type can be that of a key. Raises EvaluationError."""
    if type(key) in (str, int, Uint, bool, float):
        return key
    raise EvaluationError(f"invalid qualifier type: {go_type(key)}")
