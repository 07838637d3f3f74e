"""Quantities (k8s.io/apimachinery pkg/api/resource): Kubernetes' CEL compares, adds and converts them.

A quantity is an int64 with a power of ten if that fits, else a decimal number of any size: asInteger and
isInteger depend on which it is, so this module keeps the distinction.
"""

import math
from typing import Final

from crdkeeper.apiserver.cel.values.overloads import Overload, Table
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Opaque, Value, no_overload
from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT, bounded_int

_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO: Final = -9
_MAX_DIGITS: Final = 18
_MAX_EXPONENT: Final = 1000
"""Larger powers of ten are left to the server, which multiplies them out."""
_MAX_TEXT: Final = 4_000


class Quantity(Opaque):
    """A number times a power of ten.

    `small` says that the server keeps it as an int64. `derived` marks the result of an addition, which is a
    pointer in the server: nothing equals it, not even the same quantity.
    """

    __slots__ = ("derived", "number", "scale", "small")
    type_name = "kubernetes.Quantity"

    def __init__(self, number: int, scale: int, *, small: bool, derived: bool = False) -> None:
        self.number = number
        self.scale = scale
        self.small = small
        self.derived = derived

    def equals(self, other: Value) -> bool:
        """Quantities are equal by value; there is no overload for a derived one on the right."""
        if type(other) is not Quantity or other.derived:
            raise no_overload()
        return self.compare(other) == 0

    def compare(self, other: "Quantity") -> int:
        """-1, 0 or 1."""
        scale = min(self.scale, other.scale)
        one, two = self.at(scale), other.at(scale)
        return (one > two) - (one < two)

    def at(self, scale: int) -> int:
        """The number in units of a power of ten no greater than its own."""
        return int(self.number * 10 ** (self.scale - scale))

    def whole(self) -> int | None:
        """The value as an int64; None if the server cannot represent it (Quantity.AsInt64)."""
        if not self.small or self.scale < 0:
            return None
        value = self.at(0)
        return value if MIN_INT <= value <= MAX_INT else None

    def approximate(self) -> float:
        """The nearest double (Quantity.AsApproximateFloat64)."""
        try:
            base = float(self.number)
        except OverflowError:
            base = math.copysign(math.inf, self.number)
        return base * _power_of_ten(self.scale) if self.scale else base

    def plus(self, other: "Quantity", sign: int = 1) -> "Quantity":
        """The sum or, with sign -1, the difference."""
        number = other.number * sign
        if self.small and other.small:
            if number == 0:
                return Quantity(self.number, self.scale, small=True, derived=True)
            if self.number == 0:
                return Quantity(number, other.scale, small=True, derived=True)
        scale = min(self.scale, other.scale)
        one, two = self.at(scale), number * 10 ** (other.scale - scale)
        fits = (
            self.small and other.small and all(MIN_INT <= each <= MAX_INT for each in (one, two, one + two))
        )
        return Quantity(one + two, scale, small=fits, derived=True)


def _power_of_ten(exponent: int) -> float:
    """math.Pow10, which multiplies two powers from tables."""
    if exponent < -323:
        return 0.0
    if exponent > 308:
        return math.inf
    high, low = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{high * 32}") / float(f"1e{low}")
    return float(f"1e{high * 32}") * float(f"1e{low}")


def _split(text: str) -> tuple[bool, str, str, str, str]:
    """Sign, number, its digits before and after the point, and suffix (parseQuantityString)."""
    positive = text[0] != "-"
    at = 1 if text[0] in "+-" else 0
    start = at
    while at < len(text) and text[at] == "0":
        at += 1
    if at == len(text):
        return positive, "0", "0", "", ""
    digits = _digits(text, at)
    whole, at = text[at:digits], digits
    if at == len(text):
        return positive, text, whole, "", ""
    fraction = ""
    if text[at] == ".":
        end = _digits(text, at + 1)
        fraction, at = text[at + 1 : end], end
    number = text[:at]
    suffix = at
    while at < len(text) and text[at] in "eEinumkKMGTP":
        at += 1
    if at < len(text) and text[at] in "+-":
        at += 1
    if _digits(text, at) < len(text) or start > len(text):
        raise EvaluationError(_FORMAT)
    return positive, number, whole or "0", fraction, text[suffix:]


def _digits(text: str, at: int) -> int:
    while at < len(text) and text[at] in "0123456789":
        at += 1
    return at


