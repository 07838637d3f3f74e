"""The values of CEL at run time, and the two ways in which an evaluation ends without one.

Plain Python values are used if possible: int, float, str, bytes, bool and None are CEL's int, double, string,
bytes, bool and null, a list is a list created by the expression itself. Everything else has a class: here, in
`binding` for data seen through a schema, and in the libraries for their own types. A value's type is always
`type(value)`, never isinstance of a plain type: a bool is not an int, and neither is a `Uint`.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

Value: TypeAlias = Any
"""A CEL value. Elements of lists and maps can be an EvaluationError or Indeterminate: reading raises it."""


class EvaluationError(Exception):
    """An error of CEL at run time, with cel-go's message."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        """Where in the expression the selection is that leads to nothing, if that is the error."""


class Indeterminate(Exception):
    """The server's result cannot be determined offline; `why` says what prevents it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Aborted(Exception):
    """The server's evaluator panics: this error ends the whole evaluation, and no operator absorbs it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.message = f"internal error: {reason}"


NO_OVERLOAD: Final = "no such overload"


def no_overload() -> EvaluationError:
    """The error for a value whose type does not support an operation (types.MaybeNoSuchOverloadErr)."""
    return EvaluationError(NO_OVERLOAD)


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Opaque:
    """A value with its own type: durations, timestamps, types, optionals, quantities, addresses …"""

    __slots__ = ()
    type_name: str = ""

    def equals(self, other: Value) -> bool:
        """Whether two values are equal, as decided by the type's `Equal` in cel-go or k8s.io/apiserver.

        Raises EvaluationError if that returns an error.
        """
        raise no_overload()


class CelType(Opaque):
    """A type as a value, such as the result of type(x)."""

    __slots__ = ("name",)
    type_name = "type"

    def __init__(self, name: str) -> None:
        self.name = name

    def equals(self, other: Value) -> bool:
        """Types are equal by name."""
        return type(other) is CelType and other.name == self.name


class ListValue:
    """A list with its own rules for equality, membership and addition: one bound to a schema."""

    __slots__ = ()
    has_order = True
    """Whether the server has the elements in the same order each time."""
    replaces = False
    """Whether an element that is added may take the place of another one."""

    def elements(self) -> list[Value]:
        """All elements; the caller must not change the list."""
        raise NotImplementedError

    def equals(self, other: Value) -> bool:
        raise NotImplementedError

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value."""
        raise NotImplementedError

    def plus(self, other: Sequence[Value]) -> Value:
        """The list followed by the elements of another one."""
        raise NotImplementedError


class MapValue:
    """A map, or an object, with lookup by key."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        """The value at a key, or `MISSING`. Raises EvaluationError for a type that no key of it has."""
        raise NotImplementedError

    def key_list(self) -> list[Value]:
        """The keys to iterate over."""
        raise NotImplementedError

    def equals(self, other: Value) -> bool:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class _Missing:
    __slots__ = ()


MISSING: Final = _Missing()
"""Means "no value here" where None is a value."""


_TYPE_NAMES: Final[dict[type, str]] = {
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    bool: "bool",
    type(None): "null_type",
    list: "list",
}


def type_name(value: Value) -> str:
    """The name of a value's type, as in type(x) and error messages."""
    name = _TYPE_NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Opaque):
        return value.type_name
    return "list" if isinstance(value, ListValue) else "map"


def declared_name(value: Value) -> str:
    """The name of a value's type with its parameters, as in some error messages."""
    name = type_name(value)
    return _WITH_PARAMETERS.get(name, name)


_WITH_PARAMETERS: Final = {
    "list": "list(dyn)",
    "map": "map(dyn, dyn)",
    "optional_type": "optional_type(dyn)",
}


def is_list(value: Value) -> bool:
    """Whether a value is a list of any kind."""
    return type(value) is list or isinstance(value, ListValue)


def elements_of(value: Value) -> list[Value]:
    """The elements of a list; reading an element that is an EvaluationError raises it."""
    return value if type(value) is list else value.elements()


def looped_keys(values: MapValue) -> list[Value]:
    """The keys that a loop goes through. Raises Indeterminate for an object that has fields CEL does not see.

    The server goes on for each of these, with a null or an error instead of the key.
    """
    keys = values.key_list()
    if len(keys) < len(values):
        raise Indeterminate("a loop over an object with fields that CEL does not see")
    return keys


ERRORS: Final = frozenset((EvaluationError, Indeterminate))


def read(value: Value) -> Value:
    """An element of a list or map, for use: raised if it is an error."""
    if type(value) in ERRORS:
        raise type(value)(*value.args)
    return value
