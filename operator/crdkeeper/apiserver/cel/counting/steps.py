"""The instructions of a counted evaluation, except attributes.

A step returns an error as a value, like cel-go's instructions, because handling it has a cost. A call is
charged when all its arguments have been evaluated, whether or not they are errors. Follows cel-go:
interpreter/interpretable.go, and Observe of interpreter/runtimecost.go for the cost of each step. Observe's
stack of values matters only in one way: an argument that was not evaluated is not on it.
"""

from collections.abc import Callable, Sequence

from crdkeeper.apiserver.cel.counting.attributes import Instruction
from crdkeeper.apiserver.cel.counting.prices import BY_RESULT, LIST, MAP, Price
from crdkeeper.apiserver.cel.counting.tracker import Tracker
from crdkeeper.apiserver.cel.run.budget import SMALL
from crdkeeper.apiserver.cel.values.containers import NONE, CelMap, OptionalValue
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Value, no_overload

Work = Callable[[Sequence[Value]], int]
"""The work of a call, by its arguments."""


class ConstantStep(Instruction):
    """A value that is known in advance: it costs nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def run(self, tracker: Tracker) -> Value:
        return self.value


class Logic(Instruction):
    """`&&`, or `||`: the operators themselves cost nothing."""

    __slots__ = ("_deciding", "_terms")

    def __init__(self, terms: Sequence[Instruction], *, deciding: bool) -> None:
        self._terms = terms
        self._deciding = deciding

    def run(self, tracker: Tracker) -> Value:
        result: Value = not self._deciding
        for each in self._terms:
            value = each.run(tracker)
            if value is self._deciding:
                return value
            if type(value) is not bool and not isinstance(result, EvaluationError):
                result = value if isinstance(value, EvaluationError) else no_overload()
        return result


class Invocation(Instruction):
    """A call of a function or operator."""

    __slots__ = ("_all", "_args", "_function", "_late", "_price", "_strict", "_work")

    def __init__(
        self,
        args: Sequence[Instruction],
        function: Callable[..., Value],
        price: Price,
        work: Work | None,
        *,
        evaluates_all: bool = True,
        strict: bool = True,
    ) -> None:
        """`evaluates_all` says whether the arguments after a failing one are evaluated; a function that is
        not `strict` accepts errors as arguments.
        """
        self._args = args
        self._function = function
        self._price = price
        self._late = price in BY_RESULT
        self._work = work
        self._all = evaluates_all
        self._strict = strict

    def run(self, tracker: Tracker) -> Value:
        values: list[Value] = []
        failed: EvaluationError | None = None
        for each in self._args:
            value = each.run(tracker)
            values.append(value)
            if isinstance(value, EvaluationError) and self._strict:
                failed = failed or value
                if not self._all and len(values) < len(self._args):
                    return failed
        if self._late:
            result = self._called(tracker, values) if failed is None else failed
            tracker.charge(self._price(values, result))
            return result
        # The result of the call does not matter once the cost exceeds the limit.
        tracker.charge(self._price(values, None))
        return self._called(tracker, values) if failed is None else failed

    def _called(self, tracker: Tracker, values: list[Value]) -> Value:
        if self._work is not None:
            tracker.spend(self._work(values))
        try:
            made = self._function(*values)
        except EvaluationError as error:
            return error
        # A loop lengthens its result in place.
        if (type(made) is str or type(made) is list) and len(made) > SMALL and made is not values[0]:
            tracker.spend(len(made) // 10)
        return made


class Look(Instruction):
    """`x in [constants]`, a set lookup, which costs nothing."""

    __slots__ = ("_argument", "_found")

    def __init__(self, argument: Instruction, found: Callable[[Value], bool]) -> None:
        self._argument = argument
        self._found = found

    def run(self, tracker: Tracker) -> Value:
        value = self._argument.run(tracker)
        return value if isinstance(value, EvaluationError) else self._found(value)


class Alternative(Instruction):
    """`a.or(b)`, or with `whole` false `a.orValue(b)`, which cost nothing themselves."""

    __slots__ = ("_left", "_right", "_whole")

    def __init__(self, left: Instruction, right: Instruction, *, whole: bool) -> None:
        self._left = left
        self._right = right
        self._whole = whole

    def run(self, tracker: Tracker) -> Value:
        value = self._left.run(tracker)
        if type(value) is not OptionalValue:
            return value if isinstance(value, EvaluationError) else no_overload()
        if value is NONE:
            return self._right.run(tracker)
        return value if self._whole else value.value


class NewList(Instruction):
    """A list, of which at least one element is not constant."""

    __slots__ = ("_elements", "_optional")

    def __init__(self, elements: Sequence[Instruction], optional: frozenset[int]) -> None:
        self._elements = elements
        self._optional = optional

    def run(self, tracker: Tracker) -> Value:
        made = self._made(tracker)
        tracker.charge(LIST)
        return made

    def _made(self, tracker: Tracker) -> Value:
        made: list[Value] = []
        for at, each in enumerate(self._elements):
            value = each.run(tracker)
            if isinstance(value, EvaluationError):
                return value
            if at in self._optional:
                if value is NONE:
                    continue
                value = _held(value)
            made.append(value)
        return made


class NewMap(Instruction):
    """A map, of which at least one key or value is not constant: key, value, and whether it is optional."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Sequence[tuple[Instruction, Instruction, bool]]) -> None:
        self._entries = entries

    def run(self, tracker: Tracker) -> Value:
        made = self._made(tracker)
        tracker.charge(MAP)
        return made

    def _made(self, tracker: Tracker) -> Value:
        made = CelMap()
        for key_step, value_step, optional in self._entries:
            key = key_step.run(tracker)
            if isinstance(key, EvaluationError):
                return key
            value = value_step.run(tracker)
            if isinstance(value, EvaluationError):
                return value
            if optional:
                if value is NONE:
                    made.drop(key)
                    continue
                value = _held(value)
            made.put(key, value)
        return made


def _held(value: Value) -> Value:
    if type(value) is not OptionalValue:
        raise Indeterminate("the error of an optional element that is not optional")
    return value.value
