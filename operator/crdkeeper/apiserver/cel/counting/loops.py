"""The folds that macros expand to, counted iteration by iteration.

Follows evalFold (cel-go: interpreter/interpretable.go).
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from crdkeeper.apiserver.cel.counting.attributes import Instruction
from crdkeeper.apiserver.cel.counting.tracker import TOO_LONG, UNSET, Tracker
from crdkeeper.apiserver.cel.run.qualifiers import go_type
from crdkeeper.apiserver.cel.values.containers import CelMap
from crdkeeper.apiserver.cel.values.display import displayed
from crdkeeper.apiserver.cel.values.overloads import unsupported
from crdkeeper.apiserver.cel.values.unordered import Unordered, made_from, unknown_order
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    EvaluationError,
    Indeterminate,
    MapValue,
    Value,
    elements_of,
    is_list,
    looped_keys,
    read,
)


class Fold(Instruction):
    """A loop with an accumulator. Its parts have a cost, the loop itself does not."""

    __slots__ = ("_accumulator", "_condition", "_range", "_result", "_step", "_variables", "_work")

    def __init__(
        self,
        range_: Instruction,
        variables: Sequence[int],
        accumulator: int,
        parts: tuple[Instruction, Instruction, Instruction],
        work: int,
    ) -> None:
        """`variables` and `accumulator` are places; `parts` the condition, the step and the result; `work` is
        what a turn takes us.
        """
        self._range = range_
        self._variables = variables
        self._accumulator = accumulator
        self._condition, self._step, self._result = parts
        self._work = work

    def run(self, tracker: Tracker) -> Value:
        tracker.slots[self._accumulator] = UNSET
        values = self._range.run(tracker)
        return values if isinstance(values, EvaluationError) else self._folded(tracker, values)

    def _folded(self, tracker: Tracker, values: Value) -> Value:
        slots, condition, step, accumulator = tracker.slots, self._condition, self._step, self._accumulator
        turns = self._turns(values)
        if isinstance(turns, EvaluationError):
            return turns
        unordered = type(values) is Unordered or (isinstance(values, MapValue) and len(values) > 1)
        made: Value = UNSET
        tracker.unordered += unordered
        for each in turns:
            tracker.work -= self._work
            if tracker.work < 0:
                raise Indeterminate(TOO_LONG)
            for slot, value in zip(self._variables, each, strict=True):
                slots[slot] = value
            if condition.run(tracker) is False:
                break
            made = slots[accumulator] = step.run(tracker)
            if unordered and isinstance(made, EvaluationError):
                tracker.by_chance = True
        if unordered and made is not UNSET and self._would_end(tracker):
            tracker.by_chance = True
        tracker.unordered -= unordered
        result = self._result.run(tracker)
        return made_from(values, result) if type(result) is list and result is made else result

    def _would_end(self, tracker: Tracker) -> bool:
        """Whether the loop ends before another iteration: then it could end earlier in another order."""
        return self._condition.run(Tracker(tracker.slots, sys.maxsize, self._work)) is False

    def _turns(self, values: Value) -> Iterable[tuple[Any, ...]] | EvaluationError:
        """The values of the variables for each iteration."""
        if len(self._variables) == 1:
            if is_list(values):
                return zip(elements_of(values), strict=True)
            if isinstance(values, MapValue):
                return zip(looped_keys(values), strict=True)
            return EvaluationError(f"got '{go_type(values)}', expected iterable type")
        if isinstance(values, MapValue):
            return [(key, values.find(key)) for key in looped_keys(values)]
        if type(values) is Unordered:
            # Which index an element has is unknown.
            return [(unknown_order(), each) for each in values.elements()]
        if is_list(values):
            return enumerate(elements_of(values))
        return EvaluationError(f"unsupported comprehension range type: {go_type(values)}")


def appended(target: Value, added: Value) -> Value:
    """The list of a loop with an iteration's result, changed in place (types.NewMutableList)."""
    target += added
    return target


def inserted(target: Value, *entry: Value) -> Value:
    """The map of a loop with a key and a value, or with all entries of a map, added.

    Raises EvaluationError for a key that it already has.
    """
    pairs: Iterator[tuple[Value, Value]]
    if len(entry) == 2:
        pairs = iter((entry,))
    else:
        (entries,) = entry
        if not isinstance(entries, MapValue):
            raise unsupported("cel.@mapInsert", (target, entries))
        pairs = ((key, read(entries.find(key))) for key in looped_keys(entries))
    made: CelMap = target
    for key, value in pairs:
        if made.find(key) is not MISSING:
            raise EvaluationError(f"insert failed: key {displayed(key)} already exists")
        made.put(key, value)
    return made
