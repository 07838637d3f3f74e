"""Values as Go prints them, since the API server's messages quote them so."""

from typing import Any

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


def quote(text: str) -> str:
    """A string as the verb %q shows it."""
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
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(value: Any) -> str:
    """A value as encoding/json writes it: sorted keys, no blanks, characters of HTML escaped."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_json_char(each) for each in value) + '"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(json_text(each) for each in value) + "]"
    return "{" + ",".join(f"{json_text(key)}:{json_text(value[key])}" for key in sorted(value)) + "}"


def _json_char(char: str) -> str:
    escape = _JSON_ESCAPES.get(char)
    if escape is not None:
        return escape
    return f"\\u{ord(char):04x}" if ord(char) < 0x20 else char


def number(value: float) -> str:
    """A float in its shortest form, plain up to 21 digits."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    return f"{mantissa}e{'-' if exponent.startswith('-') else '+'}{exponent.lstrip('+-').zfill(2)}"


def displayed(value: Any) -> str:
    """A value as a field error shows it: strings quoted, all else as JSON."""
    return quote(value) if isinstance(value, str) else json_text(value)
