"""The syntax tree of a CEL expression, shared by the checker, the cost estimate and the evaluator.

A tree has the nodes of cel-go's own: an operator is a `Call` of the function that cel-go names for it (`Op`),
`has(a.b)` is a `Select` with `test_only`, `a.?b` is a call of `Op.OPT_SELECT` with the field name as a
literal, and a chain of `&&` or `||` is a balanced tree of binary calls.

Macros (`all`, `exists`, `exists_one`, `existsOne`, `map`, `filter`, `transformList`, `transformMap`,
`transformMapEntry`, `optMap`, `optFlatMap`, `sortBy`; `cel.bind` is not enabled in Kubernetes) are `Macro`
nodes, with the parts that an evaluator needs: the target, the variable names, the filter and the body.
`expansion` is what cel-go makes of the macro, with the same subtrees: the type checker and the cost estimate
follow it, because the server's messages and costs are those of the expansion; an evaluator ignores it.
`Comprehension` occurs only in expansions.

An `offset` is the index of a code point in the source: of the token that the server reports (the dot of a
selection, the parenthesis of a call or macro, the bracket of an index, list or map, the operator, the colon
of an entry). Nodes are immutable, and are compared and hashed by identity.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Op(StrEnum):
    """The functions behind the operators, with cel-go's names (common/operators)."""

    CONDITIONAL = "_?_:_"
    AND = "_&&_"
    OR = "_||_"
    NOT = "!_"
    EQUALS = "_==_"
    NOT_EQUALS = "_!=_"
    LESS = "_<_"
    LESS_EQUALS = "_<=_"
    GREATER = "_>_"
    GREATER_EQUALS = "_>=_"
    ADD = "_+_"
    SUBTRACT = "_-_"
    MULTIPLY = "_*_"
    DIVIDE = "_/_"
    MODULO = "_%_"
    NEGATE = "-_"
    INDEX = "_[_]"
    OPT_INDEX = "_[?_]"
    OPT_SELECT = "_?._"
    IN = "@in"
    NOT_STRICTLY_FALSE = "@not_strictly_false"


ACCUMULATOR = "@result"
MAP_INSERT = "cel.@mapInsert"
UNUSED_VARIABLE = "#unused"


@dataclass(slots=True, eq=False)
class Literal:
    """A constant. `kind` is int, uint, double, string, bytes, bool or null, and tells 1, 1u, 1.0 apart."""

    offset: int
    kind: str
    value: int | float | str | bytes | bool | None


@dataclass(slots=True, eq=False)
class Identifier:
    """A name, with its leading dot if it has one."""

    offset: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    """`operand.field`, or with `test_only` the presence test `has(operand.field)`."""

    offset: int
    operand: "Expr"
    field: str
    test_only: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """A call of an operator or function; `target` precedes the dot of a member call."""

    offset: int
    function: str
    args: tuple["Expr", ...]
    target: "Expr | None" = None


@dataclass(slots=True, eq=False)
class ListLiteral:
    """`[a, ?b]`; `optional` has the indices of the elements with a question mark."""

    offset: int
    elements: tuple["Expr", ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapEntry:
    """`key: value` or `?key: value` of a map."""

    offset: int
    key: "Expr"
    value: "Expr"
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapLiteral:
    """`{k: v, ?k: v}`."""

    offset: int
    entries: tuple[MapEntry, ...]


@dataclass(slots=True, eq=False)
class StructField:
    """`name: value` or `?name: value` of a message."""

    offset: int
    name: str
    value: "Expr"
    optional: bool = False


@dataclass(slots=True, eq=False)
class StructLiteral:
    """`a.b.Type{field: value}`."""

    offset: int
    type_name: str
    fields: tuple[StructField, ...]


@dataclass(slots=True, eq=False)
class Comprehension:
    """cel-go's fold, as the macros expand to it. `variable2` is empty with one variable."""

    offset: int
    range: "Expr"
    variable: str
    variable2: str
    accumulator: str
    init: "Expr"
    condition: "Expr"
    step: "Expr"
    result: "Expr"


@dataclass(slots=True, eq=False)
class Macro:
    """A macro call.

    `name` is the macro's name (`exists_one` for `existsOne`). `variables` has one name, or two in the
    two-variable comprehensions: (index, element) of a list, (key, value) of a map. `filter` is the predicate
    of the longer forms of map, transformList, transformMap and transformMapEntry, else None. `body` is the
    predicate of all, exists, exists_one and filter, the sort key of sortBy, and the transformation of the
    others.
    """

    offset: int
    name: str
    target: "Expr"
    variables: tuple[str, ...]
    filter: "Expr | None"
    body: "Expr"
    expansion: "Expr" = field(repr=False)


Expr = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Macro | Comprehension
"""Any expression."""


def parts(node: Expr) -> list[Expr]:
    """The expressions directly within one, as written: those of a macro's call, not of its expansion."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return [*node.args, node.target] if node.target is not None else [*node.args]
    if isinstance(node, Macro):
        return [node.target, node.body, *([node.filter] if node.filter is not None else [])]
    if isinstance(node, ListLiteral):
        return [*node.elements]
    if isinstance(node, MapLiteral):
        return [part for entry in node.entries for part in (entry.key, entry.value)]
    if isinstance(node, StructLiteral):
        return [each.value for each in node.fields]
    return []


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in an expression: its position (a code point), and the server's message."""

    offset: int
    message: str


class CelDepthError(Exception):
    """An expression nested too deeply for Python's stack; the API server may accept it."""


class CelSyntaxError(Exception):
    """An expression that cannot be parsed.

    `message` and `offset` are those of the first error. `problems` are all errors that the server lists if
    `exact`; otherwise the server certainly rejects the text, but with other messages.
    """

    def __init__(self, problems: tuple[Problem, ...], *, exact: bool) -> None:
        super().__init__(problems[0].message)
        self.problems = problems
        self.exact = exact
        self.message = problems[0].message
        self.offset = problems[0].offset
