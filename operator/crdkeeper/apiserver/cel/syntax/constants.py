"""The values of literal tokens.

Follows cel-go's parser/unescape.go and the visitors of literals in parser/parser.go.
"""

import math
import re
from typing import Final

from crdkeeper.apiserver.cel.syntax.nodes import Literal

LITERALS: Final = frozenset(("string", "true", "false", "int", "uint", "float", "null", "bytes"))
"""The kinds of tokens that are literals."""

_RANGES: Final = {"int": (-(2**63), 2**63 - 1), "uint": (0, 2**64 - 1)}
_MOST_DIGITS = 20


def literal(kind: str, text: str, offset: int) -> Literal:
    """The literal of a token, with the sign of a number; raises ValueError with the server's message."""
    if kind == "string":
        return Literal(offset, "string", unescape_string(text))
    if kind == "true" or kind == "false":
        return Literal(offset, "bool", kind == "true")
    if kind == "int":
        return Literal(offset, "int", _integer(text, "int"))
    if kind == "uint":
        return Literal(offset, "uint", _integer(text[:-1], "uint"))
    if kind == "float":
        number = float(text)
        if math.isinf(number):
            raise ValueError("invalid double literal")
        return Literal(offset, "double", number)
    if kind == "null":
        return Literal(offset, "null", None)
    return Literal(offset, "bytes", unescape_bytes(text))


def _integer(text: str, kind: str) -> int:
    low, high = _RANGES[kind]
    digits = text.lstrip("-")
    hexadecimal = digits[:2] == "0x"
    # Python refuses to convert thousands of digits; no integer of CEL has that many.
    if len(digits[2:].lstrip("0") if hexadecimal else digits.lstrip("0")) <= _MOST_DIGITS:
        number = int(text, 16 if hexadecimal else 10)
        if low <= number <= high:
            return number
    raise ValueError(f"invalid {kind} literal")


_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPES = re.compile(r"\\(?:([xX])(..)|u(....)|U(........)|([0-3][0-7][0-7])|(.))", re.DOTALL)


def _content(token: str) -> tuple[str, bool]:
    """The content between the quotes of a string token, and whether it is raw."""
    token = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = token[0] in "rR"
    if raw:
        token = token[1:]
    quotes = 3 if len(token) >= 6 and token[:3] in ('"""', "'''") else 1
    return token[quotes:-quotes], raw


def unescape_string(token: str) -> str:
    """The value of a string token.

    Raises ValueError, with the server's message, for an escape that is not a Unicode code point.
    """
    text, raw = _content(token)
    if raw or "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        hexadecimal = match[2] or match[3] or match[4]
        if hexadecimal is not None:
            code = int(hexadecimal, 16)
        elif match[5] is not None:
            code = int(match[5], 8)
        else:
            return _SIMPLE[match[6]]
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError("invalid unicode code point")
        return chr(code)

    return _ESCAPES.sub(replace, text)


def unescape_bytes(token: str) -> bytes:
    """The value of a bytes token; raises ValueError, with the server's message, for a Unicode escape."""
    text, raw = _content(token[1:])
    if raw or "\\" not in text:
        return text.encode()
    value = bytearray()
    end = 0
    for match in _ESCAPES.finditer(text):
        value += text[end : match.start()].encode()
        end = match.end()
        if match[3] is not None or match[4] is not None:
            raise ValueError("unable to unescape string")
        if match[2] is not None:
            value.append(int(match[2], 16))
        elif match[5] is not None:
            value.append(int(match[5], 8))
        else:
            value += _SIMPLE[match[6]].encode()
    value += text[end:].encode()
    return bytes(value)
