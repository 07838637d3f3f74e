"""The API server's messages without values of users' objects.

A message names the field, then the value, then the problem: `spec.port: Invalid value: "abc": must be …`
(field.Error of apimachinery). Whoever may read a status, an Event or a log may lack permission to read the
object, so the value is removed and the rest stays. The message of an admission webhook or a policy is its
author's own text, in which values cannot be recognized; for Secrets it is removed completely.
"""

import re
from typing import Any, Final

from crdkeeper.api.texts import bounded

HIDDEN: Final = "(not shown)"

_INTRODUCTION: Final = re.compile(
    r'(?:(?:Invalid|Unsupported|Duplicate) value|Not found): |must be of type [\w-]+: (?=")'
)
_TYPES: Final = frozenset(
    f'"{each}"' for each in ("string", "integer", "number", "boolean", "array", "object")
)
"""What the server shows in place of a value of the wrong type."""
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PLAIN: Final = re.compile(r"(?:[-+]?[0-9][0-9.eE+-]*|true|false|null|<nil>)(?=[:,;.)\]\s]|$)")
_OPENINGS: Final = ('"', "{", "[", "map[", "&")
"""How all other values begin. Errors of CEL rules show none: the problem follows at once."""
_TOKEN: Final = re.compile(_STRING.pattern + r"|[{}\[\]]", re.DOTALL)
_QUOTED_ANSWER: Final = re.compile(r'(?<=an error on the server \()".*"(?=\))', re.DOTALL)
_FREE_WORDS: Final = re.compile(r"(?<=denied the request: ).*|(?<=denied request: ).*", re.DOTALL)


def without_values(message: str) -> str:
    """The message, with `(not shown)` in place of each value, cut to a limit."""
    parts: list[str] = []
    at = 0
    while found := _INTRODUCTION.search(message, at):
        end = _end_of_value(message, found.end())
        value = message[found.end() : end]
        parts += [message[at : found.end()], HIDDEN if value and value not in _TYPES else value]
        at = end
    return bounded("".join(parts) + message[at:])


def of_a_secret(message: str) -> str:
    """Like `without_values`, and without the text of webhooks and policies."""
    shown = _QUOTED_ANSWER.sub(HIDDEN, _FREE_WORDS.sub(HIDDEN, message))
    return without_values(shown)


def message_of(body: Any, otherwise: str) -> str:
    """The message of an answer that is a metav1.Status, without values; `otherwise` if it has none."""
    message = body.get("message") if isinstance(body, dict) else None
    return without_values(str(message)) if message else otherwise


def _end_of_value(message: str, start: int) -> int:
    """Where a value ends: at its start if none is shown, at the end of the message if that is unknown."""
    if found := _STRING.match(message, start) or _PLAIN.match(message, start):
        return found.end()
    if not message.startswith(_OPENINGS, start):
        return start
    if not message.startswith(("{", "["), start):
        return len(message)
    depth = 0
    for token in _TOKEN.finditer(message, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(message)
