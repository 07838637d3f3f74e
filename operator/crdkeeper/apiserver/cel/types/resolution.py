"""Finds the overloads that match the arguments of a call (resolveOverload of cel-go's checker/checker.go)."""

from functools import lru_cache
from typing import NamedTuple

from crdkeeper.apiserver.cel.types import declarations, types
from crdkeeper.apiserver.cel.types.types import Type, substitute


class Resolution(NamedTuple):
    """What a call can mean."""

    result: Type | None
    """The type of the result; None if no overload matches."""
    overloads: tuple[str, ...]
    """The ids of all matching overloads."""
    parameters: int
    """How many type variables the server uses for the call: some messages contain their numbers."""


@lru_cache(maxsize=8192)
def resolve_plain(
    function: str, arguments: tuple[Type, ...], *, member: bool, stored: bool
) -> Resolution | None:
    """The overloads for arguments without type parameters; None if the result has some."""
    bindings = types.Bindings()
    found = resolve(function, arguments, bindings, 0, member=member, stored=stored)
    if found.result is not None and found.result.generic:
        return None
    return found


def resolve(
    function: str,
    arguments: tuple[Type, ...],
    bindings: types.Bindings,
    free: int,
    *,
    member: bool,
    stored: bool,
) -> Resolution:
    """All matching overloads. Type variables are numbered from `free`, and bound in `bindings`."""
    result: Type | None = None
    fitting: list[str] = []
    first = free
    for overload in declarations.overloads(function, stored=stored) or ():
        if overload.member != member:
            continue
        wanted, returned = overload.arguments, overload.result
        if overload.parameters:
            variables = {}
            for name in overload.parameters:
                variables[name] = types.parameter(f"_var{free}")
                free += 1
            fresh = types.Bindings(variables)
            wanted = tuple(substitute(fresh, each) for each in wanted)
            returned = substitute(fresh, returned)
        if not types.assignable(bindings, arguments, wanted):
            continue
        fitting.append(overload.id)
        own = substitute(bindings, returned)
        if result is None:
            result = own
        elif not types.is_dyn(result) and own != result:
            result = types.DYN
    return Resolution(result, tuple(fitting), free - first)
