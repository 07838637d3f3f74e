"""The string functions: the standard ones, and version 2 of cel-go's strings extension (ext/strings.go).

Positions count code points.
"""

from typing import Final

from crdkeeper.apiserver.cel.library.format import format_text
from crdkeeper.apiserver.cel.values.display import displayed
from crdkeeper.apiserver.cel.values.overloads import Overload, Table, Unguarded
from crdkeeper.apiserver.cel.values.values import (
    EvaluationError,
    Indeterminate,
    Value,
    elements_of,
    no_overload,
)

MAX_TEXT: Final = 10_000_000
"""The longest string that a function may create: longer ones exceed the server's cost limit."""

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _strings(*values: Value) -> None:
    for each in values:
        if type(each) is not str:
            raise no_overload()


def _contains(text: Value, part: Value) -> bool:
    _strings(text, part)
    return part in text


def _starts_with(text: Value, part: Value) -> bool:
    _strings(text, part)
    return bool(text.startswith(part))


def _ends_with(text: Value, part: Value) -> bool:
    _strings(text, part)
    return bool(text.endswith(part))


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return _last(text, part)
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return _last(text[: offset + len(part)], part)


def _last(text: str, part: str) -> int:
    """Like str.rfind, which may take quadratic time, while str.find takes linear time."""
    at = text[::-1].find(part[::-1])
    return at if at < 0 else len(text) - len(part) - at


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
        if not 0 <= start <= end:
            raise _out_of_range(start)
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for each in (start, end):
        if not 0 <= each <= len(text):
            raise _out_of_range(each)
    return text[start:end]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    found = len(text) + 1 if not old else len(text) // len(old)
    if len(text) + found * len(new) > MAX_TEXT and len(text) + text.count(old) * len(new) > MAX_TEXT:
        raise Indeterminate("a string of more than 10,000,000 characters")
    return text.replace(old, new, max(limit, -1) if limit < 2**31 else -1)


def _split(text: str, separator: str, limit: int = -1) -> list[Value]:
    if limit == 0:
        return []
    if separator:
        return list(text.split(separator, limit - 1 if 0 < limit < 2**31 else -1))
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _join(values: Value, separator: str = "") -> str:
    parts = elements_of(values)
    for each in parts:
        if type(each) is not str:
            raise EvaluationError(f"join: invalid input: {displayed(each)}")
    if sum(map(len, parts)) + len(separator) * len(parts) > MAX_TEXT:
        raise Indeterminate("a string of more than 10,000,000 characters")
    return separator.join(parts)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


MEMBERS: Final[Table] = {
    "contains": Unguarded(_contains),
    "startsWith": Unguarded(_starts_with),
    "endsWith": Unguarded(_ends_with),
    "charAt": (Overload(("string", "int"), _char_at),),
    "indexOf": (
        Overload(("string", "string"), _index_of),
        Overload(("string", "string", "int"), _index_of),
    ),
    "lastIndexOf": (
        Overload(("string", "string"), _last_index_of),
        Overload(("string", "string", "int"), _last_index_of),
    ),
    "lowerAscii": (Overload(("string",), lambda text: text.translate(_LOWER)),),
    "upperAscii": (Overload(("string",), lambda text: text.translate(_UPPER)),),
    "replace": (
        Overload(("string", "string", "string"), _replace),
        Overload(("string", "string", "string", "int"), _replace),
    ),
    "split": (Overload(("string", "string"), _split), Overload(("string", "string", "int"), _split)),
    "substring": (Overload(("string", "int"), _substring), Overload(("string", "int", "int"), _substring)),
    "trim": (Overload(("string",), lambda text: text.strip(_SPACE)),),
    "join": (Overload(("list(string)",), _join), Overload(("list(string)", "string"), _join)),
    "format": (Overload(("string", "list"), format_text),),
}
GLOBALS: Final[Table] = {
    "strings.quote": (Overload(("string",), _quote),),
}
