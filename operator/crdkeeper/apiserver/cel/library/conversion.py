"""Conversions between types, and the type of a value (ConvertToType of cel-go's types, common/stdlib)."""

import math
from typing import Final

from crdkeeper.apiserver.cel.values.network import Cidr, Ip
from crdkeeper.apiserver.cel.values.overloads import Overload, Table, Unguarded
from crdkeeper.apiserver.cel.values.times import (
    SECOND,
    Duration,
    Timestamp,
    in_range,
    parse_duration,
    parse_timestamp,
)
from crdkeeper.apiserver.cel.values.values import (
    CelType,
    EvaluationError,
    MapValue,
    Uint,
    Value,
    elements_of,
    is_list,
    no_overload,
    type_name,
)
from crdkeeper.apiserver.golang.numbers import (
    MAX_INT,
    parse_bool,
    parse_float,
    parse_int,
    parse_uint,
    shortest,
)

DURATION: Final = "google.protobuf.Duration"
TIMESTAMP: Final = "google.protobuf.Timestamp"
_TWO_63: Final = 2.0**63
_TWO_64: Final = 2.0**64


def _unreadable(target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{target}'")


def to_string(value: Value) -> str:
    """`string(value)` for the types that support it. Raises EvaluationError for bytes that are not UTF-8."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return shortest(value)
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is bytes:
        try:
            return str(value.decode())
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is str:
        return str(value)
    return str(value.text())


def _string_to_int(text: str) -> int:
    value = parse_int(text)
    if value is None:
        raise _unreadable("int")
    return value


def _double_to_int(value: float) -> int:
    if math.isnan(value) or value <= -_TWO_63 or value >= _TWO_63:
        raise EvaluationError("integer overflow")
    return int(value)


def _uint_to_int(value: Uint) -> int:
    if value > MAX_INT:
        raise EvaluationError("integer overflow")
    return int(value)


def _string_to_uint(text: str) -> Uint:
    value = parse_uint(text)
    if value is None:
        raise _unreadable("uint")
    return Uint(value)


def _double_to_uint(value: float) -> Uint:
    if math.isnan(value) or value < 0 or value >= _TWO_64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(int(value))


def _int_to_uint(value: int) -> Uint:
    if value < 0:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _string_to_double(text: str) -> float:
    value = parse_float(text)
    if value is None:
        raise _unreadable("double")
    return value


def _string_to_bool(text: str) -> bool:
    value = parse_bool(text)
    if value is None:
        raise _unreadable("bool")
    return value


def _string_to_duration(text: str) -> Duration:
    value = parse_duration(text)
    if value is None:
        raise _unreadable(DURATION)
    return value


def _string_to_timestamp(text: str) -> Timestamp:
    value = parse_timestamp(text)
    if value is None:
        raise _unreadable(TIMESTAMP)
    if not in_range(value):
        raise EvaluationError("timestamp overflow")
    return value


def _int_to_timestamp(seconds: int) -> Timestamp:
    value = Timestamp(seconds * SECOND)
    if not in_range(value):
        raise EvaluationError("timestamp overflow")
    return value


def _same(value: Value) -> Value:
    return value


def type_of(value: Value) -> CelType:
    """`type(value)`."""
    return CelType(type_name(value))


def _size(value: Value) -> int:
    if type(value) is str or type(value) is bytes or isinstance(value, MapValue):
        return len(value)
    if is_list(value):
        return len(elements_of(value))
    if type(value) is Duration or type(value) is Timestamp:
        raise no_overload()
    raise EvaluationError("no such overload: size")


GLOBALS: Final[Table] = {
    "int": (
        Overload(("int",), _same),
        Overload(("double",), _double_to_int),
        Overload((DURATION,), lambda value: value.order),
        Overload(("string",), _string_to_int),
        Overload((TIMESTAMP,), lambda value: value.order // SECOND),
        Overload(("uint",), _uint_to_int),
    ),
    "uint": (
        Overload(("uint",), _same),
        Overload(("double",), _double_to_uint),
        Overload(("int",), _int_to_uint),
        Overload(("string",), _string_to_uint),
    ),
    "double": (
        Overload(("double",), _same),
        Overload(("int",), float),
        Overload(("string",), _string_to_double),
        Overload(("uint",), lambda value: float(int(value))),
    ),
    "string": tuple(
        Overload((name,), to_string)
        for name in (
            "string",
            "bool",
            "bytes",
            "double",
            DURATION,
            "int",
            TIMESTAMP,
            "uint",
            Ip.type_name,
            Cidr.type_name,
        )
    ),
    "bool": (Overload(("bool",), _same), Overload(("string",), _string_to_bool)),
    "bytes": (Overload(("bytes",), _same), Overload(("string",), lambda text: text.encode())),
    "duration": (Overload((DURATION,), _same), Overload(("string",), _string_to_duration)),
    "timestamp": (
        Overload((TIMESTAMP,), _same),
        Overload(("int",), _int_to_timestamp),
        Overload(("string",), _string_to_timestamp),
    ),
    "dyn": Unguarded(_same),
    "type": Unguarded(type_of),
    "size": Unguarded(_size),
}
MEMBERS: Final[Table] = {"size": Unguarded(_size)}

TYPE_NAMES: Final = frozenset(
    (
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
        DURATION,
        TIMESTAMP,
        "optional_type",
        Ip.type_name,
        Cidr.type_name,
    )
)
"""The type names in expressions."""
