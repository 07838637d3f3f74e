"""Durations parsed and formatted like Go's time package."""

import re
from typing import Final

from crdkeeper.apiserver.golang.numbers import MAX_INT

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_TERM: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)", re.ASCII)
# Digits without a unit are not tried again from each of them, which would take quadratic time.
WORDED: Final = re.compile(r"(?<![0-9])([0-9]+)[\t\n\f\r ]*([A-Za-z\u00b5]+)", re.ASCII)
"""The number and the unit of each part of a duration in words, such as 3 days (strfmt.ParseDuration)."""


def parse(text: str) -> int | None:
    """A duration such as -1h30.5m in nanoseconds (time.ParseDuration), or None."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total = 0
    at = 0
    while at < len(rest):
        term = _TERM.match(rest, at)
        unit = _UNITS.get(term[4]) if term else None
        if term is None or unit is None or not (term[1] or term[3]):
            return None
        value = _term(term[1], term[3] or "", unit)
        if value is None:
            return None
        total += value
        if total > 2**63:
            return None
        at = term.end()
    negative = text[:1] == "-"
    if not rest or (total > MAX_INT and not negative):
        return None
    return -total if negative else total


def shown(nanoseconds: int) -> str:
    """The text of a duration, such as 1h30m0.5s (Duration.String)."""
    sign, left = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    if left == 0:
        return "0s"
    for unit, name in (("ns", "ns"), ("us", "\u00b5s"), ("ms", "ms")):
        if left < _UNITS[unit] * 1000:
            return f"{sign}{_decimal(left, _UNITS[unit])}{name}"
    hours, left = divmod(left, _UNITS["h"])
    minutes, left = divmod(left, _UNITS["m"])
    whole = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{whole}{_decimal(left, _UNITS['s'])}s"


def _decimal(value: int, unit: int) -> str:
    """The value in a unit that is a power of ten."""
    whole, part = divmod(value, unit)
    return f"{whole}.{part:0{len(str(unit)) - 1}}".rstrip("0") if part else str(whole)


def _term(whole: str, fraction: str, unit: int) -> int | None:
    digits = whole.lstrip("0")
    if len(digits) > 19:
        return None
    value = int(digits or 0)
    if value > 2**63 // unit:
        return None
    value *= unit
    if fraction:
        parts, scale = _fraction(fraction)
        if parts:
            value += int(float(parts) * (float(unit) / scale))
            if value > 2**63:
                return None
    return value


def _fraction(digits: str) -> tuple[int, float]:
    """The digits that fit into an int64, and their power of ten (time.leadingFraction)."""
    value, scale = 0, 1.0
    for each in digits:
        if value > MAX_INT // 10:
            break
        following = value * 10 + int(each)
        if following > 2**63:
            break
        value, scale = following, scale * 10
    return value, scale
