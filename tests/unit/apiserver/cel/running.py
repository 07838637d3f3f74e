"""Evaluates an expression over data with a schema, for tables of cases."""

from typing import Any

from crdkeeper.apiserver.cel.run.binding import bind
from crdkeeper.apiserver.cel.run.evaluate import compile_program
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.values.values import EvaluationError, Value


def value(expression: str, data: Any = None, schema: Any = None, **old: Any) -> Value:
    """The value of an expression; `self` is the data if there is a schema."""
    variables = {} if schema is None else {"self": bind(data, schema)}
    return compile_program(parse(expression)).evaluate(variables | old)


def outcome(expression: str, data: Any = None, schema: Any = None, **old: Any) -> Any:
    """The value of an expression, or the message of its error after an exclamation mark."""
    try:
        return value(expression, data, schema, **old)
    except EvaluationError as error:
        return f"!{error.message}"
