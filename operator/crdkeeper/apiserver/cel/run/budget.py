"""The cost limits of an evaluation.

The server counts the actual cost of an evaluation and stops it at a limit (cel-go interpreter/runtimecost.go,
the constants of k8s.io/apiserver pkg/apis/cel). This module counts an upper bound instead: constant costs in
advance, those that depend on sizes as they occur. Below the limit the server certainly completes; above, the
evaluation ends as Indeterminate, or is counted exactly (`cel.counting`). The bound also limits our own time
and memory.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.cel.library.strings import MAX_TEXT
from crdkeeper.apiserver.cel.run.weights import all_pairs, comparison, search, weight_of
from crdkeeper.apiserver.cel.syntax.macros import SORT_BY_KEYS
from crdkeeper.apiserver.cel.syntax.nodes import Op
from crdkeeper.apiserver.cel.values.patterns import matching_cost
from crdkeeper.apiserver.cel.values.sizes import held_size, size_of
from crdkeeper.apiserver.cel.values.values import Indeterminate, ListValue, MapValue, Value, is_list

CALL_LIMIT: Final = 1_000_000
"""The cost at which the server stops an evaluation (PerCallLimit)."""
OBJECT_LIMIT: Final = 10_000_000
"""The cost at which the server stops checking an object (RuntimeCELCostBudget)."""

EXHAUSTED: Final = "the evaluation may cost more than the API server allows"
SMALL: Final = 64
"""The constant cost of a call covers sizes up to this."""
CONSTANT_CALL: Final = 8
"""The maximum cost of a call with small operands."""
LIST_CALL: Final = 3
"""What a call that makes a list costs beyond that."""
SORT_BY: Final = 14
"""The constant cost of sortBy: its variables, a map, and a call that makes a list."""
RESULT: Final = 2
"""The cost of a comprehension's result."""
LIST_COST: Final = 10
MAP_COST: Final = 30
ITERATION: Final = 16
"""The cost of a comprehension's iteration without its parts: conditions, accumulator, a list of one."""
_OF_DOUBLE: Final = 317
"""The characters of a double in a formatted list at most: a sign, and what is on both sides of the dot."""

Frame = list[Any]
"""The remaining budget, then the variables."""


class Account:
    """The cost of all evaluations for one object, which the server limits too."""

    __slots__ = ("exhausted", "left", "most")

    def __init__(self, limit: int = OBJECT_LIMIT, most: int | None = None) -> None:
        """`most` is what remains if all previous evaluations cost nothing; by default it is the limit."""
        self.left = limit
        self.most = limit if most is None else most
        self.exhausted = False
        """Whether an evaluation has ended because it may cost too much."""


def charge(frame: Frame, cost: int) -> None:
    """Take a cost from the budget. Raises Indeterminate when it is used up."""
    frame[0] -= cost
    if frame[0] < 0:
        raise Indeterminate(EXHAUSTED)


def _linear(args: Sequence[Value]) -> int:
    return sum(map(held_size, args))


