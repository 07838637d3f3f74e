"""Names of fields in a schema and in CEL (k8s.io/apiserver pkg/cel/escaping.go)."""

import re
from functools import lru_cache
from typing import Final

from crdkeeper.apiserver.cel.syntax.grammar import RESERVED

KEYWORDS: Final = RESERVED | {"true", "false", "null", "in"}
_ESCAPED = re.compile(r"__|[-./]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SEQUENCE: Final = re.compile("__([^_]+)__")
_MEANINGS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


@lru_cache(maxsize=16384)
def unescape(name: str) -> str | None:
    """The field name for a name in CEL; None if it is malformed."""
    made: list[str] = []
    at = 0
    for found in _SEQUENCE.finditer(name):
        word = found[1]
        meaning = _MEANINGS.get(word)
        if meaning is None:
            if word not in KEYWORDS or len(found[0]) != len(name):
                return None
            meaning = word
        made += (name[at : found.start()], meaning)
        at = found.end()
    return "".join(made) + name[at:]


@lru_cache(maxsize=16384)
def escape(name: str) -> str | None:
    """The name of a field in CEL; None if CEL cannot name it (apiserver's Escape)."""
    if name in KEYWORDS:
        return f"__{name}__"
    if _NAME.fullmatch(name) is None:
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)