def _suffix(suffix: str) -> tuple[int, int] | None:
    """Base and exponent of a suffix."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return 2, _BINARY[suffix]
    if len(suffix) > 1 and suffix[0] in "eE":
        digits = suffix[1:]
        if not digits.lstrip("+-").isdigit() or len(digits.lstrip("+-")) < len(digits) - 1:
            return None
        exponent = bounded_int(digits)
        return (10, exponent) if MIN_INT <= exponent <= MAX_INT else None
    return None


def parse_quantity(text: str) -> Quantity:
    """Parse a quantity (resource.ParseQuantity). Raises EvaluationError; Indeterminate for huge numbers."""
    if not text:
        raise EvaluationError(_FORMAT)
    if len(text) > _MAX_TEXT:
        raise Indeterminate("a quantity of more than 4,000 characters")
    positive, number, whole, fraction, suffix = _split(text)
    interpreted = _suffix(suffix)
    if interpreted is None:
        raise EvaluationError("unable to parse quantity's suffix")
    base, exponent = interpreted
    if abs(exponent) > _MAX_EXPONENT:
        raise Indeterminate(f"a quantity with the exponent {exponent}")
    sign = 1 if positive else -1
    if base == 10:
        scale, precision, factor = exponent, _MAX_DIGITS - len(whole) - len(fraction), 1
    else:
        scale, factor = 0, 1 << exponent
        precision = -1 if fraction else 15 - len(whole) - exponent * 3 // 10 - 1
    scale -= len(fraction)
    if precision >= 0 and scale >= _NANO:
        value = int(whole + fraction) * factor
        if value <= MAX_INT:
            return Quantity(sign * value, scale, small=True)
    return _large(number, sign, base, exponent)


def _large(text: str, sign: int, base: int, exponent: int) -> Quantity:
    digits = text.lstrip("+-")
    before, _, after = digits.partition(".")
    if not before + after:
        raise EvaluationError("unable to parse numeric part of quantity")
    number, scale = int(before + after), -len(after)
    if base == 10:
        scale += exponent
    else:
        number *= 1 << exponent
    if number:
        number, scale = _rounded(number, scale)
    if base == 2 and number * 10 ** max(scale, 0) > MAX_INT * 10 ** max(-scale, 0):
        number, scale = MAX_INT, 0
    return Quantity(sign * number, scale, small=False)


def _rounded(number: int, scale: int) -> tuple[int, int]:
    """Rounded up to nine decimal places."""
    if scale >= _NANO:
        return number * 10 ** (scale - _NANO), _NANO
    divisor = 10 ** (_NANO - scale)
    return -(-number // divisor), _NANO


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except EvaluationError:
        return False
    return True


def _as_integer(quantity: Quantity) -> int:
    value = quantity.whole()
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


def _compare(one: Quantity, two: Quantity) -> int:
    """-1, 0 or 1 (Quantity.Cmp). Beside a big decimal, the first one becomes one in the server, for good."""
    if not two.small:
        one.small = False
    return one.compare(two)


def _int(value: int) -> Quantity:
    return Quantity(value, 0, small=True)


_Q: Final = Quantity.type_name

MEMBERS: Final[Table] = {
    "isGreaterThan": (Overload((_Q, _Q), lambda one, two: _compare(one, two) == 1),),
    "isLessThan": (Overload((_Q, _Q), lambda one, two: _compare(one, two) == -1),),
    "compareTo": (Overload((_Q, _Q), _compare),),
    "asApproximateFloat": (Overload((_Q,), Quantity.approximate),),
    "asInteger": (Overload((_Q,), _as_integer),),
    "isInteger": (Overload((_Q,), lambda quantity: quantity.whole() is not None),),
    "add": (
        Overload((_Q, _Q), Quantity.plus),
        Overload((_Q, "int"), lambda quantity, value: quantity.plus(_int(value))),
    ),
    "sub": (
        Overload((_Q, _Q), lambda quantity, other: quantity.plus(other, -1)),
        Overload((_Q, "int"), lambda quantity, value: quantity.plus(_int(value), -1)),
    ),
}
GLOBALS: Final[Table] = {
    "quantity": (Overload(("string",), parse_quantity),),
    "isQuantity": (Overload(("string",), _is_quantity),),
    "sign": (Overload((_Q,), lambda quantity: (quantity.number > 0) - (quantity.number < 0)),),
}
