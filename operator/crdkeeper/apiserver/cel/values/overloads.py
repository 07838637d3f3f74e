"""How a function finds its overload at run time: by its arguments' types, as cel-go's dispatcher checks them.

A list is matched only by its first element, an empty list by any. Functions that cel-go leaves unguarded take
their arguments as they are and raise their own errors: those are `Unguarded`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from crdkeeper.apiserver.cel.values.values import (
    EvaluationError,
    MapValue,
    Uint,
    Value,
    elements_of,
    is_list,
    type_name,
)

_PLAIN: Final[dict[str, type]] = {
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "bool": bool,
}
Matcher: TypeAlias = Callable[[Value], bool]


class Overload:
    """An implementation and its argument types: a type's name, `list`, `list(T)`, `map` or `any`."""

    __slots__ = ("arity", "matchers", "run")

    def __init__(self, types: Sequence[str], run: Callable[..., Value]) -> None:
        self.run = run
        self.arity = len(types)
        self.matchers = tuple(map(_matcher, types))

    def fits(self, args: Sequence[Value]) -> bool:
        """Whether the overload is for these arguments."""
        return len(args) == self.arity and all(
            fits(arg) for fits, arg in zip(self.matchers, args, strict=True)
        )


class Unguarded:
    """An implementation for any arguments of the right number; it raises its own errors."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[..., Value]) -> None:
        self.run = run


Table: TypeAlias = Mapping[str, Sequence[Overload] | Unguarded]
"""Functions by name."""


def callable_function(name: str, overloads: Sequence[Overload] | Unguarded) -> Callable[..., Value]:
    """A function that runs the first overload that matches its arguments.

    It raises EvaluationError with cel-go's message if none matches (decls.MaybeNoSuchOverload).
    """
    if isinstance(overloads, Unguarded):
        return overloads.run
    if len(overloads) == 1 and overloads[0].arity == 1:
        return _unary(name, overloads[0])
    choices = tuple(overloads)

    def call(*args: Value) -> Value:
        for overload in choices:
            if overload.fits(args):
                return overload.run(*args)
        raise unsupported(name, args)

    return call


def _unary(name: str, overload: Overload) -> Callable[..., Value]:
    (fits,) = overload.matchers
    run = overload.run

    def call(arg: Value) -> Value:
        if fits(arg):
            return run(arg)
        raise unsupported(name, (arg,))

    return call


def unsupported(name: str, args: Sequence[Value]) -> EvaluationError:
    """The error of a function without an overload for its arguments."""
    return EvaluationError(f"no such overload: {name}({', '.join(map(type_name, args))})")


def _matcher(pattern: str) -> Matcher:
    plain = _PLAIN.get(pattern)
    if plain is not None:
        return lambda value: type(value) is plain
    if pattern == "any":
        return lambda value: True
    if pattern == "list":
        return is_list
    if pattern == "map":
        return lambda value: isinstance(value, MapValue)
    if pattern.startswith("list("):
        return _list_matcher(_matcher(pattern[5:-1]))
    return lambda value: type_name(value) == pattern


def _list_matcher(fits: Matcher) -> Matcher:
    def matches(value: Value) -> bool:
        if not is_list(value):
            return False
        elements: list[Any] = elements_of(value)
        return not elements or fits(elements[0])

    return matches


def typed(types: Sequence[str], patterns: Sequence[str], run: Callable[..., Value]) -> tuple[Overload, ...]:
    """One overload for each type, which replaces T in the patterns."""
    return tuple(Overload([pattern.replace("T", each) for pattern in patterns], run) for each in types)
