"""Evaluates a JSONPath on an object like client-go with missing keys allowed (util/jsonpath/jsonpath.go).

Go iterates over maps in random order, so the first of several results may vary. Each result records the
choices that led to it, and `first` returns all that may come first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from crdkeeper.apiserver.jsonpath.comparison import Incomparable, Native, compare
from crdkeeper.apiserver.jsonpath.nodes import (
    Block,
    Constant,
    Descent,
    Field,
    Filter,
    Keyword,
    Node,
    PathUnion,
    PlainText,
    Slice,
    Template,
    Wildcard,
)

MAX_STEPS: Final = 200_000
"""Values that one evaluation visits at most; a path such as `..[*]..[*]` multiplies them."""

Order = tuple[int | str, ...]
"""The position of a result among others: numbers are ordered, and of keys any may be first."""


class EvaluationFailed(Exception):
    """Raised where Go ends the evaluation with an error."""


class Unbounded(Exception):
    """The evaluation would visit too many values; the API server's result is left open."""


class Stateful(Exception):
    """The result depends on what the API server has evaluated before: a loop changes Go's template."""


class Chance(Exception):
    """The result depends on the order in which Go iterates over a map."""


class Selected(NamedTuple):
    """A value that a path selects."""

    order: Order
    value: Any


class _Stopped(Exception):
    """An error inside a block, with Go's state when it occurs."""

    def __init__(self, results: list[Selected]) -> None:
        super().__init__()
        self.results = results


@dataclass(slots=True)
class _Steps:
    left: int

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise Unbounded


def first(template: Template, data: Any, limit: int = MAX_STEPS) -> list[Any]:
    """The values of which one is the first result; empty if there is no result.

    Raises EvaluationFailed, Unbounded, Stateful, Chance. Numbers are int for int64 and float for float64.
    `limit` is the number of values to visit before it is Unbounded.
    """
    loops = any(_loops(each) for each in template if isinstance(each, tuple))
    if loops and len(template) > 1:
        raise Stateful
    steps = _Steps(limit)
    found: list[list[Selected]] = []
    for part in template:
        try:
            if isinstance(part, PlainText):
                found.append([Selected((), part.text)])
            else:
                found.append(_block([Selected((), data)], part, steps))
        except _Stopped:
            raise EvaluationFailed from None
    # A loop discards everything of the block in which it starts.
    return [] if loops or not found else [each.value for each in _foremost(found[0])]


def _loops(block: Block) -> bool:
    for node in block:
        if node == Keyword("range"):
            return True
        inner: Iterable[Block] = ()
        if isinstance(node, Filter):
            inner = (node.left, node.right)
        elif isinstance(node, PathUnion):
            inner = node.branches
        if any(map(_loops, inner)):
            return True
    return False


def _foremost(results: Sequence[Selected]) -> Sequence[Selected]:
    depth = 0
    while len(results) > 1:
        # Those with the same choices so far; some may differ in keys, and each of these may be first.
        if any(isinstance(each.order[depth], str) for each in results):
            keys: dict[int | str, list[Selected]] = {}
            for each in results:
                keys.setdefault(each.order[depth], []).append(each)
            if len(keys) > 1:
                return [each for group in keys.values() for each in _foremost_from(group, depth + 1)]
        else:
            least = min(each.order[depth] for each in results if isinstance(each.order[depth], int))
            results = [each for each in results if each.order[depth] == least]
        depth += 1
    return results


def _foremost_from(results: Sequence[Selected], depth: int) -> Sequence[Selected]:
    return _foremost([Selected(each.order[depth:], each.value) for each in results])


def _block(results: list[Selected], block: Block, steps: _Steps) -> list[Selected]:
    for node in block:
        results = _walk(results, node, steps)
    return results


