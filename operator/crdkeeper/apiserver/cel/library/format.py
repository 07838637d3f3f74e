"""string.format: clauses formatted as by version 2 of cel-go's strings extension (ext/formatting.go).

%f and %e use Go's localized printer for American English: it groups thousands, writes powers of ten with
superscript digits, and infinity as a symbol.
"""

import math
from collections.abc import Callable
from typing import Final

from crdkeeper.apiserver.cel.library.conversion import to_string
from crdkeeper.apiserver.cel.values.times import Duration, Timestamp
from crdkeeper.apiserver.cel.values.unordered import Unordered, unknown_order
from crdkeeper.apiserver.cel.values.values import (
    CelType,
    EvaluationError,
    Indeterminate,
    MapValue,
    Uint,
    Value,
    elements_of,
    is_list,
    read,
    type_name,
)
from crdkeeper.apiserver.golang.numbers import parse_float, parse_int
from crdkeeper.apiserver.golang.text import quote

DEFAULT_PRECISION: Final = 6
MAX_PRECISION: Final = 200
"""More digits are left to the server, whose printer then has limits of its own."""

_SUPERSCRIPT: Final = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
_SPECIAL_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
Clause = Callable[[Value], str]


def format_text(text: str, values: Value) -> str:
    """`text.format(values)`. Raises EvaluationError, and Indeterminate for quirks of Go's implementation."""
    args = elements_of(values)
    made: list[str] = []
    at = used = 0
    while at < len(text):
        start = text.find("%", at)
        if start < 0:
            made.append(text[at:])
            break
        made.append(text[at:start])
        if text.startswith("%%", start):
            made.append("%")
            at = start + 2
            continue
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        if start + 1 >= len(text):
            raise EvaluationError("unexpected end of string")
        clause, at = _clause(text, start + 1)
        made.append(_formatted(clause, read(args[used])))
        used += 1
    return "".join(made)


def _formatted(clause: Clause, value: Value) -> str:
    try:
        return clause(value)
    except EvaluationError as error:
        raise EvaluationError(f"error during formatting: {error.message}") from None


def _clause(text: str, at: int) -> tuple[Clause, int]:
    precision: int | None = None
    if text[at] == ".":
        end = at + 1
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if end >= len(text):
            raise _unparsed("error while parsing precision: could not find end of precision specifier")
        precision, at = _precision(text[at + 1 : end]), end
    verb = text[at]
    made = _CLAUSES.get(verb)
    if made is not None:
        return made, at + 1
    if verb in "fe":
        digits = DEFAULT_PRECISION if precision is None else precision
        floating = _fixed if verb == "f" else _scientific
        return (lambda value: floating(value, digits)), at + 1
    if ord(verb) >= 0x80:
        verb = chr(verb.encode()[0])
    raise _unparsed(f'unrecognized formatting clause "{verb}"')


def _precision(digits: str) -> int:
    value = parse_int(digits)
    if value is None:
        reason = "invalid syntax" if not digits else "value out of range"
        raise _unparsed(
            "error while parsing precision: error while converting precision to integer: "
            f"strconv.Atoi: parsing {quote(digits)}: {reason}"
        )
    if value > MAX_PRECISION:
        raise Indeterminate(f"a number with {value} digits")
    return value


def _unparsed(reason: str) -> EvaluationError:
    return EvaluationError(f"could not parse formatting clause: {reason}")


def _text(value: Value) -> str:
    kind = type(value)
    if is_list(value):
        return _list(value)
    if isinstance(value, MapValue):
        return _map(value)
    if value is None:
        return "null"
    if kind is CelType:
        return str(value.name)
    if kind is bytes:
        return _decoded(value)
    if kind in (int, Uint, float, bool, str, Timestamp, Duration):
        return to_string(value)
    raise EvaluationError(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
        f"durations, and timestamps, was given {type_name(value)}"
    )


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Indeterminate("the text of bytes that are not UTF-8") from None


