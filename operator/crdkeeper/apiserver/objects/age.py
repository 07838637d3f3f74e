"""The age of a time, in the few characters of a column (apimachinery util/duration HumanDuration)."""

from typing import Final

from crdkeeper.apiserver.cel.values.times import MIN_SECONDS, SECOND, parse_timestamp
from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT

INVALID: Final = "<invalid>"
"""What a column shows for a text that is not a time, and for a time in the future."""
UNKNOWN: Final = "<unknown>"
"""What a column shows for the zero time."""

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_YEAR: Final = 365 * _DAY


def age_text(time: str, now: int) -> str:
    """The age of an RFC 3339 time at `now`, in nanoseconds since 1970, such as 5d3h."""
    if time in ("", "null"):
        return UNKNOWN
    timestamp = parse_timestamp(time)
    if timestamp is None:
        return INVALID
    if timestamp.order == MIN_SECONDS * SECOND:
        return UNKNOWN
    return duration_text(max(min(now - timestamp.order, MAX_INT), MIN_INT))


def duration_text(nanoseconds: int) -> str:
    """A duration in a few digits: 95s, 4m5s, 7h30m, 5d3h, 2y40d. Above -2 s, a negative one counts as 0."""
    if nanoseconds <= -2 * SECOND:
        return INVALID
    seconds = max(nanoseconds, 0) // SECOND
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, big: int, name: str, small: int, rest_name: str) -> str:
    rest = seconds % big // small
    return f"{seconds // big}{name}" + (f"{rest}{rest_name}" if rest else "")
