"""The values of CEL at run time, and the two ways in which an evaluation ends without one.

Plain Python stands for what it can: int, float, str, bytes, bool and None are CEL's int, double, string,
bytes, bool and null, a list is a list that the expression itself has made. Everything else has a class:
here, in `binding` for data that is seen through a schema, and in the libraries for their own types. What a
type *is* always goes by `type(value)`, never by isinstance of a plain type: a bool is no int, and a `Uint`
is no int either.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

Value: TypeAlias = Any
"""A CEL value. An element of a list or map can be an EvaluationError or Indeterminate: who reads it raises
it.
"""


class EvaluationError(Exception):
    """An error of CEL at run time, in cel-go's words."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Indeterminate(Exception):
    """What the server would do cannot be known offline; `why` says what is in the way."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Aborted(Exception):
    """The server's evaluator panics: the whole evaluation ends with this error, and no operator absorbs
    it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.message = f"internal error: {reason}"


NO_OVERLOAD: Final = "no such overload"


def no_overload() -> EvaluationError:
    """The error of a value of a type that an operation does not know (types.MaybeNoSuchOverloadErr)."""
    return EvaluationError(NO_OVERLOAD)


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Opaque:
    """A value with a type of its own: durations, timestamps, types, optionals, quantities, addresses …"""

    __slots__ = ()
    type_name: str = ""

    def equals(self, other: Value) -> bool:
        """Whether two values are equal, as `Equal` of the type in cel-go or k8s.io/apiserver decides.

        Raises EvaluationError where that returns one.
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
    """A list with rules of its own for equality, membership and addition: one that is bound to a schema."""

    __slots__ = ()

    def elements(self) -> list[Value]:
        """All elements; the caller must not change the list."""
        raise NotImplementedError

    def equals(self, other: Value) -> bool:
        """Whether it equals another value."""
        raise NotImplementedError

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value."""
        raise NotImplementedError

    def plus(self, other: Sequence[Value]) -> Value:
        """The list with the elements of another one added."""
        raise NotImplementedError


class MapValue:
    """A map, or an object, that an expression can look into by key."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        """The value at a key, or `MISSING`. Raises EvaluationError for a key of a type the map cannot
        have.
        """
        raise NotImplementedError

    def key_list(self) -> list[Value]:
        """The keys to iterate over."""
        raise NotImplementedError

    def equals(self, other: Value) -> bool:
        """Whether it equals another value."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class _Missing:
    __slots__ = ()


MISSING: Final = _Missing()
"""Stands for "no value here" where None is a value."""


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
    """The name of a value's type, as type(x) and error messages give it."""
    name = _TYPE_NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Opaque):
        return value.type_name
    return "list" if isinstance(value, ListValue) else "map"


def declared_name(value: Value) -> str:
    """The name of a value's type with its parameters, as some error messages give it."""
    name = type_name(value)
    return _WITH_PARAMETERS.get(name, name)


_WITH_PARAMETERS: Final = {
    "list": "list(dyn)",
    "map": "map(dyn, dyn)",
    "optional_type": "optional_type(dyn)",
}


def is_list(value: Value) -> bool:
    """Whether a value is a list of any sort."""
    return type(value) is list or isinstance(value, ListValue)


def elements_of(value: Value) -> list[Value]:
    """The elements of a list; an element that is an EvaluationError is raised by whoever reads it."""
    return value if type(value) is list else value.elements()


ERRORS: Final = frozenset((EvaluationError, Indeterminate))


def read(value: Value) -> Value:
    """An element of a list or map, for use: raises it if it is an error."""
    if type(value) in ERRORS:
        raise type(value)(*value.args)
    return value
