"""Values as Go prints them, since the API server's messages quote them so."""

from decimal import Decimal
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


_MANY_DIGITS = 6


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
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as Python decodes it with surrogateescape
        return f"\\x{code - 0xDC00:02x}"
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
        return _json_number(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(json_text(each) for each in value) + "]"
    return "{" + ",".join(f"{json_text(key)}:{json_text(value[key])}" for key in sorted(value)) + "}"


def _json_char(char: str) -> str:
    escape = _JSON_ESCAPES.get(char)
    if escape is not None:
        return escape
    return f"\\u{ord(char):04x}" if ord(char) < 0x20 else char


def number(value: float) -> str:
    """A float as the verb %v shows it: with an exponent below a ten-thousandth and from a million on."""
    mantissa, exponent = _parts(value)
    if -4 <= exponent < _MANY_DIGITS:
        return _plain(value)
    return f"{mantissa}e{exponent:+03d}"


def _json_number(value: float) -> str:
    """A float as encoding/json writes it: with an exponent below a millionth and from 10^21 on."""
    mantissa, exponent = _parts(value)
    if -6 <= exponent < 21:
        return _plain(value)
    return f"{mantissa}e{exponent:+d}"


def _parts(value: float) -> tuple[str, int]:
    """The shortest digits that stand for a float, with a point after the first, and the exponent for them."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    mantissa = f"{'-' if sign else ''}{text[0]}{'.' if len(text) > 1 else ''}{text[1:]}"
    return mantissa, exponent + len(text) - 1 if value else 0


def _plain(value: float) -> str:
    return f"{Decimal(repr(value)).normalize():f}"


def displayed(value: Any) -> str:
    """A value as a field error shows it: strings quoted, numbers as Go prints them, all else as JSON."""
    if isinstance(value, str):
        return quote(value)
    return number(value) if isinstance(value, float) else json_text(value)
