"""Numbers parsed and printed like Go, where the API server's answers show it."""

import math
import re
from typing import Final

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1
MAX_UINT: Final = 2**64 - 1
_MOST_DIGITS: Final = 20
"""Those of MAX_UINT."""

_SPECIAL: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE | re.ASCII)
# Possessive: where two parts can share digits in many ways, a text that does not match takes quadratic time.
_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9_]++(?:\.[0-9_]*+)?|\.[0-9_]++)(?:[eE][+-]?[0-9][0-9_]*+)?", re.ASCII
)
_HEX: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F_]++(?:\.[0-9a-fA-F_]*+)?|\.[0-9a-fA-F_]++)[pP][+-]?[0-9][0-9_]*+", re.ASCII
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]+", re.ASCII)
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def received(value: int) -> int | float:
    """An integer as the API server decodes it: beyond 64 bits it becomes a float.

    Infinite for what no float holds, where the server cannot decode the whole.
    """
    if MIN_INT <= value <= MAX_INT:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def bounded_int(text: str) -> int:
    """The value of decimal digits, which may have a sign; beyond 64 bits only that it is beyond them.

    Go reads any number of leading zeros; Python's int() no more than 4,300 digits.
    """
    digits = text.lstrip("+-0")
    value = int(digits or "0") if len(digits) <= _MOST_DIGITS else MAX_UINT + 1
    return -value if text[0] == "-" else value


def parse_int(text: str) -> int | None:
    """A decimal int64 (strconv.ParseInt), or None."""
    if not _INTEGER.fullmatch(text):
        return None
    value = bounded_int(text)
    return value if MIN_INT <= value <= MAX_INT else None


def parse_uint(text: str) -> int | None:
    """A decimal uint64 (strconv.ParseUint), or None."""
    if not _UNSIGNED.fullmatch(text):
        return None
    value = bounded_int(text)
    return value if value <= MAX_UINT else None


def parse_bool(text: str) -> bool | None:
    """A boolean (strconv.ParseBool), or None."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def parse_float(text: str) -> float | None:
    """A double (strconv.ParseFloat), also hexadecimal, infinity or NaN; None if malformed or out of range."""
    if _SPECIAL.fullmatch(text):
        return float(text)
    if _HEX.fullmatch(text):
        if not _underscores_fit(text) or not any(
            each in "0123456789abcdefABCDEF" for each in _mantissa(text)
        ):
            return None
        try:
            return float.fromhex(text.replace("_", ""))
        except OverflowError:
            return None
    if not _DECIMAL.fullmatch(text) or not any(each.isdigit() for each in re.split("[eE]", text)[0]):
        return None
    if "_" in text and not _underscores_fit(text):
        return None
    value = float(text.replace("_", ""))
    return None if math.isinf(value) else value


def _mantissa(text: str) -> str:
    return re.split("[pP]", text.lower().split("x", 1)[1])[0]


def _underscores_fit(text: str) -> bool:
    """Whether each underscore is between digits, or after a base prefix (strconv.underscoreOK)."""
    text = text.lstrip("+-") if text[:1] in ("+", "-") else text
    digits = "0123456789"
    previous = "^"
    if text[:2].lower() in ("0x", "0o", "0b"):
        digits += "abcdefABCDEF" if text[1] in "xX" else ""
        previous = "0"
        text = text[2:]
    for each in text:
        if each in digits:
            previous = "0"
        elif each == "_":
            if previous != "0":
                return False
            previous = "_"
        elif previous == "_":
            return False
        else:
            previous = "!"
    return previous != "_"


def _scientific(value: float) -> tuple[str, int]:
    """The shortest digits that parse to the same finite double, and the exponent of the first of them."""
    text = repr(abs(value))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    power = int(exponent or 0) + len(whole) - 1
    stripped = digits.lstrip("0")
    power -= len(digits) - len(stripped)
    return (stripped.rstrip("0") or "0"), (power if stripped else 0)


def shortest(value: float) -> str:
    """A double printed with %g or %v: shortest digits, an exponent below -4 or from 6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    digits, power = _scientific(value)
    if power < -4 or power >= 6:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return sign + _plain(digits, power)


def json_number(value: float) -> str:
    """A finite double printed like encoding/json: an exponent below a millionth and from 10^21 on."""
    digits, power = _scientific(value)
    if -6 <= power < 21:
        return plain(value)
    sign = "-" if value < 0 else ""
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{power:+d}"


def plain(value: float) -> str:
    """A finite double without exponent and with the fewest digits (strconv.FormatFloat(x, 'f', -1, 64))."""
    sign = "-" if math.copysign(1, value) < 0 else ""
    return sign + _plain(*_scientific(value))


def _plain(digits: str, power: int) -> str:
    if power < 0:
        return "0." + "0" * (-power - 1) + digits
    if len(digits) <= power + 1:
        return digits + "0" * (power + 1 - len(digits))
    return f"{digits[: power + 1]}.{digits[power + 1 :]}"
