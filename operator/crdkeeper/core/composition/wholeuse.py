"""Whether a CEL rule uses an object as a whole, and not only its fields."""

from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    CelDepthError,
    CelSyntaxError,
    Expr,
    Identifier,
    Op,
    Select,
    parts,
)
from crdkeeper.apiserver.cel.syntax.parser import parse

_VARIABLES = ("self", "oldSelf")


def uses_whole(rule: str, field: str | None) -> bool:
    """Whether `self` or `oldSelf` is used as a whole; with a `field`, whether that field of it is, too.

    A rule that cannot be parsed uses nothing.
    """
    try:
        return _used(parse(rule), field)
    except (CelSyntaxError, CelDepthError, RecursionError):
        return False


def _used(expression: Expr, field: str | None) -> bool:
    if _is_whole(expression, field):
        return True
    if isinstance(expression, Select) and isinstance(expression.operand, Identifier | Select):
        return not _selects_from_whole(expression.operand, field) and _used(expression.operand, field)
    if isinstance(expression, Call) and expression.function == Op.OPT_SELECT:
        operand = expression.args[0]
        return not _selects_from_whole(operand, field) and _used(operand, field)
    return any(_used(each, field) for each in parts(expression))


def _is_whole(expression: Expr, field: str | None) -> bool:
    if isinstance(expression, Identifier):
        return expression.name in _VARIABLES
    return field is not None and _is_field(expression, field)


def _selects_from_whole(operand: Expr, field: str | None) -> bool:
    """Whether a selection from the operand is one of a field of the object, so that the rest is not used."""
    if isinstance(operand, Identifier):
        return operand.name in _VARIABLES
    return field is not None and _is_field(operand, field)


def _is_field(expression: Expr, field: str) -> bool:
    return (
        isinstance(expression, Select)
        and not expression.test_only
        and expression.field == field
        and isinstance(expression.operand, Identifier)
        and expression.operand.name in _VARIABLES
    )
