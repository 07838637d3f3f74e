"""The functions that an expression can call, and the type names, parsed from their signatures."""

from dataclasses import dataclass
from functools import cache

from crdkeeper.apiserver.cel.types import types
from crdkeeper.apiserver.cel.types.signatures import SIGNATURES, STORED_ONLY
from crdkeeper.apiserver.cel.types.types import Type


@dataclass(frozen=True, slots=True)
class OverloadDeclaration:
    """One signature; `arguments` start with the target if `member`."""

    id: str
    member: bool
    arguments: tuple[Type, ...]
    result: Type
    parameters: tuple[str, ...]
    """The type parameters, in order of their first occurrence in the arguments and the result."""


_OPAQUE = ("net.IP", "net.CIDR")
_SIMPLE = {
    each.name: each
    for each in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.INT,
        types.STRING,
        types.UINT,
        types.DURATION,
        types.TIMESTAMP,
        types.DYN,
    )
}
_AUTHORIZATION_TYPES = ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")


NAMES = frozenset(SIGNATURES) | frozenset(STORED_ONLY)
"""The names of all functions."""


@cache
def overloads(function: str, *, stored: bool) -> tuple[OverloadDeclaration, ...] | None:
    """All overloads of a function; None if there are none. `stored` is for rules that the CRD already has."""
    lines = SIGNATURES.get(function)
    if lines is None and stored:
        lines = STORED_ONLY.get(function)
    if lines is None:
        return None
    return tuple(_overload(line.strip()) for line in lines.strip().splitlines())


def _overload(line: str) -> OverloadDeclaration:
    name, signature = line.split(" ", 1)
    left, result = signature.split(" -> ")
    opening = left.rindex("(", 0, _matching(left))
    target, listed = left[:opening], left[opening + 1 : -1]
    arguments = [_type(each) for each in _split(listed)]
    if target:
        arguments.insert(0, _type(target))
    parsed = (*arguments, _type(result))
    names: list[str] = []
    for each in parsed:
        _collect(each, names)
    return OverloadDeclaration(name, bool(target), tuple(arguments), parsed[-1], tuple(names))


def _matching(text: str) -> int:
    """The position after the parenthesis that matches the last one."""
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        if text[index] == ")":
            depth += 1
        elif text[index] == "(":
            depth -= 1
            if depth == 0:
                return index + 1
    raise ValueError(text)


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _type(text: str) -> Type:
    simple = _SIMPLE.get(text)
    if simple is not None:
        return simple
    if "(" in text:
        name, inner = text[:-1].split("(", 1)
        parts = tuple(_type(each) for each in _split(inner))
        if name == "optional":
            return types.optional_of(*parts)
        return Type(name, name, parts)
    if len(text) == 1:
        return types.parameter(text)
    if text in _AUTHORIZATION_TYPES:
        return Type("struct", f"kubernetes.authorization.{text}")
    return Type("opaque" if text in _OPAQUE else "struct", text)


def _collect(type_: Type, names: list[str]) -> None:
    if type_.kind == "param" and type_.name not in names:
        names.append(type_.name)
    for each in type_.parameters:
        _collect(each, names)


TYPE_NAMES: dict[str, Type] = {
    each.name: each
    for each in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.INT,
        types.NULL,
        types.STRING,
        types.UINT,
        types.DURATION,
        types.TIMESTAMP,
    )
} | {
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "type": types.TYPE,
    "optional_type": types.optional_of(types.DYN),
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "net.IP": Type("opaque", "net.IP"),
    "net.CIDR": Type("opaque", "net.CIDR"),
}
"""The type names, with their types."""
