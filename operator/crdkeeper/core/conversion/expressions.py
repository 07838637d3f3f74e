"""Rules in CEL: an expression that makes a field of one version from the object of the other.

Expressions are checked against the schemas of both sides when rules are compiled. Evaluations are charged by
CEL's cost, so that a bad expression ends in bounded time. Only rules that have expressions import this: the
engine is large.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from crdkeeper.apiserver.cel.expressions import (
    EXHAUSTED,
    STRING,
    Account,
    BadExpression,
    Program,
    Type,
    compile_expression,
    converter,
    declare,
    embedded,
    escape,
)
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.fieldpaths import FIRST, Steps, show
from crdkeeper.core.conversion.results import fitted, misfit, plain
from crdkeeper.core.conversion.values import Unconvertible

OBJECT: Final = "object"
COST_LIMIT: Final = 10_000_000
"""Of all evaluations for one object, as the API server limits the rules of a CRD."""

_ESSENCE: Final = re.compile(
    r"no such (?:key|overload|attribute)|index out of (?:bounds|range)|(?:unsigned )?integer overflow"
    r"|(?:division|modulus) by zero|timestamp overflow|optional\.none\(\) dereference"
    r"|type conversion error from '\w+' to '[\w.]+'|invalid data, expected \w+"
    r"|unable to parse quantity's suffix|" + re.escape(EXHAUSTED)
)
"""What CEL says without values of the object: after these words, and in other errors, there can be some."""

Evaluate = Callable[[Any, Any], Any]
"""Of a whole object (or item) and of the value of the rule's field: the value of the other side's field."""

_TEXT: Final[Schema] = {"type": "string"}
_account: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def limited() -> Iterator[None]:
    """All evaluations inside together may cost COST_LIMIT."""
    token = _account.set(Account(COST_LIMIT))
    try:
        yield
    finally:
        _account.reset(token)


def expression(
    text: str, where: str, source: Schema, steps: Steps | None, target: Schema, *, top: bool
) -> Evaluate:
    """What makes a field with the schema `target` of an object with the schema `source`.

    `steps` lead to the field that is `self`; None for an expression of the object alone. `where` names the
    expression in errors. `top` says whether it is a whole object, with metadata. Raises BadExpression. The
    function raises Unconvertible.
    """
    variables = _variables(source, steps, top=top)
    # An object as a literal has fields of several types.
    compiled = compile_expression(text, variables, mixed=True)
    problem = misfit(compiled.type, target)
    if problem is not None:
        raise BadExpression(problem)
    program = compiled.program(second=OBJECT)
    whole = converter(source, root=top)
    own = converter(_schema_at(source, steps, top=top)) if steps is not None else None
    return _evaluation(program, where, whole, own, target)


def _evaluation(
    program: Program,
    where: str,
    whole: Callable[[Any], Any],
    own: Callable[[Any], Any] | None,
    target: Schema,
) -> Evaluate:
    def evaluate(value: Any, found: Any) -> Any:
        variables = {OBJECT: whole(value)}
        if own is not None:
            variables["self"] = own(found)
        try:
            return fitted(plain(program.evaluate(variables, _account.get())), target)
        except EvaluationError as error:
            raise Unconvertible(f"{where}: {_essence(error.message)}") from None
        except Indeterminate as error:
            raise Unconvertible(f"{where}: {_essence(error.why)}") from None
        except Unconvertible as error:
            raise Unconvertible(f"{where}: does not fit the schema: {error}") from None

    return evaluate


def _essence(said: str) -> str:
    found = _ESSENCE.match(said)
    return found[0] if found else "the expression fails on this object"


def _variables(source: Schema, steps: Steps | None, *, top: bool) -> Mapping[str, Type]:
    declared = declare(source, root=top)
    if declared is None:
        raise BadExpression("CEL has no type for the object")
    variables = {OBJECT: declared.type(OBJECT)}
    if steps is not None:
        own = _type_at(variables[OBJECT], steps) if not _free(steps, top=top) else STRING
        if own is None:
            # Its parents have a type that hides it, such as an object whose fields nobody declared.
            schema = _schema_at(source, steps, top=top)
            alone = declare(schema, root=embedded(schema))
            own = alone.type() if alone is not None else None
        if own is None:
            raise BadExpression(f"CEL has no type for {show(steps)}")
        variables["self"] = own
    return variables


def _free(steps: Steps, *, top: bool) -> bool:
    """Whether a path leads to an annotation or a label."""
    return top and steps[0] == "metadata"


def _type_at(found: Type | None, steps: Steps) -> Type | None:
    for step in steps:
        if found is None:
            return None
        if found.kind in ("map", "list"):
            found = found.parameters[-1]
        else:
            name = escape(step)
            found = found.fields(name) if found.fields is not None and name is not None else None
    return found


def _schema_at(schema: Schema, steps: Steps, *, top: bool) -> Schema:
    if _free(steps, top=top):
        return _TEXT
    for step in steps:
        properties = schema.get("properties") or {}
        inner = "items" if step == FIRST else "additionalProperties"
        schema = properties[step] if step in properties else schema[inner]
    return schema