def _walk(results: list[Selected], node: Node, steps: _Steps) -> list[Selected]:
    steps.take(len(results) + 1)
    match node:
        case PlainText(text):
            return [Selected((), text)]
        case Constant(value):
            constant = Native(value) if type(value) is int else value
            return [Selected(each.order, constant) for each in results]
        case Field(name):
            return [
                Selected(each.order, each.value[name])
                for each in results
                if isinstance(each.value, dict) and name in each.value
            ]
        case Wildcard():
            return [below for each in results for below in _below(each, steps)]
        case Descent():
            return _descend(results, steps)
        case Slice():
            return _slice(results, node, steps)
        case Filter():
            return _filter(results, node, steps)
        case PathUnion(branches):
            return [
                Selected((i, *each.order), each.value)
                for i, branch in enumerate(branches)
                for each in _block(results, branch, steps)
            ]
        case Keyword("range"):
            return results
        case Keyword("end"):
            raise _Stopped([])
        case Keyword():
            raise _Stopped(results)


def _below(result: Selected, steps: _Steps) -> list[Selected]:
    order, value = result
    if isinstance(value, dict):
        steps.take(len(value))
        return [Selected((*order, key), each) for key, each in value.items()]
    if isinstance(value, list):
        steps.take(len(value))
        return [Selected((*order, i), each) for i, each in enumerate(value)]
    if isinstance(value, str):
        data = value.encode(errors="surrogatepass")
        steps.take(len(data))
        return [Selected((*order, i), Native(each)) for i, each in enumerate(data)]
    return []


def _descend(results: list[Selected], steps: _Steps) -> list[Selected]:
    found: list[Selected] = []
    waiting = results[::-1]
    while waiting:
        result = waiting.pop()
        if not isinstance(result.value, dict | list | str) or not result.value:
            continue
        # Values and intermediate containers count by the length of their order, which is copied.
        steps.take(1 + len(result.order) // 8)
        found.append(Selected((*result.order, 0), result.value))
        if not isinstance(result.value, str):
            below = _below(Selected((*result.order, 1), result.value), steps)
            waiting += reversed(below)
        else:
            steps.take(len(result.value) // 64)
    return found


def _slice(results: list[Selected], node: Slice, steps: _Steps) -> list[Selected]:
    chosen = [_chosen(each.value, node) for each in results]
    # At a slice of nothing Go returns, whatever lists or errors follow.
    if range(0) in chosen and len(results) > 1:
        steps.take(len(results))
        if any(isinstance(key, str) for key in chain(*(each.order for each in results))):
            raise Chance
    found: list[Selected] = []
    for each, indexes in zip(results, chosen, strict=True):
        if each.value is None:
            continue
        if indexes is None:
            raise _Stopped(results)
        if not indexes:
            return found
        steps.take(len(indexes))
        found += [Selected((*each.order, i), each.value[i]) for i in indexes]
    return found


def _chosen(value: Any, node: Slice) -> range | None:
    """The indexes that a slice selects of a list; None if Go fails."""
    if not isinstance(value, list):
        return None
    length = len(value)
    start, end = node.start or 0, length if node.end is None else node.end
    if start < 0:
        start += length
    if end < 0 or (end == 0 and node.single):
        end += length
    if start == end:
        return range(0)
    if not (0 <= start < length and 0 <= end <= length and start < end):
        return None
    if node.step is not None and node.step <= 0:
        return None
    return range(start, end, node.step or 1)


def _filter(results: list[Selected], node: Filter, steps: _Steps) -> list[Selected]:
    found: list[Selected] = []
    for each in results:
        if not isinstance(each.value, list):
            raise _Stopped(results)
        for i, entry in enumerate(each.value):
            if _passes(entry, node, results, found, steps):
                found.append(Selected((*each.order, i), entry))
    return found


def _passes(entry: Any, node: Filter, results: list[Selected], found: list[Selected], steps: _Steps) -> bool:
    start = [Selected((), entry)]
    if node.operator == "exists":
        try:
            return bool(_block(start, node.left, steps))
        except _Stopped as stopped:
            return bool(stopped.results)
    try:
        lefts = _block(start, node.left, steps)
        if not lefts:
            return False
        if len(lefts) > 1:
            raise _Stopped(results)
        rights = _block(start, node.right, steps)
    except _Stopped:
        raise _Stopped(results) from None
    if not rights:
        return False
    if len(rights) > 1:
        raise _Stopped(results)
    try:
        return compare(lefts[0].value, node.operator, rights[0].value)
    except Incomparable:
        raise _Stopped(found) from None
