"""The types of CEL, and their assignability.

Follows cel-go's checker (checker/types.go, common/types/types.go): type parameters are bound while
expressions are checked, `dyn` matches everything, and null every type that is not a plain value.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

MAX_TEXT = 10_000
"""The maximum length of a type's text: types that contain each other twice double with each step."""


class TypeTooBig(Exception):
    """A type that takes too much memory."""


class StructFields(Protocol):
    """The fields of a struct."""

    def __call__(self, field: str, /) -> "Type | None":
        """The type of a field by its name in CEL."""

    def names(self) -> Iterable[str]:
        """The names of all fields in CEL."""


class Type:
    """A type.

    `kind` is one of bool, bytes, double, int, string, uint, null, duration, timestamp, dyn, any, error, list,
    map, struct, opaque, type and param. `text` is the type as the server writes it, which also identifies the
    type. `fields` finds the type of a field, for a struct of a schema; None for all others.
    """

    __slots__ = ("fields", "generic", "kind", "local", "name", "parameters", "text")

    def __init__(
        self,
        kind: str,
        name: str,
        parameters: tuple["Type", ...] = (),
        fields: StructFields | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.parameters = parameters
        self.fields = fields
        if kind == "param":
            self.generic, self.local = True, False
            self.text = name
            return
        self.generic = self.local = False
        for each in parameters:
            self.generic = self.generic or each.generic
            self.local = self.local or each.local
        self.local = self.local or fields is not None
        if parameters:
            if sum(len(each.text) for each in parameters) > MAX_TEXT:
                raise TypeTooBig
            self.text = f"{name}({', '.join(each.text for each in parameters)})"
        else:
            self.text = _TEXTS.get(kind, name)

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


_TEXTS = {"null": "null", "error": "!error!"}

BOOL = Type("bool", "bool")
BYTES = Type("bytes", "bytes")
DOUBLE = Type("double", "double")
INT = Type("int", "int")
STRING = Type("string", "string")
UINT = Type("uint", "uint")
NULL = Type("null", "null_type")
DURATION = Type("duration", "duration")
TIMESTAMP = Type("timestamp", "timestamp")
DYN = Type("dyn", "dyn")
ANY = Type("any", "any")
ERROR = Type("error", "error")
TYPE = Type("type", "type")


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def type_of(instance: Type) -> Type:
    """The type of a type."""
    return Type("type", "type", (instance,))


def optional_of(value: Type) -> Type:
    """An optional."""
    return Type("opaque", "optional_type", (value,))


def parameter(name: str) -> Type:
    """A type parameter."""
    return Type("param", name)


def is_dyn(type_: Type) -> bool:
    """Whether every type is assignable to it."""
    return type_.kind in ("dyn", "any")


def is_dyn_or_error(type_: Type) -> bool:
    """Whether nothing is known about the type."""
    return type_.kind in ("dyn", "any", "error")


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """The type in an optional, and whether the type is one."""
    if type_.kind == "opaque" and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False


class Bindings:
    """The types bound to type parameters, by name."""

    __slots__ = ("_bound", "_undo")

    def __init__(self, bound: dict[str, Type] | None = None) -> None:
        self._bound: dict[str, Type] = {} if bound is None else bound
        self._undo: list[tuple[str, Type | None]] = []

    def get(self, name: str) -> Type | None:
        """The type bound to a parameter."""
        return self._bound.get(name)

    def bind(self, name: str, type_: Type) -> None:
        """Bind a parameter to a type."""
        self._undo.append((name, self._bound.get(name)))
        self._bound[name] = type_

    def keep(self) -> None:
        """Make the bindings permanent."""
        self._undo.clear()

    def undo(self) -> None:
        """Undo the bindings since the last `keep`."""
        while self._undo:
            name, before = self._undo.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before


def substitute(bindings: Bindings, type_: Type, *, free_to_dyn: bool = False) -> Type:
    """The type with its parameters replaced by their types; with `free_to_dyn`, unbound ones become dyn."""
    if not type_.generic:
        return type_
    if type_.kind == "param":
        bound = bindings.get(type_.name)
        if bound is not None:
            return substitute(bindings, bound, free_to_dyn=free_to_dyn)
        return DYN if free_to_dyn else type_
    parts = tuple(substitute(bindings, each, free_to_dyn=free_to_dyn) for each in type_.parameters)
    return Type(type_.kind, type_.name, parts)


def assignable(bindings: Bindings, from_: Sequence[Type], to: Sequence[Type]) -> bool:
    """Whether types are assignable to others, pairwise; if so, binds the parameters."""
    if len(from_) == len(to) and all(
        _assignable(bindings, one, other) for one, other in zip(from_, to, strict=True)
    ):
        bindings.keep()
        return True
    bindings.undo()
    return False


def _assignable(bindings: Bindings, one: Type, other: Type) -> bool:
    if other.kind == "param":
        valid, bound = _valid_substitution(bindings, one, other)
        if valid or bound:
            return valid
    if one.kind == "param":
        return _valid_substitution(bindings, other, one)[0]
    if is_dyn_or_error(one) or is_dyn_or_error(other):
        return True
    if one.kind == "null":
        return _nullable(other)
    if other.kind == "null":
        return _nullable(one)
    if one.kind == "type":
        return other.kind == "type"
    if one.kind != other.kind or one.name != other.name:
        return False
    if len(one.parameters) != len(other.parameters):
        return False
    return all(map(lambda left, right: _assignable(bindings, left, right), one.parameters, other.parameters))


def _nullable(type_: Type) -> bool:
    return type_.kind in ("opaque", "struct", "any", "duration", "timestamp", "null", "dyn", "param")


def _valid_substitution(bindings: Bindings, type_: Type, param: Type) -> tuple[bool, bool]:
    """Whether a parameter can be bound to a type, and whether it was bound before."""
    if type_ == param:
        return True, True
    bound = bindings.get(param.name)
    if bound is not None:
        if type_ == bound:
            return True, True
        if _assignable(bindings, type_, bound):
            general = most_general(type_, bound)
            if _absent(bindings, param, general):
                bindings.bind(param.name, general)
            return True, True
        return False, True
    if _absent(bindings, param, type_):
        bindings.bind(param.name, type_)
        return True, False
    return False, False


def _absent(bindings: Bindings, param: Type, within: Type) -> bool:
    """Whether a parameter does not occur in a type, directly or through other parameters."""
    if not within.generic:
        return True
    if param == within:
        return False
    if within.kind == "param":
        bound = bindings.get(within.name)
        return bound is None or _absent(bindings, param, bound)
    return all(_absent(bindings, param, each) for each in within.parameters)


def most_general(one: Type, other: Type) -> Type:
    """The more general of two types that are known to agree."""
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind == "param":
        return True
    if is_dyn(other) or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind in ("list", "map", "opaque"):
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(map(_less_specific, one.parameters, other.parameters))
        )
    return one.kind == "type" or one == other
