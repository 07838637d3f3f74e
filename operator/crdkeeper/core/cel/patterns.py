"""Regular expressions at run time: Go's verdict and words, RE2's matching."""

from functools import lru_cache
from typing import Any, Final

import re2

from crdkeeper.core.cel.values import EvaluationError, Indeterminate
from crdkeeper.core.schema import regexsyntax

_MEMORY: Final = 64 << 20


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """A pattern of RE2.

    Raises EvaluationError with the error of Go's regexp package, Indeterminate for what only Go can tell.
    """
    try:
        problem = regexsyntax.error(pattern)
    except regexsyntax.Undecided as undecided:
        raise Indeterminate(str(undecided)) from None
    if problem is not None:
        raise EvaluationError(problem)
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise Indeterminate("a pattern that Go alone can read") from None
