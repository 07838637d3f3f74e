"""The API server's checks of literals in an expression without type errors.

Durations, timestamps and patterns must be valid, lists and maps must contain one type, and a format string
must match its arguments. Follows cel-go's cel/validator.go and ext/formatting.go (version 2 of the strings
library).
"""

import re
from collections.abc import Iterator

from crdkeeper.apiserver.cel.library.functions import GLOBALS
from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    Comprehension,
    Expr,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Problem,
    Select,
    parts,
)
from crdkeeper.apiserver.cel.types.checker import Checked, UndecidedExpression
from crdkeeper.apiserver.cel.types.types import Type, unwrap_optional
from crdkeeper.apiserver.cel.values.values import EvaluationError
from crdkeeper.apiserver.golang import regexsyntax
from crdkeeper.apiserver.golang.numbers import MAX_INT, bounded_int

_READ = ("duration", "timestamp")
_FORMAT = "format"


def problems_of_literals(tree: Expr, checked: Checked, *, mixed: bool = False) -> list[Problem]:
    """The errors in the literals of an expression without type errors; raises UndecidedExpression.

    `mixed` allows lists and maps with values of several types, which the rules of a CRD must not have.
    """
    if not any(_interesting(node) for node in checked.types):
        return []
    nodes = list(walk(tree, checked))
    problems: list[Problem] = []
    if not mixed:
        problems.extend(_mixed(nodes, checked))
    for function in _READ:
        problems.extend(_unreadable(nodes, function))
    problems.extend(_bad_patterns(nodes))
    for node, _ in nodes:
        if isinstance(node, Call) and node.function == _FORMAT:
            problems.extend(_bad_format(node, checked))
    return problems


def _interesting(node: Expr) -> bool:
    if isinstance(node, Call):
        return node.function in ("duration", "timestamp", "matches", _FORMAT)
    if isinstance(node, ListLiteral):
        return len(node.elements) > 1 or bool(node.optional)
    return isinstance(node, MapLiteral) and bool(node.entries)


def walk(tree: Expr, checked: Checked) -> Iterator[tuple[Expr, bool]]:
    """Yield all nodes from the root on, and whether each is in the arguments of a format call.

    A subtree that an expansion contains twice is visited twice, as in the API server.
    """
    stack = [(tree, False)]
    while stack:
        node, in_format = stack.pop()
        if isinstance(node, Macro):
            node = node.expansion
        yield node, in_format
        inner = in_format or (isinstance(node, Call) and node.function == _FORMAT)
        stack.extend((each, inner) for each in reversed(children(node, checked)))


def children(node: Expr, checked: Checked) -> list[Expr]:
    """The direct children of a node, except those that are part of a qualified name."""
    if isinstance(node, Call):
        if node.target is not None and node not in checked.namespaced:
            return [node.target, *node.args]
        return list(node.args)
    if isinstance(node, Select):
        return [] if node in checked.names else [node.operand]
    if isinstance(node, Comprehension):
        return [node.range, node.init, node.condition, node.step, node.result]
    return parts(node)


_Nodes = list[tuple[Expr, bool]]


def _literal_argument(node: Expr, function: str) -> Literal | None:
    if isinstance(node, Call) and node.function == function and node.args:
        argument = node.args[0]
        return argument if isinstance(argument, Literal) else None
    return None


def _unreadable(nodes: _Nodes, function: str) -> Iterator[Problem]:
    for node, _ in nodes:
        argument = _literal_argument(node, function)
        if argument is None:
            continue
        try:
            GLOBALS[function](argument.value)
        except EvaluationError:
            yield Problem(argument.offset, f"invalid {function} argument")


def _bad_patterns(nodes: _Nodes) -> Iterator[Problem]:
    for node, _ in nodes:
        # In matches(text, pattern) this is the text: the server checks that, too.
        argument = _literal_argument(node, "matches")
        if argument is not None and pattern_error(str(argument.value)) is not None:
            yield Problem(argument.offset, "invalid matches argument")


def pattern_error(pattern: str) -> str | None:
    """Go's error for a pattern, or None; raises UndecidedExpression."""
    try:
        return regexsyntax.error(pattern)
    except regexsyntax.UndecidedPattern as undecided:
        raise UndecidedExpression(str(undecided)) from None


def _mixed(nodes: _Nodes, checked: Checked) -> Iterator[Problem]:
    types = checked.types
    for node, in_format in nodes:
        if in_format or not isinstance(node, ListLiteral):
            continue
        first: Type | None = None
        for index, each in enumerate(node.elements):
            type_ = _element(types[each], optional=index in node.optional)
            first = first or type_
            if type_ != first:
                yield _mismatch(each, first, type_)
                break
    for node, in_format in nodes:
        if in_format or not isinstance(node, MapLiteral) or not node.entries:
            continue
        key = types[node.entries[0].key]
        value = _element(types[node.entries[0].value], optional=node.entries[0].optional)
        for entry in node.entries[1:]:
            own_key = types[entry.key]
            own_value = _element(types[entry.value], optional=entry.optional)
            if own_key != key:
                yield _mismatch(entry.key, key, own_key)
            if own_value != value:
                yield _mismatch(entry.value, value, own_value)


