"""Regular expressions at run time: Go's verdict and messages, RE2's matching."""

from functools import lru_cache
from typing import Any, Final

import re2

from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.apiserver.golang import regexsyntax

_MEMORY: Final = 8 << 20
"""With 64 MiB, one pattern took 2 GB and 15 s for 20 characters."""
_LARGEST: Final = 20_000
"""Instructions. `.{1,1000}` has 9,000; larger programs take up to 1 µs for each instruction and character."""
MOST_STEPS: Final = 10_000_000
"""Instructions times characters of one call: about a second at worst."""
_COMPILATION: Final = 20
"""To compile a program takes as long as to match that many characters."""
_STEPS_PER_COST: Final = 20


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """A pattern compiled by RE2.

    Raises EvaluationError with the error of Go's regexp package, Indeterminate if only Go can tell.
    """
    try:
        problem = regexsyntax.error(pattern)
    except regexsyntax.UndecidedPattern as undecided:
        raise Indeterminate(str(undecided)) from None
    if problem is not None:
        raise EvaluationError(problem)
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        program = re2.compile(pattern, options)
    except re2.error:
        raise Indeterminate("a pattern that Go alone can read") from None
    if program.programsize > _LARGEST:
        raise Indeterminate("a pattern that may take too long")
    return program


def matching_cost(text: str, pattern: str, *, compiles: bool) -> int:
    """The work of a match, with that of compiling the pattern, in units of the server's cost.

    The server's cost depends on the pattern's length, but RE2's time on the size of its program: 11
    characters can make 4,000 instructions. Raises Indeterminate if one match may take too long, but nothing
    for an invalid pattern, which the match reports.
    """
    try:
        size = compiled(pattern).programsize
    except EvaluationError:
        return 0
    if size * len(text) > MOST_STEPS:
        raise Indeterminate("a match that may take too long")
    return int(size * (len(text) + (_COMPILATION if compiles else 0)) // _STEPS_PER_COST)
