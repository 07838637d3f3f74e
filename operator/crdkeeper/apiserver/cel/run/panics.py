"""Calls that make the server's cost tracker panic.

The trackers of distinct, sort and sortBy assume that their argument is a list (cel-go ext/lists.go,
trackListSelfCompare): an error or another value makes the evaluator panic. For sort and sortBy this requires
that the checker has resolved the call to one overload. The tracker of flatten assumes that the depth is an
integer, even if the list is an error.
"""

from collections.abc import Callable, Sequence
from typing import Final

from crdkeeper.apiserver.cel.run.budget import Frame, charge
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


def lister_or_panic(value: Value) -> Value:
    """A list. Raises Aborted for an error and for anything else."""
    if isinstance(value, EvaluationError):
        raise _no_lister("*types.Err", "Add")
    if is_list(value):
        return value
    if isinstance(value, Opaque) and type(value) not in _ADDERS:
        raise Indeterminate("a panic of the API server")
    raise _no_lister(go_type(value), "Contains" if type(value) in _ADDERS else "Add")


def integer_or_panic(value: Value) -> int:
    """An integer. Raises Aborted for an error and for anything else."""
    if type(value) is int:
        return value
    found = "*types.Err" if isinstance(value, EvaluationError) else go_type(value)
    raise Aborted(f"interface conversion: ref.Val is {found}, not types.Int")


def _no_lister(found: str, method: str) -> Aborted:
    return Aborted(f"interface conversion: {found} is not traits.Lister: missing method {method}")


def _caught(argument: Run, frame: Frame) -> Value:
    """The value of an argument, or its error."""
    try:
        return argument(frame)
    except EvaluationError as error:
        return error


def no_error(argument: Run) -> Run:
    """An argument whose error would be used as a list. Raises Aborted for it."""

    def run(frame: Frame) -> Value:
        value = _caught(argument, frame)
        return lister_or_panic(value) if isinstance(value, EvaluationError) else value

    return run


def list_or_panic(argument: Run) -> Run:
    """An argument that must be a list. Raises Aborted if it is an error or anything else."""
    return lambda frame: lister_or_panic(_caught(argument, frame))


def flattened(values: Run, depth: Run) -> list[Run]:
    """The arguments of flatten. Raises Aborted for a depth that is an error or not an integer."""

    def integer(frame: Frame) -> Value:
        return integer_or_panic(_caught(depth, frame))

    def either(frame: Frame) -> Value:
        try:
            return values(frame)
        except EvaluationError:
            integer(frame)
            raise

    return [either, integer]


def beside(first: Run, second: Run, cost: Callable[[Sequence[Value]], int]) -> Run:
    """An argument whose error does not keep the next one from being evaluated, and from ending it all.

    `cost` is that of the call, which it has also with the error as an argument.
    """

    def run(frame: Frame) -> Value:
        try:
            return first(frame)
        except EvaluationError as error:
            charge(frame, cost((error, _caught(second, frame))))
            raise

    return run
