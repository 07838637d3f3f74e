"""The errors that the API server finds when it makes a program of a checked expression.

It computes conversions of constants and compiles constant patterns in advance, and rejects the rule if that
fails. Follows cel-go's interpreter/decorators.go, interpreter/optimizations.go and the regular expressions of
k8s.io/apiserver (pkg/cel/library/regex.go).
"""

from typing import Final

from crdkeeper.apiserver.cel.library.functions import GLOBALS
from crdkeeper.apiserver.cel.program.literals import children, pattern_error
from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Op,
)
from crdkeeper.apiserver.cel.types.checker import Checked, UndecidedExpression
from crdkeeper.apiserver.cel.types.declarations import TYPE_NAMES
from crdkeeper.apiserver.cel.values.times import Duration, Timestamp
from crdkeeper.apiserver.cel.values.values import CelType, EvaluationError, Indeterminate, Uint, Value

_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_NAMED_ONLY = frozenset(("duration", "timestamp"))
"""The checker knows these as type names, a program does not."""
_PATTERNS = frozenset(("matches", "find", "findAll"))


_INDICES = frozenset((Op.INDEX, Op.OPT_INDEX))
_CONSTANT_MAP: Final = object()
_NO_KEYS: Final = (
    (list, "*types.baseList"),
    (bytes, "types.Bytes"),
    (type(None), "types.Null"),
    (Duration, "types.Duration"),
    (Timestamp, "types.Timestamp"),
    (CelType, "*types.Type"),
)


class _NotConstant(Exception):
    pass


def problem_of_program(tree: Expr, checked: Checked) -> str | None:
    """The server's reason why no program can be made of an expression; raises UndecidedExpression."""
    if not checked.names and not any(_interesting(node) for node in checked.types):
        return None
    try:
        _plan(tree, checked)
    except EvaluationError as error:
        return error.message
    except Indeterminate as indeterminate:
        raise UndecidedExpression(indeterminate.why) from None
    return None


def _interesting(node: Expr) -> bool:
    # Only type() and type names return types, and both are rare.
    if isinstance(node, Call):
        function = node.function
        return function in _CONVERSIONS or function in _PATTERNS or function in _INDICES
    return isinstance(node, Identifier) and node.name in _NAMED_ONLY


def _plan(node: Expr, checked: Checked) -> None:
    """Visit an expression in the order of the server's planner; raises EvaluationError."""
    if isinstance(node, Macro):
        node = node.expansion
    for each in children(node, checked):
        _plan(each, checked)
    named = checked.names.get(node)
    if (named or isinstance(node, Identifier)) and checked.types[node].kind == "type":
        name = named or _plain_name(node)
        if name in _NAMED_ONLY or name not in TYPE_NAMES:
            raise EvaluationError(f"reference to undefined type: {name}")
    if not isinstance(node, Call):
        return
    if node.function in _PATTERNS:
        _compile_pattern(node, checked)
    elif node.function in _INDICES:
        _check_index(node.args[1], checked)
    elif node.function in _CONVERSIONS:
        try:
            _constant(node, checked)
        except _NotConstant:
            return


def _plain_name(node: Expr) -> str:
    return node.name.removeprefix(".") if isinstance(node, Identifier) else ""


def _compile_pattern(node: Call, checked: Checked) -> None:
    position = 1 if node.target is None else 0
    if position >= len(node.args):
        return
    try:
        pattern = _constant(node.args[position], checked)
    except _NotConstant:
        return
    error = pattern_error(pattern) if type(pattern) is str else None
    if error is not None:
        raise EvaluationError(error)


def _constant(node: Expr, checked: Checked) -> Value:
    """The value that the planner computes for an expression; raises _NotConstant, and EvaluationError."""
    if isinstance(node, Literal):
        return Uint(node.value) if node.kind == "uint" and isinstance(node.value, int) else node.value
    if isinstance(node, Call) and node.target is None and node.function in _CONVERSIONS:
        return _converted(node.function, _constant(node.args[0], checked))
    if isinstance(node, ListLiteral) and not node.optional:
        return [_constant(each, checked) for each in node.elements]
    if isinstance(node, MapLiteral):
        for entry in node.entries:
            _constant(entry.key, checked)
            _constant(entry.value, checked)
        return _CONSTANT_MAP
    if isinstance(node, Identifier) and checked.types[node].kind == "type":
        return CelType(node.name)
    raise _NotConstant


def _converted(function: str, value: Value) -> Value:
    if function == "dyn":
        return value
    if value is _CONSTANT_MAP:
        if function == "type":
            return CelType("map")
        raise Indeterminate("a conversion of a constant map")
    return GLOBALS[function](value)


def _check_index(index: Expr, checked: Checked) -> None:
    """A constant index must have a type that keys can have."""
    try:
        value = _constant(index, checked)
    except _NotConstant:
        return
    if type(value) in (int, Uint, bool, float, str):
        return
    for kind, name in _NO_KEYS:
        if isinstance(value, kind):
            raise EvaluationError(f"invalid qualifier type: {name}")
    raise Indeterminate("an index that is a constant of a type that no key has")