def _element(type_: Type, *, optional: bool) -> Type:
    if not optional:
        return type_
    inner, wrapped = unwrap_optional(type_)
    if not wrapped:
        raise UndecidedExpression(
            "the API server crashes on an element with a question mark whose type is dynamic"
        )
    return inner


def _mismatch(node: Expr, expected: Type, actual: Type) -> Problem:
    return Problem(node.offset, f"expected type '{expected.text}' but found '{actual.text}'")


_STRINGS = frozenset(
    (
        "list",
        "map",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "timestamp",
        "bytes",
        "duration",
        "type",
        "null",
    )
)
_NUMBERS = "clause can only be used on"
_CLAUSES: dict[str, tuple[frozenset[str], str]] = {
    "s": (
        _STRINGS,
        f"string {_NUMBERS} strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps",
    ),
    "d": (frozenset(("int", "uint")), f"decimal {_NUMBERS} integers"),
    "f": (frozenset(("double", "string")), f"fixed-point {_NUMBERS} doubles"),
    "e": (frozenset(("double", "string")), f"scientific {_NUMBERS} doubles"),
    "b": (frozenset(("int", "uint", "bool")), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset(("int", "uint")), f"octal {_NUMBERS} integers"),
}
_CLAUSES["X"] = _CLAUSES["x"]
_RUNTIME_NAMES = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
_PRECISION = re.compile(r"\.([0-9]*)")
_UNPARSED = "could not parse formatting clause: "
_UNREAD_PRECISION = _UNPARSED + "error while parsing precision: "


class _BadFormat(Exception):
    def __init__(self, message: str, node: Expr | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


def _bad_format(node: Call, checked: Checked) -> Iterator[Problem]:
    """The error in a literal format string and its literal list of arguments."""
    target = node.target
    if "string_format" not in checked.overloads.get(node, ()) or not isinstance(target, Literal):
        return
    if not isinstance(target.value, str) or not isinstance(node.args[0], ListLiteral):
        return
    arguments = node.args[0].elements
    try:
        used = _read_format(target.value, arguments, checked)
    except _BadFormat as bad:
        yield Problem((bad.node or node).offset, bad.message)
        return
    if len(arguments) > used:
        detail = f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})"
        yield Problem(node.offset, detail)


def _read_format(text: str, arguments: tuple[Expr, ...], checked: Checked) -> int:
    """How many arguments a format string requires."""
    at = used = 0
    while True:
        at = text.find("%", at)
        if at < 0:
            return used
        if text.startswith("%", at + 1):
            at += 2
            continue
        if at + 1 >= len(text):
            raise _BadFormat("unexpected end of string")
        if used >= len(arguments):
            raise _BadFormat(f"index {used} out of range")
        at = _clause(text, at + 1, arguments[used], checked)
        used += 1


def _clause(text: str, at: int, argument: Expr, checked: Checked) -> int:
    precision = _PRECISION.match(text, at)
    if precision is not None:
        at = precision.end()
        if at >= len(text):
            raise _BadFormat(_UNREAD_PRECISION + "could not find end of precision specifier")
        digits = precision[1]
        if not digits or bounded_int(digits) > MAX_INT:
            reason = "value out of range" if digits else "invalid syntax"
            raise _BadFormat(
                f"{_UNREAD_PRECISION}error while converting precision to integer: "
                f'strconv.Atoi: parsing "{digits}": {reason}'
            )
    clause = _CLAUSES.get(text[at])
    if clause is None:
        # The server counts bytes here.
        letter = chr(text[at].encode()[0])
        raise _BadFormat(f'{_UNPARSED}unrecognized formatting clause "{letter}"')
    kinds, message = clause
    bad = _first_bad(argument, kinds, checked, nested=text[at] == "s")
    if bad is not None:
        type_ = checked.types[bad]
        name = _RUNTIME_NAMES.get(type_.name, type_.name)
        raise _BadFormat(f"error during formatting: {message}, was given {name}", bad)
    return at + 1


def _first_bad(node: Expr, kinds: frozenset[str], checked: Checked, *, nested: bool) -> Expr | None:
    """The argument, or the part of it, that is of none of the kinds."""
    kind = checked.types[node].kind
    if kind != "dyn" and kind not in kinds:
        return node
    if nested and isinstance(node, ListLiteral | MapLiteral):
        for each in children(node, checked):
            bad = _first_bad(each, kinds, checked, nested=True)
            if bad is not None:
                return bad
    return None
