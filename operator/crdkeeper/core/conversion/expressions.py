"""Rules in CEL: an expression that computes a field of one version from the object of the other.

Expressions are checked against the schemas of both sides when rules are compiled. Evaluations are limited by
CEL's cost, so that a bad expression ends in bounded time. Only rules with expressions import this module,
because the engine is large.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from crdkeeper.apiserver.cel.expressions import (
    EXHAUSTED,
    NO_BASE64,
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
from crdkeeper.apiserver.objects.effort import affordable_cost, count_evaluation
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.fieldpaths import FIRST, Steps, show
from crdkeeper.core.conversion.results import fitted, plain, type_problem
from crdkeeper.core.conversion.values import Unconvertible

OBJECT: Final = "object"
COST_LIMIT: Final = 10_000_000
"""For all evaluations on one object: the API server's limit for the rules of a CRD."""

_ESSENCE: Final = re.compile(
    r"no such (?:key|overload|attribute)|index out of (?:bounds|range)|(?:unsigned )?integer overflow"
    r"|(?:division|modulus) by zero|timestamp overflow|optional\.none\(\) dereference"
    r"|type conversion error from '\w+' to '[\w.]+'|invalid data, expected \w+"
    rf"|unable to parse quantity's suffix|{NO_BASE64}|{re.escape(EXHAUSTED)}"
)
"""What to show of CEL's messages: what follows these words, and other errors, may contain values."""

Evaluate = Callable[[Any, Any], Any]
"""Takes the whole object (or item) and the value of the rule's field; returns the other side's value."""

_TEXT: Final[Schema] = {"type": "string"}
_account: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def limited() -> Iterator[None]:
    """Limit the total cost of all evaluations inside to COST_LIMIT."""
    affordable = affordable_cost(COST_LIMIT)
    account = Account(affordable)
    token = _account.set(account)
    try:
        yield
    finally:
        _account.reset(token)
        count_evaluation(affordable - account.left)


def expression(
    text: str, where: str, source: Schema, steps: Steps | None, target: Schema, *, top: bool
) -> Evaluate:
    """Compile an expression: from an object with the schema `source` to a field with the schema `target`.

    `steps` lead to the field that is `self`; None for an expression that uses the object alone. `where` names
    the expression in errors. `top` says whether the object is whole, with metadata. Raises BadExpression. The
    returned function raises Unconvertible.
    """
    variables = _variables(source, steps, top=top)
    # An object as a literal has fields of several types.
    compiled = compile_expression(text, variables, mixed=True)
    problem = type_problem(compiled.type, target)
    if problem is not None:
        raise BadExpression(problem)
    program = compiled.program(("self", OBJECT))
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
            account = _account.get()
            return fitted(plain(program.evaluate(variables, account), account), target)
        except EvaluationError as error:
            raise Unconvertible(f"{where}: {essence(error.message)}") from None
        except Indeterminate as error:
            raise Unconvertible(f"{where}: {essence(error.why)}") from None
        except Unconvertible as error:
            raise Unconvertible(f"{where}: does not fit the schema: {error}") from None

    return evaluate


def essence(said: str) -> str:
    """What may be shown of an error of CEL, which can contain values."""
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
            # One of its parents has a type that hides it, such as an object without declared fields.
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