def _product(args: Sequence[Value]) -> int:
    one, two = (held_size(each) for each in args[:2])
    return (one // 10 + 2) * (two // 4 + 2)


def _matching(args: Sequence[Value], *, compiles: bool = False) -> int:
    text, pattern = args[0], args[1]
    known = isinstance(text, str) and isinstance(pattern, str)
    ours = matching_cost(text, pattern, compiles=compiles) if known else 0
    return max(_product(args), ours)


def _compiling(args: Sequence[Value]) -> int:
    """A loop may have another pattern each time."""
    return _matching(args, compiles=True)


def _quadratic(args: Sequence[Value]) -> int:
    return LIST_CALL + 3 * size_of(args[0]) ** 2


def _equality(args: Sequence[Value]) -> int:
    return held_size(args[0]) + comparison(args[0], args[1])


def _membership(args: Sequence[Value]) -> int:
    return search(args[0], args[1]) if is_list(args[1]) else 0


def _addition(args: Sequence[Value]) -> int:
    """Sets and lists with keys are merged element by element."""
    size = held_size(args[0]) + held_size(args[1])
    return size if isinstance(args[0], ListValue) else size // 10


def _distinct(args: Sequence[Value]) -> int:
    return max(_quadratic(args), size_of(args[0]) * weight_of(args[0]))


def _sort_by(args: Sequence[Value]) -> int:
    """Without the order of the keys: elements with equal ones are compared."""
    return _linear(args) + weight_of(args[0])


def _sets(args: Sequence[Value]) -> int:
    """The sizes count even if the arguments are no lists, and the call fails."""
    return 2 * max(all_pairs(args[0], args[1]), size_of(args[0]) * size_of(args[1]))


def _contents(args: Sequence[Value], of_double: int = 0) -> tuple[int, int]:
    """How many values lists and maps are, with all that is in them, and how many characters these have.

    The server finds two values for each field that CEL does not see: no key, and an error at it. More values
    than a call may cost are not counted: an expression can make one that has another one twice, and so on.
    """
    values = characters = 0
    waiting = list(args)
    while waiting and values <= CALL_LIMIT:
        value = waiting.pop()
        values += 1
        if type(value) is str or type(value) is bytes:
            characters += len(value)
        elif type(value) is float:
            characters += of_double
        elif type(value) is list:
            waiting += value
        elif isinstance(value, ListValue):
            waiting += value.elements()
        elif isinstance(value, MapValue):
            keys = value.key_list()
            waiting += keys
            waiting += [value.find(key) for key in keys]
            values += 2 * (len(value) - len(keys))
    return values, characters


def _traversal(args: Sequence[Value]) -> int:
    return sum(_contents(args))


def _search(args: Sequence[Value]) -> int:
    found = _traversal(args)
    if len(args) > 1:
        found += search(args[1], args[0]) if is_list(args[0]) else comparison(args[0], args[1])
    return found


def _format(args: Sequence[Value]) -> int:
    """Based on the longest of the formats' patterns."""
    return 300 * (size_of(args[1]) // 10 + 1) if len(args) > 1 else 0


def _range(args: Sequence[Value]) -> int:
    return LIST_CALL + (args[0] if type(args[0]) is int and args[0] > 0 else 1)


def _part(args: Sequence[Value]) -> int:
    return LIST_CALL + _linear(args)


def _join(args: Sequence[Value]) -> int:
    """The separator is read as often as it is written."""
    separators = size_of(args[0]) * size_of(args[1]) if len(args) > 1 else 0
    return _traversal(args) + separators // 5


def _display(args: Sequence[Value]) -> int:
    """The text has all that is in the values, as often as they have it. Raises Indeterminate."""
    values, characters = _contents(args[-1:], _OF_DOUBLE)
    if values > CALL_LIMIT or characters > MAX_TEXT:
        raise Indeterminate(f"a text that may have more than {MAX_TEXT:,} characters")
    return _linear(args) + values + characters // 10


def _flatten(args: Sequence[Value]) -> int:
    """What is in the elements costs the server nothing."""
    depth = args[1] if len(args) > 1 and type(args[1]) is int else 1
    return LIST_CALL + weight_of(args[0]) + max(depth, 1) * size_of(args[0])


_COSTS: Final[Mapping[str, Callable[[Sequence[Value]], int]]] = {
    Op.EQUALS: _equality,
    Op.NOT_EQUALS: _equality,
    Op.IN: _membership,
    Op.ADD: _addition,
    "matches": _compiling,
    "find": _compiling,
    "findAll": _compiling,
    "contains": _product,
    "sort": _quadratic,
    SORT_BY_KEYS: _sort_by,
    "distinct": _distinct,
    "sets.contains": _sets,
    "sets.intersects": _sets,
    "sets.equivalent": _sets,
    "isSorted": _traversal,
    "sum": _traversal,
    "min": _traversal,
    "max": _traversal,
    "indexOf": _search,
    "lastIndexOf": _search,
    "includes": _search,
    "join": _join,
    "format": _display,
    "slice": _part,
    "reverse": _part,
    "flatten": _flatten,
    "lists.range": _range,
    "validate": _format,
}


def cost_of(function: str, *, constant_pattern: bool = False) -> Callable[[Sequence[Value]], int]:
    """An upper bound of a call's cost beyond its constant part, by its arguments.

    `constant_pattern` says that it is a match, and that its pattern is the same each time.
    """
    if constant_pattern:
        return _matching
    return _COSTS.get(function, _linear)
