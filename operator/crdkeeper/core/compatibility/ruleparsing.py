"""Rules of x-kubernetes-validations as CEL trees, each text parsed once, and when two are equal."""

import re
from functools import cache
from typing import Any, Final

from crdkeeper.apiserver.cel.syntax.nodes import CelDepthError, CelSyntaxError, Expr, Literal
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.core.compatibility.findings import Changes

_MOST_CHARACTERS: Final = 10_000
"""The longest rule that is parsed; longer ones are compared as text."""
_CHARACTERS_PER_STEP: Final = 4
_OLD_SELF: Final = re.compile(r"\boldSelf\b")


def names_old_self(rule: str) -> bool:
    """Whether what a rule refuses depends on the value before an update."""
    return _OLD_SELF.search(rule) is not None


class ParsedRules:
    """The trees of the rules of one field, before and after."""

    def __init__(self, findings: Changes) -> None:
        self.findings = findings
        self._trees: dict[str, Expr | None] = {}

    def tree(self, text: str) -> Expr | None:
        """None if it cannot be parsed. Raises Exhausted."""
        if text not in self._trees:
            self.findings.spend(1 + min(len(text), _MOST_CHARACTERS) // _CHARACTERS_PER_STEP)
            self._trees[text] = _parsed(text)
        return self._trees[text]

    def meaning(self, text: str) -> Any:
        """A rule in a canonical form for comparisons: without blanks, redundant brackets and quoting.

        The text itself if it cannot be parsed. Raises Exhausted.
        """
        tree = self.tree(text)
        return text if tree is None else _plain(tree)


def _parsed(text: str) -> Expr | None:
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        return parse(text)
    except (CelSyntaxError, CelDepthError):
        return None


def _plain(node: Any) -> Any:
    if isinstance(node, Literal):
        return ("Literal", node.kind, repr(node.value))
    if isinstance(node, tuple):
        return tuple(map(_plain, node))
    kind: type = type(node)
    parts = _parts(kind)
    return (kind.__name__, *[_plain(getattr(node, each)) for each in parts]) if parts else node


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The contents of a node, without its position in the text and the source of a macro."""
    fields = getattr(kind, "__dataclass_fields__", ())
    return tuple(each for each in fields if each not in ("offset", "expansion"))
