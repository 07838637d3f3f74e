"""`when`: the condition in CEL that an object must meet before a finalizer is released.

Only policies with a condition import this module, because the engine is large.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from crdkeeper.apiserver.cel.expressions import (
    DYN,
    Account,
    BadExpression,
    compile_expression,
    unchecked_value,
)
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate

_OBJECT: Final = "object"
_COST: Final = 100_000
"""Of an evaluation: some milliseconds, as the operator does nothing else meanwhile."""
_MOST_DOUBLINGS: Final = 4
"""Each of these macros has its target twice, so that a chain of them doubles with each."""

Condition = Callable[[Mapping[str, Any]], bool]
"""Whether an object meets it: an object for which it has no value, or another one than true, does not."""


@lru_cache(maxsize=256)
def compile_when(text: str) -> Condition:
    """The condition. Raises ValueError with what is wrong with it."""
    if text.count("optMap") + text.count("optFlatMap") > _MOST_DOUBLINGS:
        raise ValueError(f"more than {_MOST_DOUBLINGS} of optMap and optFlatMap")
    try:
        compiled = compile_expression(text, {_OBJECT: DYN})
        if str(compiled.type) not in ("bool", "dyn"):
            raise ValueError(f"it is a {compiled.type}, not a bool")
        program = compiled.program((_OBJECT,))
    except BadExpression as error:
        raise ValueError(str(error)) from None

    def met(whole: Mapping[str, Any]) -> bool:
        try:
            orjson.dumps(whole)
        except orjson.JSONEncodeError:
            return False  # a part is nested too deep for CEL
        try:
            return program.evaluate({_OBJECT: unchecked_value(whole)}, Account(_COST)) is True
        except (EvaluationError, Indeterminate):
            return False

    return met
