"""What is said of the rules of x-kubernetes-validations.

A rule can be long, and thousands of values can violate it: its text is quoted as far as `Quotes` has room.
"""

from typing import Any, Final

from crdkeeper.apiserver.cel.values.values import EvaluationError
from crdkeeper.apiserver.golang.strings import trim_space
from crdkeeper.apiserver.objects.rulecompilation import CompiledRule
from crdkeeper.apiserver.schema.quotes import Quotes

_LONGEST_MESSAGE: Final = 5 * 1024


def failed(error: EvaluationError, rule: CompiledRule, quotes: Quotes) -> str:
    """The server's message for a rule whose evaluation fails."""
    message, shown = quotes.text(error.message), quotes.text(rule.shown)
    if message.startswith("no such overload"):
        return (
            f"'{message}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {shown}"
        )
    return f"{message} evaluating rule: {shown}"


def left_open(rule: CompiledRule, why: str, quotes: Quotes) -> str:
    """Why a rule is left to the server."""
    return f"{quotes.text(rule.shown)}: {why}"


def usable(message: Any) -> str:
    """The message from an expression; empty if the server does not show it."""
    if not isinstance(message, str):
        return ""
    text = trim_space(message)
    return "" if "\n" in text or len(text.encode(errors="replace")) > _LONGEST_MESSAGE else text
