"""Paths such as `.spec.color` or `.spec['color']`, with which a CRD refers to fields of its own schema.

As in ValidFieldPath of k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

import re
from dataclasses import dataclass
from typing import Final

from crdkeeper.apiserver.schema.props import Schema


class BadReference(Exception):
    """The path leads nowhere; with the API server's message."""


class ServerFails(Exception):
    """The API server returns no validation error for this path: it fails."""


@dataclass(frozen=True, slots=True)
class ReferenceTarget:
    """The target of a path."""

    first: str
    """The first step, in normal form."""
    normal: str
    """The whole path as the server prints it: `a.b`, and `a[b]` for a map key."""
    schema: Schema | None


_NOWHERE = "does not refer to a valid field"
_LONGEST_TOKEN: Final = (1 << 16) - 1
"""The longest token in bytes; at a longer one, the server's scanner stops as if the path ended."""
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


def resolve(path: str, schema: Schema, *, arrays: bool) -> ReferenceTarget:
    """Follow a path through properties and maps; `arrays` allows the notation with brackets."""
    here: Schema | None = schema
    steps: list[str] = []
    tokens = _Tokens(path)
    while (token := tokens.next()) is not None:
        if token == "[":
            if not arrays:
                raise BadReference("array notation is not allowed")
            name = _unquoted(tokens.required())
        elif token == ".":
            name = tokens.required()
        else:
            raise BadReference(f"expected [ or . but got: {token}")
        if here is None:
            raise ServerFails("the path leads into a field without a schema")
        properties = here.get("properties")
        if properties:
            if name not in properties:
                raise BadReference(_NOWHERE)
            here = properties[name]
            # The server prints a step without a name like a key.
            steps.append((f".{name}" if steps else name) if name else "[]")
        elif "additionalProperties" in here:
            values = here["additionalProperties"]
            here = values if isinstance(values, dict) else None
            steps.append(f"[{name}]")
        else:
            raise BadReference(_NOWHERE)
        if token == "[" and (end := tokens.required()) != "]":
            raise BadReference(f"expected ] but got {end}")
    if not steps:
        raise ServerFails("the path has no step that the API server reads")
    return ReferenceTarget(steps[0], "".join(steps), here)


class _Tokens:
    """Names between the delimiters '.', '[' and ']', which are tokens themselves."""

    def __init__(self, path: str) -> None:
        self._rest = path

    def next(self) -> str | None:
        """The next token; None at the end."""
        rest = self._rest
        if not rest:
            return None
        length = self._length(rest)
        if length > _LONGEST_TOKEN // 4 and len(rest[:length].encode()) > _LONGEST_TOKEN:
            self._rest = ""
            return None
        self._rest = rest[length:]
        return rest[:length]

    def required(self) -> str:
        """The next token."""
        token = self.next()
        if token is None:
            raise BadReference("unexpected end of JSON path")
        return token

    @staticmethod
    def _length(rest: str) -> int:
        if rest[0] == "'":
            for i in range(1, len(rest)):
                if rest[i] == "'" and rest[i - 1] != "\\":
                    return i + 1
            return len(rest)
        if rest[0] in ".[]":
            return 1
        return next((i for i, char in enumerate(rest) if char in ".[]"), len(rest))


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise BadReference(f"expected single quoted string but got {token}")
    return _ESCAPE.sub(_meant, token[1:-1])


def _meant(escape: re.Match[str]) -> str:
    if escape[1] not in _ESCAPED:
        raise BadReference(f"invalid string literal: invalid escape char {escape[0]}")
    return _ESCAPED[escape[1]]
