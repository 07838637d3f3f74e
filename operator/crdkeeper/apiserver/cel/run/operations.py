"""Operators and calls at run time: closures over the closures of their operands."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from crdkeeper.apiserver.cel.library.functions import MEMBERS
from crdkeeper.apiserver.cel.library.lists import sort_by_keys
from crdkeeper.apiserver.cel.run.budget import SMALL, Frame, charge, cost_of
from crdkeeper.apiserver.cel.run.comprehensions import Run
from crdkeeper.apiserver.cel.run.weights import weight_of
from crdkeeper.apiserver.cel.syntax.nodes import Op
from crdkeeper.apiserver.cel.values.arithmetic import BINARY, ORDERED, RELATIONS, negate, unknown_operator
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.equality import compare, equal
from crdkeeper.apiserver.cel.values.membership import contains
from crdkeeper.apiserver.cel.values.sizes import held_size, size_of
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    EvaluationError,
    Indeterminate,
    Value,
    elements_of,
    is_list,
    no_overload,
    read,
)

_EQUALITY: Final = cost_of(Op.EQUALS)
_MEMBERSHIP: Final = cost_of(Op.IN)


def constant(value: Value) -> Run:
    """Always the same value."""
    return lambda frame: value


def failing(error: EvaluationError | Indeterminate) -> Run:
    """Always the same error."""

    def run(frame: Frame) -> Value:
        return read(error)

    return run


def variable(slot: int, name: str) -> Run:
    """A variable at its place in the frame."""

    def run(frame: Frame) -> Value:
        value = frame[slot]
        if value is MISSING:
            raise EvaluationError(f"no such attribute(s): {name}")
        return read(value)

    return run


def called(function: Callable[..., Value], args: list[Run], cost: Callable[[Sequence[Value]], int]) -> Run:
    """A call of a function, with its cost by the arguments."""
    if not args:
        return lambda frame: function()

    def run(frame: Frame) -> Value:
        values: list[Value] = []
        try:
            for arg in args:
                values.append(arg(frame))
        except EvaluationError as error:
            # The API server charges a call whose last argument fails as if the error were its value.
            charge(frame, cost([*values, *[error] * (len(args) - len(values))]))
            raise
        charge(frame, cost(values))
        made = function(*values)
        # The result costs the server nothing, but us memory.
        if (type(made) is str or type(made) is list) and len(made) > SMALL:
            charge(frame, len(made) // 10)
        return made

    return run


def optional_or(left: Run, right: Run, *, whole: bool) -> Run:
    """`a.or(b)`, or with `whole` false `a.orValue(b)`."""

    def run(frame: Frame) -> Value:
        value = left(frame)
        if type(value) is not OptionalValue:
            raise no_overload()
        if value is NONE:
            return right(frame)
        return value if whole else value.value

    return run


def optional_map(target: Run, slot: int, body: Run, *, wrap: bool) -> Run:
    """`optFlatMap`, or with `wrap` `optMap`.

    The API server evaluates the target once for its presence, and again for its value.
    """
    has_value, value_of = MEMBERS["hasValue"], MEMBERS["value"]

    def run(frame: Frame) -> Value:
        before = frame[0]
        value = target(frame)
        if not has_value(value):
            return NONE
        charge(frame, before - frame[0])
        frame[slot] = value_of(value)
        made = body(frame)
        return OptionalValue(made) if wrap else made

    return run


def sort_by(target: Run, slot: int, keys_of: Run) -> Run:
    """`sortBy`, by the keys of all elements."""

    def run(frame: Frame) -> Value:
        values = frame[slot] = target(frame)
        keys = keys_of(frame)
        if not is_list(values):
            raise unknown_operator("@sortByAssociatedKeys", values)
        # Elements with equal keys are compared.
        charge(frame, 3 * size_of(keys) ** 2 + weight_of(values))
        return sort_by_keys(values, elements_of(keys))

    return run


def _logical(left: Run, right: Run, *, deciding: bool) -> Run:
    def run(frame: Frame) -> Value:
        failed: EvaluationError | None = None
        try:
            value = left(frame)
            if value is deciding:
                return deciding
            if value is not True and value is not False:
                failed = no_overload()
        except EvaluationError as error:
            failed = error
        value = right(frame) if failed is None else _either(right, frame, failed)
        if value is deciding:
            return deciding
        if failed is not None:
            raise failed
        if value is not True and value is not False:
            raise no_overload()
        return not deciding

    return run


def _either(right: Run, frame: Frame, failed: EvaluationError) -> Value:
    """The right side of && or ||, when the left one has already failed."""
    try:
        return right(frame)
    except EvaluationError:
        raise failed from None


def _and(left: Run, right: Run) -> Run:
    return _logical(left, right, deciding=False)


def _or(left: Run, right: Run) -> Run:
    return _logical(left, right, deciding=True)


def _conditional(condition: Run, yes: Run, no: Run) -> Run:
    def run(frame: Frame) -> Value:
        value = condition(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        raise no_overload()

    return run


def _not(operand: Run) -> Run:
    def run(frame: Frame) -> Value:
        value = operand(frame)
        if value is True or value is False:
            return not value
        raise no_overload()

    return run


def _negative(operand: Run) -> Run:
    return lambda frame: negate(operand(frame))


def _charge_comparison(frame: Frame, one: Value, two: Value) -> None:
    cost = len(one) if type(one) is str else _EQUALITY((one, two))
    if cost > SMALL:
        charge(frame, cost)


def _equals(left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Value:
        one, two = left(frame), right(frame)
        kind = type(one)
        if kind is int and type(two) is int:
            return one == two
        _charge_comparison(frame, one, two)
        return equal(one, two)

    return run


def _differs(left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Value:
        one, two = left(frame), right(frame)
        _charge_comparison(frame, one, two)
        try:
            return not equal(one, two)
        except EvaluationError:
            return True

    return run


def _relation(name: str) -> Callable[[Run, Run], Run]:
    holds = RELATIONS[name]

    def compiled(left: Run, right: Run) -> Run:
        def run(frame: Frame) -> Value:
            one, two = left(frame), right(frame)
            kind = type(one)
            if kind is int and type(two) is int:
                return holds(one, two)
            size = held_size(one)
            if size > SMALL:
                charge(frame, size)
            if kind not in ORDERED:
                raise unknown_operator(name, one)
            return holds(compare(one, two), 0)

        return run

    return compiled


def _arithmetic(name: str) -> Callable[[Run, Run], Run]:
    operate, cost = BINARY[name], cost_of(name)

    def compiled(left: Run, right: Run) -> Run:
        def run(frame: Frame) -> Value:
            one = left(frame)
            try:
                two = right(frame)
            except EvaluationError:
                charge(frame, held_size(one) // 10)
                raise
            if type(one) is not int and held_size(one) + held_size(two) > SMALL:
                charge(frame, cost((one, two)))
            return operate(one, two)

        return run

    return compiled


def in_container(value: Run, container: Run) -> Run:
    """`value in container`."""

    def run(frame: Frame) -> Value:
        one, two = value(frame), container(frame)
        if is_list(two):
            charge(frame, _MEMBERSHIP((one, two)))
        return contains(two, one)

    return run


OPERATORS: Final[Mapping[str, Callable[..., Run]]] = {
    Op.AND: _and,
    Op.OR: _or,
    Op.CONDITIONAL: _conditional,
    Op.NOT: _not,
    Op.NEGATE: _negative,
    Op.EQUALS: _equals,
    Op.NOT_EQUALS: _differs,
    Op.IN: in_container,
    **{name: _relation(name) for name in RELATIONS},
    **{name: _arithmetic(name) for name in BINARY},
}
