"""What an expression reads: the variables in it, and the fields of them that it cannot do without."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    Expr,
    Identifier,
    Literal,
    Macro,
    Op,
    Select,
    parts,
)

_OPTIONAL: Final = (Op.OPT_INDEX, Op.OPT_SELECT)
_SELECTIONS: Final = (Op.INDEX, *_OPTIONAL)


@dataclass(frozen=True, slots=True)
class Reading:
    """A variable, and the path of fields that is read from it, up to the first one that may be absent."""

    name: str
    steps: tuple[str | int, ...]
    """Fields by their names in CEL, keys and indexes."""
    offsets: tuple[int, ...]
    """Where each step is in the expression."""
    optional: bool
    """Whether it asks for the variable's own field with `?`, so that the variable may be absent."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The steps without indexes."""
        return tuple(each for each in self.steps if isinstance(each, str))


def readings(tree: Expr) -> Iterator[Reading]:
    """Each use of a variable that no macro declares."""
    waiting: list[tuple[Expr, frozenset[str]]] = [(tree, frozenset())]
    while waiting:
        node, bound = waiting.pop()
        selections: list[Select | Call] = []
        current = node
        while True:
            if isinstance(current, Select):
                selections.append(current)
                current = current.operand
            elif isinstance(current, Call) and current.function in _SELECTIONS:
                selections.append(current)
                waiting.append((current.args[1], bound))
                current = current.args[0]
            else:
                break
        if isinstance(current, Identifier):
            name = current.name.removeprefix(".")
            if name != current.name or name not in bound:
                yield _reading(name, selections[::-1])
        else:
            waiting += _within(current, bound)


def _reading(name: str, selections: list[Select | Call]) -> Reading:
    steps: list[tuple[str | int, int]] = []
    for each in selections:
        if isinstance(each, Select):
            if each.test_only:
                break
            steps.append((each.field, each.offset))
        else:
            key = each.args[1]
            if each.function in _OPTIONAL or not isinstance(key, Literal):
                break
            if not isinstance(key.value, str | int):
                break
            steps.append((key.value, each.offset))
    first = selections[0] if selections else None
    optional = isinstance(first, Call) and first.function in _OPTIONAL
    return Reading(name, tuple(step for step, _ in steps), tuple(at for _, at in steps), optional)


def _within(node: Expr, bound: frozenset[str]) -> list[tuple[Expr, frozenset[str]]]:
    if isinstance(node, Macro):
        inside = bound | frozenset(node.variables)
        found = [(node.target, bound), (node.body, inside)]
        return found if node.filter is None else [*found, (node.filter, inside)]
    return [(each, bound) for each in parts(node)]
