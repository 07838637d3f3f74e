"""Names of fields as CEL writes them, turned back into those of the schema (k8s.io/apiserver
pkg/cel/escaping.go).
"""

import re
from functools import lru_cache
from typing import Final

_RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SEQUENCE: Final = re.compile("__([^_]+)__")
_MEANINGS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


@lru_cache(maxsize=16384)
def unescape(name: str) -> str | None:
    """The name of the field that a name in CEL stands for; None if it is malformed."""
    made: list[str] = []
    at = 0
    for found in _SEQUENCE.finditer(name):
        word = found[1]
        meaning = _MEANINGS.get(word)
        if meaning is None:
            if word not in _RESERVED or len(found[0]) != len(name):
                return None
            meaning = word
        made += (name[at : found.start()], meaning)
        at = found.end()
    return "".join(made) + name[at:]
