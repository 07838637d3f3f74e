"""Finds `${…}` in a text: where each expression begins and ends, braces and strings inside it included.

`$${` stands for a literal `${`. The end is found with CEL's own tokens, so that `}` in a string or of a map
does not end an expression.
"""

import re
from dataclasses import dataclass
from typing import Final

from crdkeeper.apiserver.cel.syntax.lexer import closing_brace

LONGEST_EXPRESSION: Final = 8192
"""Characters, as in the conditions of a Composition."""
_OPENING: Final = re.compile(r"\$?\$\{")
_UNESCAPED: Final = re.compile(r"\$\{")
_ESCAPE: Final = "$${"


@dataclass(frozen=True, slots=True)
class Embedded:
    """An expression in a text."""

    text: str
    start: int
    """The index of its first character in the text around it."""


class BadText(ValueError):
    """A text whose expressions cannot be found."""

    def __init__(self, message: str, offset: int, hint: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.hint = hint


def parts_of(text: str, *, escapes: bool = True) -> tuple[str | Embedded, ...]:
    """The parts of a text in order: literal text, without escapes, and expressions. Raises BadText.

    Without `escapes`, each `${` begins an expression, also after a `$`.
    """
    opening = _OPENING if escapes else _UNESCAPED
    parts: list[str | Embedded] = []
    literal: list[str] = []
    at = 0
    while (found := opening.search(text, at)) is not None:
        literal.append(text[at : found.start()])
        if found[0] == _ESCAPE:
            literal.append("${")
            at = found.end()
            continue
        if any(literal):
            parts.append("".join(literal))
        literal = []
        start = found.end()
        end = closing_brace(text, start, start + LONGEST_EXPRESSION)
        if end is None:
            longer = len(text) - start > LONGEST_EXPRESSION
            within = f" within {LONGEST_EXPRESSION:,} characters" if longer else ""
            hint = "Close it with }, or write $${ for a literal ${."
            raise BadText(f"the expression has no end{within}", found.start(), hint)
        if end - start > LONGEST_EXPRESSION:
            raise BadText(
                f"the expression has more than {LONGEST_EXPRESSION:,} characters", start, "Split it."
            )
        if not text[start:end].strip():
            raise BadText("the expression is empty", start, "Write $${} for a literal ${}.")
        parts.append(Embedded(text[start:end], start))
        at = end + 1
    literal.append(text[at:])
    if any(literal):
        parts.append("".join(literal))
    return tuple(parts)
