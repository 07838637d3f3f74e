"""The expansions of CEL's macros.

The parser passes every call with a macro's name and number of arguments to `expand_receiver`. The expansions
are those of cel-go (parser/macro.go, ext/comprehensions.go, cel/library.go), because they determine costs and
messages.
"""

from crdkeeper.apiserver.cel.syntax.nodes import (
    ACCUMULATOR,
    MAP_INSERT,
    UNUSED_VARIABLE,
    Call,
    Comprehension,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Op,
    StructLiteral,
)

_OLD_ACCUMULATOR = "__result__"
_SORT_INPUT = "@__sortBy_input__"
SORT_BY_KEYS = "@sortByAssociatedKeys"

_ARITIES = {
    "all": (2, 3),
    "exists": (2, 3),
    "exists_one": (2, 3),
    "existsOne": (3,),
    "map": (2, 3),
    "filter": (2,),
    "transformList": (3, 4),
    "transformMap": (3, 4),
    "transformMapEntry": (3, 4),
    "optMap": (2,),
    "optFlatMap": (2,),
    "sortBy": (2,),
}
RECEIVER_MACROS = frozenset((name, count) for name, counts in _ARITIES.items() for count in counts)
"""Name and number of arguments of the macros that are called on a target."""


class MacroError(Exception):
    """A macro called with invalid arguments: the argument's offset, and the server's message."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


def expand_receiver(offset: int, name: str, target: Expr, args: tuple[Expr, ...]) -> Macro:
    """The node of a macro called on a target; raises MacroError if its variables are not names."""
    if name in ("optMap", "optFlatMap"):
        return _optional(offset, name, target, args)
    if name == "sortBy":
        return _sort_by(offset, target, args)
    if name in ("map", "filter"):
        variables = (_variable(args[0], "argument is not an identifier"),)
        _not_accumulator(args[0], variables[0])
        predicate = args[1] if len(args) == 3 else None
        if name == "map":
            body, filtered = args[-1], predicate
            step, condition = _append(offset, args[-1]), predicate
        else:
            body, filtered = args[1], None
            step, condition = _append(offset, args[0]), args[1]
        if condition is not None:
            step = _conditional(offset, condition, step)
        fold = _fold(offset, target, variables, ListLiteral(offset, ()), step)
        return Macro(offset, name, target, variables, filtered, body, fold)
    if len(args) == 2:
        only = _variable(args[0], "argument must be a simple name")
        _not_accumulator(args[0], only)
        return _quantifier(offset, name, target, (only,), args[1])
    pair = _two_variables(args)
    if name.startswith("transform"):
        return _transform(offset, name, target, pair, args[2:])
    return _quantifier(offset, name, target, pair, args[2])


def _variable(argument: Expr, message: str) -> str:
    if not isinstance(argument, Identifier):
        raise MacroError(argument.offset, message)
    return argument.name


def _not_accumulator(argument: Expr, name: str) -> None:
    if name == _OLD_ACCUMULATOR:
        raise MacroError(argument.offset, "iteration variable overwrites accumulator variable")


def _two_variables(args: tuple[Expr, ...]) -> tuple[str, str]:
    first = _variable(args[0], "argument must be a simple name")
    second = _variable(args[1], "argument must be a simple name")
    if first == second:
        raise MacroError(args[1].offset, f"duplicate variable name: {first}")
    _not_accumulator(args[0], first)
    _not_accumulator(args[1], second)
    return first, second


def _accumulator(offset: int) -> Identifier:
    return Identifier(offset, ACCUMULATOR)


def _append(offset: int, element: Expr) -> Expr:
    return Call(offset, Op.ADD, (_accumulator(offset), ListLiteral(offset, (element,))))


def _conditional(offset: int, condition: Expr, step: Expr) -> Expr:
    return Call(offset, Op.CONDITIONAL, (condition, step, _accumulator(offset)))


def _fold(
    offset: int,
    target: Expr,
    variables: tuple[str, ...],
    init: Expr,
    step: Expr,
    condition: Expr | None = None,
    result: Expr | None = None,
) -> Comprehension:
    return Comprehension(
        offset,
        target,
        variables[0],
        variables[1] if len(variables) == 2 else "",
        ACCUMULATOR,
        init,
        condition or Literal(offset, "bool", True),
        step,
        result or _accumulator(offset),
    )


def _quantifier(offset: int, name: str, target: Expr, variables: tuple[str, ...], predicate: Expr) -> Macro:
    accumulator = _accumulator(offset)
    if name == "all":
        fold = _fold(
            offset,
            target,
            variables,
            Literal(offset, "bool", True),
            Call(offset, Op.AND, (accumulator, predicate)),
            Call(offset, Op.NOT_STRICTLY_FALSE, (_accumulator(offset),)),
        )
    elif name == "exists":
        negated = Call(offset, Op.NOT, (_accumulator(offset),))
        fold = _fold(
            offset,
            target,
            variables,
            Literal(offset, "bool", False),
            Call(offset, Op.OR, (accumulator, predicate)),
            Call(offset, Op.NOT_STRICTLY_FALSE, (negated,)),
        )
    else:
        name = "exists_one"
        fold = _fold(
            offset,
            target,
            variables,
            Literal(offset, "int", 0),
            _conditional(offset, predicate, Call(offset, Op.ADD, (accumulator, Literal(offset, "int", 1)))),
            result=Call(offset, Op.EQUALS, (_accumulator(offset), Literal(offset, "int", 1))),
        )
    return Macro(offset, name, target, variables, None, predicate, fold)


def _transform(
    offset: int, name: str, target: Expr, variables: tuple[str, str], rest: tuple[Expr, ...]
) -> Macro:
    predicate, body = (rest[0], rest[1]) if len(rest) == 2 else (None, rest[0])
    init: Expr = MapLiteral(offset, ())
    if name == "transformList":
        init = ListLiteral(offset, ())
        step = _append(offset, body)
    elif name == "transformMap":
        key = Identifier(offset, variables[0])
        step = Call(offset, MAP_INSERT, (_accumulator(offset), key, body))
    else:
        step = Call(offset, MAP_INSERT, (_accumulator(offset), body))
    if predicate is not None:
        step = _conditional(offset, predicate, step)
    return Macro(
        offset, name, target, variables, predicate, body, _fold(offset, target, variables, init, step)
    )


def _optional(offset: int, name: str, target: Expr, args: tuple[Expr, ...]) -> Macro:
    variable = _variable(args[0], f"{name}() variable name must be a simple identifier")
    value: Expr = _bind(offset, variable, Call(offset, "value", (), target), args[1])
    if name == "optMap":
        value = Call(offset, "optional.of", (value,))
    expansion = Call(
        offset,
        Op.CONDITIONAL,
        (Call(offset, "hasValue", (), target), value, Call(offset, "optional.none", ())),
    )
    return Macro(offset, name, target, (variable,), None, args[1], expansion)


def _bind(offset: int, name: str, value: Expr, result: Expr) -> Comprehension:
    """`result` with a name for `value`: a fold over nothing."""
    return Comprehension(
        offset,
        ListLiteral(offset, ()),
        UNUSED_VARIABLE,
        "",
        name,
        value,
        Literal(offset, "bool", False),
        Identifier(offset, name),
        result,
    )


def _sort_by(offset: int, target: Expr, args: tuple[Expr, ...]) -> Macro:
    if isinstance(target, Literal | MapLiteral | StructLiteral):
        raise MacroError(
            target.offset,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = expand_receiver(offset, "map", Identifier(offset, _SORT_INPUT), args)
    by_keys = Call(offset, SORT_BY_KEYS, (keys,), Identifier(offset, _SORT_INPUT))
    expansion = _bind(offset, _SORT_INPUT, target, by_keys)
    return Macro(offset, "sortBy", target, keys.variables, None, args[1], expansion)
