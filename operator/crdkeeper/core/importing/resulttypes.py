"""The type of what an expression gives, as far as it shows without any schema."""

from typing import Any, Final

from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    CelDepthError,
    CelSyntaxError,
    Expr,
    Identifier,
    Literal,
    Macro,
    Op,
    Select,
)
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.core.templates.texts import BadText, Embedded, parts_of

_BOOLEAN: Final = (
    *(Op.AND, Op.OR, Op.NOT, Op.IN, Op.EQUALS, Op.NOT_EQUALS),
    *(Op.LESS, Op.LESS_EQUALS, Op.GREATER, Op.GREATER_EQUALS),
    *("bool", "contains", "endsWith", "matches", "startsWith"),
)
_STRING: Final = ("format", "join", "lowerAscii", "replace", "string", "substring", "trim", "upperAscii")
_FUNCTIONS: Final = {
    **dict.fromkeys(_BOOLEAN, "boolean"),
    **dict.fromkeys(_STRING, "string"),
    **dict.fromkeys(("int", "size", "uint"), "integer"),
    "double": "number",
}
_MACROS: Final = dict.fromkeys(("all", "exists", "exists_one"), "boolean")
_LITERALS: Final = {
    "bool": "boolean",
    "double": "number",
    "int": "integer",
    "string": "string",
    "uint": "integer",
}
_TEXTS: Final = ("name", "namespace", "uid")
"""Fields of metadata, which every object has."""


def simple_type(value: Any) -> str | None:
    """The type in OpenAPI of a value in a template; None if only schemas tell."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    if not isinstance(value, str):
        return None
    try:
        parts = parts_of(value)
        if len(parts) == 1 and isinstance(parts[0], Embedded):
            return _type(parse(parts[0].text))
    except (BadText, CelSyntaxError, CelDepthError):
        return None
    return "string"


def _type(expression: Expr) -> str | None:
    if isinstance(expression, Literal):
        return _LITERALS.get(expression.kind)
    if isinstance(expression, Macro):
        return _MACROS.get(expression.name)
    if isinstance(expression, Select):
        return "boolean" if expression.test_only else _type_of_field(expression)
    if not isinstance(expression, Call):
        return None
    if expression.function == Op.CONDITIONAL:
        return _type(expression.args[1]) or _type(expression.args[2])
    if expression.function == Op.ADD:
        return _type(expression.args[0]) or _type(expression.args[1])
    return _FUNCTIONS.get(expression.function)


def _type_of_field(selected: Select) -> str | None:
    of = selected.operand
    if isinstance(of, Select) and of.field == "metadata" and isinstance(of.operand, Identifier):
        return "string" if selected.field in _TEXTS else None
    return None
