"""Library functions as an expression calls them: the checker's overloads and constant arguments matter."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from crdkeeper.apiserver.cel.library.lists import ZEROS, total
from crdkeeper.apiserver.cel.run.folding import constant_of
from crdkeeper.apiserver.cel.syntax.nodes import Call
from crdkeeper.apiserver.cel.values.unordered import ORDERLY, Unordered, unknown_order
from crdkeeper.apiserver.cel.values.values import MISSING, Value, elements_of, is_list, no_overload

Function = Callable[..., Value]
REGEXES: Final = frozenset(("matches", "find", "findAll"))
_ZERO_IDS: Final = {"int": "int", "uint": "uint", "double": "double", "google.protobuf.Duration": "duration"}


def prepared(
    node: Call, name: str, functions: Mapping[str, Function], overloads: Sequence[str]
) -> Function | None:
    """The function of a call; None if there is none with that name.

    `overloads` are the ids that the checker has left. The function raises EvaluationError, and Indeterminate.
    """
    function = functions.get(name)
    if function is None:
        return None
    if name == "sum":
        function = _sum(overloads, function)
    if name in ORDERLY:
        function = _ordered_only(function)
    if has_constant_pattern(node, name):
        function = _with_constant_pattern(function)
    return function


def has_constant_pattern(node: Call, name: str) -> bool:
    """Whether a call is one of a regular expression that is known in advance."""
    if name not in REGEXES or not node.args:
        return False
    return constant_of(node.args[-1 if name == "matches" else 0]) is not MISSING


def evaluates_all(overload: str, arity: int, *, constant_pattern: bool) -> bool:
    """Whether the server evaluates the arguments after a failing one.

    It does for functions of two arguments, but not if the checker has left the overload open (empty here),
    nor with a pattern that is compiled in advance (planCallBinary in cel-go: interpreter/planner.go).
    """
    return arity < 3 and bool(overload) and overload != "string_format" and not constant_pattern


def _sum(ids: Sequence[str], function: Function) -> Function:
    zeros = [zero for name, zero in ZEROS.items() if ids and f"list_{_ZERO_IDS[name]}_sum" in ids[0]]
    zero = zeros[0] if len(ids) == 1 and zeros else MISSING

    def run(values: Value) -> Value:
        if is_list(values) and not elements_of(values):
            known = getattr(values, "zero", MISSING) if zero is MISSING else zero
            if known is MISSING and len(ids) > 1:
                known = 0
            if known is not MISSING:
                return total(values, known)
        return function(values)

    return run


def _ordered_only(function: Function) -> Function:
    def run(*args: Value) -> Value:
        if any(type(each) is Unordered for each in args):
            raise unknown_order()
        return function(*args)

    return run


def _with_constant_pattern(function: Function) -> Function:
    """A function of a regular expression that the server has compiled in advance: it words mismatches
    shortly.
    """

    def run(*args: Value) -> Value:
        if type(args[0]) is not str or (len(args) > 2 and type(args[2]) is not int):
            raise no_overload()
        return function(*args)

    return run
