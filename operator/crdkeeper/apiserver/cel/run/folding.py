"""Constant parts of an expression, for us and for the server.

The server's planner evaluates conversions of constants in advance, which has visible effects: it makes a set
lookup of `x in [int('1')]`. We evaluate more in advance, without visible effects.
"""

from typing import Final

from crdkeeper.apiserver.cel.library.functions import GLOBALS
from crdkeeper.apiserver.cel.syntax.nodes import Call, Expr, Literal
from crdkeeper.apiserver.cel.values.values import MISSING, EvaluationError, Indeterminate, Uint, Value

_FOLDED: Final = frozenset(
    (
        "duration",
        "timestamp",
        "semver",
        "ip",
        "cidr",
        "url",
        "int",
        "uint",
        "double",
        "bytes",
        "string",
    )
)
"""Functions of a constant that run when the expression is compiled; a quantity is changed by comparisons."""
_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint")
)
"""Functions of a constant whose results are constants for the server."""


def literal_value(node: Literal) -> Value:
    """The value of a literal."""
    value = node.value
    return Uint(value) if node.kind == "uint" and isinstance(value, int) else value


def folded(node: Call) -> Value:
    """A constant computed by a function of a literal, such as duration('1h'); else MISSING."""
    if node.function not in _FOLDED or len(node.args) != 1 or not isinstance(node.args[0], Literal):
        return MISSING
    return _result(node, literal_value(node.args[0]))


def constant_of(node: Expr) -> Value:
    """The value of a literal or a conversion of one, which is constant for the server, too; else MISSING."""
    if isinstance(node, Literal):
        return literal_value(node)
    if isinstance(node, Call) and node.function in _CONVERSIONS and len(node.args) == 1:
        value = constant_of(node.args[0])
        return value if value is MISSING else _result(node, value)
    return MISSING


def _result(node: Call, value: Value) -> Value:
    try:
        return GLOBALS[node.function](value)
    except (EvaluationError, Indeterminate, UnicodeEncodeError):
        return MISSING
