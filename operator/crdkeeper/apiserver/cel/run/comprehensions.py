"""The macros over lists and maps, executed as loops.

Errors in a predicate or transformation go through the accumulator as in cel-go's expansions of the macros: in
`all` and `exists` they count only if no other element decides, in `map` the first error remains, and the last
one if a predicate fails in `filter` or `exists_one`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from crdkeeper.apiserver.cel.run.budget import Frame, charge
from crdkeeper.apiserver.cel.run.qualifiers import go_type
from crdkeeper.apiserver.cel.values.containers import CelMap
from crdkeeper.apiserver.cel.values.display import displayed
from crdkeeper.apiserver.cel.values.overloads import unsupported
from crdkeeper.apiserver.cel.values.unordered import Unordered, has_no_order, made_from, unknown_order
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    EvaluationError,
    MapValue,
    Value,
    elements_of,
    is_list,
    looped_keys,
    no_overload,
    read,
)

Run: TypeAlias = Callable[[Frame], Value]


class Loop:
    """Common to all macros: the range, the slots of the variables, and the cost of one iteration."""

    __slots__ = ("cost", "slots", "target")

    def __init__(self, target: Run, slots: tuple[int, ...], cost: int) -> None:
        self.target = target
        self.slots = slots
        self.cost = cost

    def turns(self, frame: Frame, values: Value) -> Iterator[Value]:
        """Set the variables for each element or entry in turn, and yield the first of them."""
        if len(self.slots) == 2:
            yield from self._pairs(frame, values)
            return
        if is_list(values):
            items = elements_of(values)
        elif isinstance(values, MapValue):
            items = looped_keys(values)
        else:
            raise EvaluationError(f"got '{go_type(values)}', expected iterable type")
        (slot,) = self.slots
        cost = self.cost
        for each in items:
            charge(frame, cost)
            frame[slot] = each
            yield each

    def _pairs(self, frame: Frame, values: Value) -> Iterator[Value]:
        first, second = self.slots
        pairs: Iterator[tuple[Any, Value]]
        if type(values) is Unordered:
            # Which index an element has is unknown.
            pairs = iter([(unknown_order(), each) for each in values.elements()])
        elif is_list(values):
            pairs = iter(enumerate(elements_of(values)))
        elif isinstance(values, MapValue):
            pairs = iter([(key, values.find(key)) for key in looped_keys(values)])
        else:
            raise EvaluationError(f"unsupported comprehension range type: {go_type(values)}")
        for key, value in pairs:
            charge(frame, self.cost)
            frame[first], frame[second] = key, value
            yield key


def _differ(one: EvaluationError | None, other: EvaluationError) -> bool:
    return one is not None and one.message != other.message


def _next(
    failed: EvaluationError | None, error: EvaluationError, values: Value, kept: EvaluationError
) -> EvaluationError:
    """Which of two errors the server keeps. Raises Indeterminate if this depends on a random order."""
    if _differ(failed, error) and has_no_order(values):
        raise unknown_order()
    return kept


def _quantifier(loop: Loop, body: Run, deciding: bool) -> Run:
    def run(frame: Frame) -> Value:
        values = loop.target(frame)
        failed: EvaluationError | None = None
        several = False
        for _ in loop.turns(frame, values):
            try:
                value = body(frame)
                if value is deciding:
                    return deciding
                if value is not True and value is not False:
                    raise no_overload()
            except EvaluationError as error:
                several = several or _differ(failed, error)
                failed = failed or error
        if failed is None:
            return not deciding
        raise unknown_order() if several and has_no_order(values) else failed

    return run


def for_all(loop: Loop, predicate: Run | None, body: Run) -> Run:
    """`all`."""
    return _quantifier(loop, body, deciding=False)


def exists(loop: Loop, predicate: Run | None, body: Run) -> Run:
    """`exists`."""
    return _quantifier(loop, body, deciding=True)


def _holds(predicate: Run | None, frame: Frame) -> bool:
    if predicate is None:
        return True
    value = predicate(frame)
    if value is True or value is False:
        return bool(value)
    raise no_overload()


def exists_one(loop: Loop, predicate: Run | None, body: Run) -> Run:
    """`exists_one`."""

    def run(frame: Frame) -> Value:
        values = loop.target(frame)
        count = 0
        failed: EvaluationError | None = None
        for _ in loop.turns(frame, values):
            try:
                count += _holds(body, frame)
            except EvaluationError as error:
                failed = _next(failed, error, values, error)
        if failed is not None:
            raise failed
        return count == 1

    return run


def _collect(
    loop: Loop,
    predicate: Run | None,
    frame: Frame,
    add: Callable[[Value], None],
    *,
    goes_on: bool = True,
) -> Value:
    """Add each iteration's result; returns the value that the loop iterated over.

    `goes_on` says whether the server evaluates the results of the iterations after an error, too.
    """
    values = loop.target(frame)
    failed: EvaluationError | None = None
    for each in loop.turns(frame, values):
        try:
            if not _holds(predicate, frame):
                continue
        except EvaluationError as error:
            failed = _next(failed, error, values, error)
            continue
        if failed is None or goes_on or has_no_order(values):
            try:
                add(each)
            except EvaluationError as error:
                failed = _next(failed, error, values, failed or error)
    if failed is not None:
        raise failed
    return values


def to_list(loop: Loop, predicate: Run | None, body: Run) -> Run:
    """`map` and `transformList`."""

    def run(frame: Frame) -> Value:
        made: list[Value] = []
        values = _collect(loop, predicate, frame, lambda _: made.append(body(frame)))
        return made_from(values, made)

    return run


def filtered(loop: Loop, predicate: Run | None, body: Run) -> Run:
    """`filter`."""

    def run(frame: Frame) -> Value:
        made: list[Value] = []
        values = _collect(loop, body, frame, lambda each: made.append(read(each)))
        return made_from(values, made)

    return run


def _insert(target: CelMap, key: Value, value: Value) -> None:
    if target.find(key) is not MISSING:
        raise EvaluationError(f"insert failed: key {displayed(key)} already exists")
    target.put(key, value)


def to_map(loop: Loop, predicate: Run | None, body: Run) -> Run:
    """`transformMap`."""

    def run(frame: Frame) -> Value:
        made = CelMap()
        # The call that inserts has three arguments: after the first one, an error, none is evaluated.
        _collect(loop, predicate, frame, lambda key: _insert(made, read(key), body(frame)), goes_on=False)
        return made

    return run


def to_entries(loop: Loop, predicate: Run | None, body: Run) -> Run:
    """`transformMapEntry`."""

    def run(frame: Frame) -> Value:
        made = CelMap()

        def add(_: Value) -> None:
            entries = body(frame)
            if not isinstance(entries, MapValue):
                raise unsupported("cel.@mapInsert", (made, entries))
            for key in looped_keys(entries):
                _insert(made, key, read(entries.find(key)))

        _collect(loop, predicate, frame, add)
        return made

    return run


LOOPS: Final[dict[str, Callable[[Loop, Run | None, Run], Run]]] = {
    "all": for_all,
    "exists": exists,
    "exists_one": exists_one,
    "map": to_list,
    "filter": filtered,
    "transformList": to_list,
    "transformMap": to_map,
    "transformMapEntry": to_entries,
}
