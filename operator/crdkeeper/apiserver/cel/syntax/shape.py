"""The shape of syntax trees: chains of `&&` and `||` remain flat, and no tree is deeper than cel-go's.

An expansion can have a subtree twice, so that a short text makes a large tree.
"""

from typing import Final

from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    Comprehension,
    Expr,
    Macro,
    Op,
    Select,
    parts,
)

MAX_DEPTH: Final = 250
"""How many grammar rules can be open at once."""


def balanced(function: str, terms: list[Expr], offsets: list[int]) -> Expr:
    """The tree that cel-go makes of a chain of `&&` or `||`: halved repeatedly, so that it remains flat."""
    if len(terms) == 1:
        return terms[0]
    return _balanced_part(function, terms, offsets, 0, len(offsets) - 1)


def _balanced_part(function: str, terms: list[Expr], offsets: list[int], low: int, high: int) -> Expr:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced_part(function, terms, offsets, low, middle - 1)
    right = (
        terms[middle + 1] if middle == high else _balanced_part(function, terms, offsets, middle + 1, high)
    )
    return Call(offsets[middle], function, (left, right))


_WEIGHTLESS = frozenset((Op.AND, Op.OR, Op.NOT, Op.NEGATE))


def depth_exceeded(tree: Expr) -> bool:
    """Whether cel-go's walk over the parsed text would exceed its depth limit."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, Select | Macro):
            # has(a.b) contains its selection in the source.
            depth += 1
        elif isinstance(node, Call) and (
            node.target is not None or (node.function[:1] in "_@" and node.function not in _WEIGHTLESS)
        ):
            depth += 1
        if depth > MAX_DEPTH:
            return True
        stack.extend((each, depth) for each in parts(node))
    return False


def expanded_size(tree: Expr) -> int:
    """How many nodes there are with all expansions, counting a subtree wherever it occurs.

    Each link of a chain of optMap doubles them, but the time for this grows with the text only.
    """
    sizes: dict[Expr, int] = {}
    stack = [tree]
    while stack:
        node = stack[-1]
        inner = _expanded_parts(node)
        unknown = [each for each in inner if each not in sizes]
        if unknown:
            stack += unknown
        else:
            sizes[stack.pop()] = 1 + sum(sizes[each] for each in inner)
    return sizes[tree]


def _expanded_parts(node: Expr) -> list[Expr]:
    if isinstance(node, Macro):
        return [node.expansion]
    if isinstance(node, Comprehension):
        return [node.range, node.init, node.condition, node.step, node.result]
    return parts(node)
