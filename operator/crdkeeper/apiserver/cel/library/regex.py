"""matches, find and findAll (common/types/string.go of cel-go, library/regex.go of Kubernetes)."""

from typing import Any, Final

from crdkeeper.apiserver.cel.values.arithmetic import unknown_operator
from crdkeeper.apiserver.cel.values.overloads import Overload, Table, Unguarded
from crdkeeper.apiserver.cel.values.patterns import MOST_STEPS, compiled
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Value, no_overload

MAX_MATCHES: Final = 100_000
_MOST_SEARCHES: Final = 20
"""Single matches of the longest time: most patterns end a match long before the end of the text."""
"""More matches take too long to find."""


def _matches(text: Value, pattern: Value) -> bool:
    if type(text) is not str:
        raise unknown_operator("matches", text)
    if type(pattern) is not str:
        raise no_overload()
    return compiled(pattern).search(text) is not None


def _regex(pattern: str) -> Any:
    try:
        return compiled(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error.message}") from None


def _find(text: str, pattern: str) -> str:
    found = _regex(pattern).search(text)
    return str(found.group()) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[Value]:
    expression = _regex(pattern)
    found: list[Value] = []
    if limit == 0:
        return found
    end = -1
    size, steps = expression.programsize, 0
    for match in expression.finditer(text):
        # Go ignores an empty match that touches the one before.
        if match.start() != match.end() or match.start() != end:
            found.append(match.group())
            if len(found) == limit:
                break
            if len(found) > MAX_MATCHES:
                raise Indeterminate(f"more than {MAX_MATCHES:,} matches of a pattern")
        end = match.end()
        # To find the longest match, or the next one, may take all of the text that remains.
        steps += size * (len(text) - match.start())
        if steps > _MOST_SEARCHES * MOST_STEPS:
            raise Indeterminate("matches that may take too long together")
    return found


MEMBERS: Final[Table] = {
    "matches": Unguarded(_matches),
    "find": (Overload(("string", "string"), _find),),
    "findAll": (Overload(("string", "string"), _find_all), Overload(("string", "string", "int"), _find_all)),
}
GLOBALS: Final[Table] = {"matches": Unguarded(_matches)}
