"""Paths of the form `.spec.color` or `.spec['color']` that a CRD uses to point into its own schema."""

from dataclasses import dataclass

from crdkeeper.apiserver.schema.props import Schema


class BadReference(Exception):
    """The path leads nowhere; the text is the API server's."""


class ServerFails(Exception):
    """The API server has no answer of its own here: it fails on this path."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a path leads: its first field, the whole path in normal form, and the schema there."""

    first: str
    normal: str
    schema: Schema | None


_NOWHERE = "does not refer to a valid field"


def resolve(path: str, schema: Schema, *, arrays: bool) -> Target:
    """Follows a path through properties and maps; `arrays` allows the notation with brackets."""
    here: Schema | None = schema
    first, normal = "", ""
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
            normal = f"{normal}.{name}" if normal else name
        elif "additionalProperties" in here:
            values = here["additionalProperties"]
            here = values if isinstance(values, dict) else None
            normal = f"{normal}[{name}]"
        else:
            raise BadReference(_NOWHERE)
        first = first or name
        if token == "[" and (end := tokens.required()) != "]":
            raise BadReference(f"expected ] but got {end}")
    return Target(first, normal, here)


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
    if "\\" in token:
        # Go's rules for escapes inside of quotes are its own; the text is only needed to find a property.
        raise ServerFails("the path has escape sequences")
    return token[1:-1]
