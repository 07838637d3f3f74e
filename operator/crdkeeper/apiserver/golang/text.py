"""Values printed like Go does, because the API server's messages quote them that way."""

import re
from typing import Any

from crdkeeper.apiserver.golang.numbers import json_number, shortest

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}
_JSON_ESCAPES = {
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    '"': '\\"',
    "\\": "\\\\",
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_JSON_SPECIAL = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029]')


class StructValue(dict[str, Any]):
    """The fields of a Go struct, which are printed in their order."""


def quote(text: str) -> str:
    """A string printed with %q."""
    return '"' + "".join(_quoted(each) for each in text) + '"'


def _quoted(char: str) -> str:
    escape = _ESCAPES.get(char)
    if escape is not None:
        return escape
    if char == " " or char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as Python decodes it with surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(value: Any) -> str:
    """A value printed like encoding/json: sorted keys but for a StructValue, no blanks, HTML escaped."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + _JSON_SPECIAL.sub(_json_escape, value) + '"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(json_text(each) for each in value) + "]"
    keys = value if isinstance(value, StructValue) else sorted(value)
    return "{" + ",".join(f"{json_text(key)}:{json_text(value[key])}" for key in keys) + "}"


def _json_escape(found: re.Match[str]) -> str:
    char = found[0]
    return _JSON_ESCAPES.get(char) or f"\\u{ord(char):04x}"


def displayed(value: Any) -> str:
    """A value printed like in a field error: strings quoted, numbers as in Go, everything else as JSON."""
    if isinstance(value, str):
        return quote(value)
    return shortest(value) if isinstance(value, float) else json_text(value)
