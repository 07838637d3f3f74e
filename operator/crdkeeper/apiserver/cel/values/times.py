"""Durations and timestamps: parsing, formatting and their parts (Go's time, common/types of cel-go)."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Opaque, Value
from crdkeeper.apiserver.golang import durations
from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT, bounded_int, plain
from crdkeeper.apiserver.golang.text import quote

SECOND: Final = 10**9
MIN_SECONDS: Final = -62135596800
"""0001-01-01T00:00:00Z in seconds since 1970."""
MAX_SECONDS: Final = 253402300799
"""9999-12-31T23:59:59Z in seconds since 1970."""

_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_ATOI: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NO_ZONE: Final = re.compile(r"(?=.*[^\w+.-])[^/\0]{1,60}", re.ASCII | re.DOTALL)
"""What no database of time zones has as a name, as it has a character that is in none."""


class Duration(Opaque):
    """A span of time in nanoseconds, as an int64."""

    __slots__ = ("order", "written")
    type_name = "google.protobuf.Duration"

    def __init__(self, nanoseconds: int) -> None:
        self.order = nanoseconds
        self.written: str | None = None
        """The text that it was read from in data, unless it is computed."""

    def equals(self, other: Value) -> bool:
        """Durations are equal if they have the same length."""
        return type(other) is Duration and other.order == self.order

    def _in(self, unit: int) -> float:
        """The duration in units, as Go's Hours, Minutes and Seconds compute it."""
        whole, rest = divmod(abs(self.order), unit)
        value = float(whole) + float(rest) / unit
        return -value if self.order < 0 else value

    def whole(self, unit: int) -> int:
        """The duration in whole units of that many nanoseconds, truncated like cel-go's getters."""
        return int(self._in(unit))

    def milliseconds(self) -> int:
        return -(-self.order // 10**6) if self.order < 0 else self.order // 10**6

    def text(self) -> str:
        """Format like string(duration): seconds, without exponent."""
        return plain(self._in(SECOND)) + "s"


class Timestamp(Opaque):
    """A point in time with nanoseconds, and the zone it was written in (as seconds east of Greenwich)."""

    __slots__ = ("offset", "order", "written")
    type_name = "google.protobuf.Timestamp"

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        self.order = nanoseconds
        self.offset = offset
        self.written: str | None = None
        """The text that it was read from in data, unless it is computed."""

    def equals(self, other: Value) -> bool:
        """Timestamps are equal if they are the same moment; the zone does not matter."""
        return type(other) is Timestamp and other.order == self.order

    def text(self) -> str:
        """Format like string(timestamp) (RFC 3339, in its own zone)."""
        fields = civil(self.order // SECOND + self.offset)
        nanoseconds = self.order % SECOND
        fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
        minutes = abs(self.offset) // 60
        sign = "-" if self.offset < 0 else "+"
        zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset else "Z"
        year, month, day, hour, minute, second = fields
        return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}{zone}"


def parse_duration(text: str) -> Duration | None:
    """A duration such as -1h30.5m (time.ParseDuration), or None."""
    nanoseconds = durations.parse(text)
    return None if nanoseconds is None else Duration(nanoseconds)


def parse_timestamp(text: str) -> Timestamp | None:
    """A timestamp parsed like time.Parse(time.RFC3339, …), which accepts slightly more than the RFC; or None.

    The year may be 0: the caller checks the range.
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    if not (
        1 <= month <= 12 and 1 <= day <= days_in(year, month) and hour < 24 and minute < 60 and second < 60
    ):
        return None
    nanoseconds = int((found[7] or "0")[:9].ljust(9, "0"))
    offset = 0
    if found[8]:
        hours, minutes = int(found[9]), int(found[10])
        if hours > 24 or minutes > 60:
            return None
        offset = (hours * 60 + minutes) * 60 * (-1 if found[8] == "-" else 1)
    seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    return Timestamp(seconds * SECOND + nanoseconds, offset)


def in_range(timestamp: Timestamp) -> bool:
    """Whether a timestamp is within the years 1 to 9999 of UTC."""
    return MIN_SECONDS <= timestamp.order // SECOND <= MAX_SECONDS


def shifted(timestamp: Timestamp, nanoseconds: int) -> Timestamp:
    """A timestamp moved by that many nanoseconds. Raises EvaluationError if that leaves the range."""
    moved = Timestamp(timestamp.order + nanoseconds, timestamp.offset)
    if not in_range(moved):
        raise EvaluationError("timestamp overflow")
    return moved


def between(later: Timestamp, earlier: Timestamp) -> Duration:
    """The duration from one timestamp to another. Raises EvaluationError if it does not fit into an int64."""
    seconds = later.order // SECOND - earlier.order // SECOND
    nanoseconds = later.order - earlier.order
    if not MIN_INT <= seconds * SECOND <= MAX_INT or not MIN_INT <= nanoseconds <= MAX_INT:
        raise EvaluationError("integer overflow")
    return Duration(nanoseconds)


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the Gregorian calendar; any year, even 0 and 10000."""
    years = year - (month <= 2)
    era, of_era = divmod(years, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def civil(seconds: int) -> tuple[int, int, int, int, int, int]:
    """Year, month, day, hour, minute and second of seconds since 1970."""
    days, of_day = divmod(seconds, 86400)
    era, of_era = divmod(days + 719468, 146097)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    day = of_year - (153 * part + 2) // 5 + 1
    return year + era * 400 + (month <= 2), month, day, of_day // 3600, of_day % 3600 // 60, of_day % 60


def days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def zone_offset(timestamp: Timestamp, zone: str) -> int:
    """Seconds east of Greenwich in a zone: an IANA name, or hours and minutes (stdlib.inTimeZone).

    Raises EvaluationError for a zone that does not exist, Indeterminate for one that only the server can
    know.
    """
    hours, colon, minutes = zone.partition(":")
    if colon:
        whole, part = _atoi(hours), _atoi(minutes)
        if abs(whole) > 10**6 or abs(part) > 10**6:
            raise Indeterminate(f"the time zone {zone!r}")
        return (whole * 60 + (-part if zone[0] == "-" else part)) * 60
    if zone in ("", "UTC"):
        return 0
    if ".." in zone or zone[0] in "/\\":
        raise EvaluationError("time: invalid location name")
    if zone == "Local":
        raise Indeterminate("the local time zone of the API server")
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=timestamp.order // SECOND)
        offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
    except ZoneInfoNotFoundError:
        if _NO_ZONE.fullmatch(zone):
            raise EvaluationError(f"unknown time zone {zone}") from None
        raise Indeterminate(f"the time zone {zone!r}, which is unknown here") from None
    except (OSError, ValueError, OverflowError):
        raise Indeterminate(f"the time zone {zone!r}") from None
    return 0 if offset is None else int(offset.total_seconds())


def _atoi(text: str) -> int:
    if not _ATOI.fullmatch(text):
        raise EvaluationError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    value = bounded_int(text)
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return value