def _nested(value: Value) -> str:
    """A value within a list or map (clauseForType and quoteForCEL)."""
    value = read(value)
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is bytes:
        return "b" + quote(_decoded(value))
    if kind is float:
        if math.isnan(value) or math.isinf(value):
            return quote("NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf")
        return f"{value:.{DEFAULT_PRECISION}f}"
    if kind is Timestamp or kind is Duration:
        name = "timestamp" if kind is Timestamp else "duration"
        return f"{name}({quote(to_string(value))})"
    if kind in (int, Uint, bool, CelType) or value is None or is_list(value) or isinstance(value, MapValue):
        return _text(value)
    raise EvaluationError(f"no formatting function for {type_name(value)}")


def _list(value: Value) -> str:
    if type(value) is Unordered:
        raise unknown_order()
    return f"[{', '.join(map(_nested, elements_of(value)))}]"


def _map(value: MapValue) -> str:
    pairs = []
    for key in value.key_list():
        if type(key) not in (str, bool, int, Uint):
            raise EvaluationError(f"no formatting function for map key of type {type_name(key)}")
        pairs.append((_nested(key), _nested(value.find(key))))
    if len(value) > len(pairs):
        raise Indeterminate("the text of an object with fields that CEL does not see")
    return "{" + ", ".join(f"{key}:{text}" for key, text in sorted(pairs, key=lambda pair: pair[0])) + "}"


def _decimal(value: Value) -> str:
    if type(value) is not int and type(value) is not Uint:
        raise EvaluationError(f"decimal clause can only be used on integers, was given {type_name(value)}")
    return str(int(value))


def _fixed(value: Value, precision: int) -> str:
    return _floating(value, precision, "f")


def _scientific(value: Value, width: int) -> str:
    # cel-go omits the dot, so Go takes the precision for a width.
    return _floating(value, DEFAULT_PRECISION, "e").rjust(width)


def _floating(value: Value, precision: int, verb: str) -> str:
    if type(value) is str and value in _SPECIAL_NUMBERS:
        value = parse_float(value)
    if type(value) is not float:
        clause = "fixed-point" if verb == "f" else "scientific"
        raise EvaluationError(f"{clause} clause can only be used on doubles, was given {type_name(value)}")
    if math.isnan(value):
        return "NaN"
    sign = "-" if value < 0 else ""
    if math.isinf(value):
        return sign + "\u221e"
    if verb == "f":
        return sign + f"{abs(value):,.{precision}f}"
    mantissa, exponent = f"{abs(value):.{precision}e}".split("e")
    power = f"{'-' if exponent[0] == '-' else ''}{exponent[1:]}"
    return f"{sign}{mantissa}\u00d710{power.translate(_SUPERSCRIPT)}"


def _based(base: str, name: str) -> Clause:
    def clause(value: Value) -> str:
        if type(value) is int or type(value) is Uint:
            return f"{int(value):{base}}"
        if base == "b" and type(value) is bool:
            return "1" if value else "0"
        raise EvaluationError(f"{name}, was given {type_name(value)}")

    return clause


def _hexadecimal(letter: str) -> Clause:
    def clause(value: Value) -> str:
        if type(value) is int or type(value) is Uint:
            return f"{int(value):{letter}}"
        if type(value) is str or type(value) is bytes:
            data: bytes = value if type(value) is bytes else str(value).encode()
            return data.hex().upper() if letter == "X" else data.hex()
        raise EvaluationError(
            f"only integers, byte buffers, and strings can be formatted as hex, was given {type_name(value)}"
        )

    return clause


_CLAUSES: Final[dict[str, Clause]] = {
    "s": _text,
    "d": _decimal,
    "b": _based("b", "only integers and bools can be formatted as binary"),
    "o": _based("o", "octal clause can only be used on integers"),
    "x": _hexadecimal("x"),
    "X": _hexadecimal("X"),
}
