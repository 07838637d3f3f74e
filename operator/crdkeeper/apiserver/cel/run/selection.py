"""Selections at run time: `a.b`, `a[b]`, `a.?b`, `a[?b]` and has(a.b), in chains like cel-go's attributes."""

from collections.abc import Sequence

from crdkeeper.apiserver.cel.run.budget import Frame
from crdkeeper.apiserver.cel.run.comprehensions import Run
from crdkeeper.apiserver.cel.run.qualifiers import checked_key, lookup, missing
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.values import MISSING, Value


def chain(
    root: Run, steps: Sequence[tuple[Run | None, Value, bool, int]], *, test: bool, branch: bool = False
) -> Run:
    """A value's field, then that field's field, and so on; with `test`, whether the last one is there.

    Each step has what computes its key, or the key; whether it is optional; and its place in the expression.
    The `branch` of a conditional is not tested for presence in an optional: its value is the optional itself
    (the attributes of a conditional in cel-go are resolved without evalTestOnly).
    """
    if not test and len(steps) == 1 and steps[0][0] is None and not steps[0][2]:
        return _selection(root, steps[0][1], steps[0][3])
    last = len(steps) - 1

    def run(frame: Frame) -> Value:
        value = root(frame)
        within_optional = type(value) is OptionalValue
        if within_optional:
            if value is NONE:
                return False if test and not branch else NONE
            value = value.value
        for at, (key_of, constant, optional, offset) in enumerate(steps):
            key = constant if key_of is None else checked_key(key_of(frame))
            found = lookup(value, key)
            within_optional = within_optional or optional
            if test and at == last and not (branch and within_optional):
                return found is not MISSING
            if found is MISSING:
                if not within_optional:
                    raise missing(value, key, offset)
                return False if test and not branch else NONE
            value = found
        return OptionalValue(value) if within_optional else value

    return run


def _selection(root: Run, key: Value, offset: int) -> Run:
    def run(frame: Frame) -> Value:
        value = root(frame)
        if type(value) is OptionalValue:
            if value is NONE:
                return NONE
            found = lookup(value.value, key)
            return NONE if found is MISSING else OptionalValue(found)
        found = lookup(value, key)
        if found is MISSING:
            raise missing(value, key, offset)
        return found

    return run
