"""Calls that the server's cost tracker cannot stand.

The trackers of distinct, sort and sortBy take their argument for a list (cel-go ext/lists.go,
trackListSelfCompare): one that is an error or something else makes the evaluator panic. For sort and sortBy
that is so only where the checker has resolved the call to one overload. The tracker of flatten takes the
depth for an integer, also where the list is an error.
"""

from typing import Final

from crdkeeper.apiserver.cel.run.budget import Frame
from crdkeeper.apiserver.cel.run.comprehensions import Run
from crdkeeper.apiserver.cel.run.qualifiers import go_type
from crdkeeper.apiserver.cel.values.times import Duration, Timestamp
from crdkeeper.apiserver.cel.values.values import (
    Aborted,
    EvaluationError,
    Indeterminate,
    Opaque,
    Uint,
    Value,
    is_list,
)

_ADDERS: Final = frozenset((int, Uint, float, str, bytes, Duration, Timestamp))


def no_error(argument: Run) -> Run:
    """An argument whose error comes to stand where a list must. Raises Aborted for it."""

    def run(frame: Frame) -> Value:
        try:
            return argument(frame)
        except EvaluationError:
            raise Aborted(
                "interface conversion: *types.Err is not traits.Lister: missing method Add"
            ) from None

    return run


def list_or_panic(argument: Run) -> Run:
    """An argument that must be a list. Raises Aborted if it is an error or no list."""

    evaluated = no_error(argument)

    def run(frame: Frame) -> Value:
        value = evaluated(frame)
        if is_list(value):
            return value
        if isinstance(value, Opaque) and type(value) not in _ADDERS:
            raise Indeterminate("a panic of the API server")
        method = "Contains" if type(value) in _ADDERS else "Add"
        raise Aborted(f"interface conversion: {go_type(value)} is not traits.Lister: missing method {method}")

    return run


def flattened(values: Run, depth: Run) -> list[Run]:
    """The arguments of flatten. Raises Aborted for a depth that is an error or no integer."""

    def integer(frame: Frame) -> Value:
        try:
            value = depth(frame)
        except EvaluationError:
            raise _no_integer("*types.Err") from None
        if type(value) is int:
            return value
        raise _no_integer(go_type(value))

    def either(frame: Frame) -> Value:
        try:
            return values(frame)
        except EvaluationError:
            integer(frame)
            raise

    return [either, integer]


def _no_integer(found: str) -> Aborted:
    return Aborted(f"interface conversion: ref.Val is {found}, not types.Int")
