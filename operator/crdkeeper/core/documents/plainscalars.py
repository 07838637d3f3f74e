"""What an unquoted scalar of YAML means to kubectl, whose parser differs from PyYAML's: `y` is a boolean."""

import math
import re
from typing import Any, Final

from crdkeeper.apiserver.golang.numbers import MAX_INT, MAX_UINT, MIN_INT

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NUMERIC: Final = frozenset("+-.0123456789")
_DECIMAL: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_RADIX: Final = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]+)|[oO]?([0-7]+)|[bB]([01]+))", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_MAX_DIGITS: Final = 400


def plain_scalar(text: str) -> Any:
    """The value of an unquoted scalar; a string where it is no null, boolean or number."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC or len(text) > _MAX_DIGITS:
        return text
    digits = text.replace("_", "")
    whole = _integer(digits)
    if whole is not None and MIN_INT <= whole <= (MAX_INT if digits[0] in "+-" else MAX_UINT):
        return whole
    # A larger one is a float if it is written like one: without 0x, 0o or 0b.
    number = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    return number if math.isfinite(number) else text  # as Go's parser does with what is out of range


def _integer(digits: str) -> int | None:
    """An integer of any size; None if it is none."""
    if _DECIMAL.fullmatch(digits):
        return int(digits)
    radix = _RADIX.fullmatch(digits)
    if radix:
        for group, base in ((2, 16), (3, 8), (4, 2)):
            if radix[group]:
                return int(radix[1] + radix[group], base)
    return None
