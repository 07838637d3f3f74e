"""The string formats that the API server validates, as parsed by Go's libraries (kube-openapi's strfmt).

A format that is not in the list, such as one that only documents, is not validated.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from functools import cache
from typing import Final

import re2

from crdkeeper.apiserver.golang import durations
from crdkeeper.apiserver.golang.numbers import MAX_INT
from crdkeeper.apiserver.golang.strings import to_lower
from crdkeeper.apiserver.schema import netformats
from crdkeeper.apiserver.schema.finding import UndecidedValue

Check = Callable[[str], bool]
"""Whether a string has the format. Raises UndecidedValue."""


def check_of(format: str) -> Check | None:
    """The check of a format; None if the server has none. Dashes in the name do not matter."""
    return _CHECKS.get(format.replace("-", ""))


def is_supported(format: str, type_: str) -> bool:
    """Whether a format has an effect in a CRD; the server ignores all others (StripUnsupportedFormats)."""
    if type_ in ("", "string"):
        return format.replace("-", "") in _CHECKS
    return is_numeric(format, type_)


def is_numeric(format: str, type_: str) -> bool:
    """Whether a format limits the range of a number of this type."""
    return format in _NUMERIC.get(type_, ())


_NUMERIC: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


_PATTERN_MEMORY: Final = 64 << 20


def _matches(pattern: str) -> Check:
    @cache
    def search() -> Callable[[str], object]:
        # Compiled on first use: with Unicode classes, the tables take 20 MB.
        options = re2.Options()
        options.max_mem = _PATTERN_MEMORY
        options.log_errors = False
        found: Callable[[str], object] = re2.compile(pattern, options).search
        return found

    def matches(text: str) -> bool:
        return search()(_encodable(text)) is not None

    return matches


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UndecidedValue("the text holds half of a surrogate pair") from None
    return text


_HOSTNAME = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}]"
    r"(([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
_IS_ANY_HOSTNAME = _matches(_HOSTNAME)
# The program for all of Unicode is large and slow.
_IS_ASCII_HOSTNAME = _matches(_HOSTNAME.replace(r"\p{S}", "$+<=>^`|~").replace(r"\p{L}", ""))


def _is_hostname(text: str) -> bool:
    data = _encodable(text).encode()
    if len(data) > 255 or any(len(each) > 63 for each in data.split(b".")):
        return False
    return _IS_ASCII_HOSTNAME(text) if text.isascii() else _IS_ANY_HOSTNAME(text)


_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.DOTALL)


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    # Year 0 is a leap year in Go and does not exist in Python.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 4, month)[1]


def _is_datetime(text: str) -> bool:
    parts = to_lower(text).split("t")
    if len(text.encode(errors="replace")) < 4 or len(parts) < 2 or not _is_date(parts[0]):
        return False
    # What follows a second "t" is ignored, and a dot may be any character except a line break.
    clock = _CLOCK.fullmatch(parts[1])
    if not clock or "\n" in parts[1]:
        return False
    return clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)


def _is_duration(text: str) -> bool:
    if durations.parse(text) is not None:
        return True
    known = False
    for number, unit in durations.WORDED.findall(text):
        digits = number.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > MAX_INT:
            return False
        word = unit.lower()
        known = known or any(word in names or word.startswith(names[-1]) for names in _UNITS)
    return known


_DIGITS_ONLY = re.compile("[^0-9]+")
_CREDIT_CARD = _matches(
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
    r"3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"
)


def _is_credit_card(text: str) -> bool:
    digits = _DIGITS_ONLY.sub("", text)
    if not _CREDIT_CARD(digits):
        return False
    total = 0
    for i, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + i % 2)
        total += value - 9 if value >= 10 else value
    return total % 10 == 0


_BLANKS = re.compile(r"[\t\n\f\r -]+")
_ISBN10 = re.compile("[0-9]{9}X|[0-9]{10}")
_ISBN13 = re.compile("[0-9]{13}")


def _is_isbn10(text: str) -> bool:
    digits = _BLANKS.sub("", text)
    if not _ISBN10.fullmatch(digits):
        return False
    values = [10 if each == "X" else int(each) for each in digits]
    return sum(i * value for i, value in enumerate(values, start=1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _BLANKS.sub("", text)
    if not _ISBN13.fullmatch(digits):
        return False
    total = sum(int(each) * (1, 3)[i % 2] for i, each in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def _is_isbn(text: str) -> bool:
    return _is_isbn10(text) or _is_isbn13(text)


_SSN = _matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$")
_HEX24 = re.compile("[0-9a-fA-F]{24}")
_SHORT_NAME = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def _is_ssn(text: str) -> bool:
    return len(text) == 11 and _SSN(text)


def _is_object_id(text: str) -> bool:
    return bool(_HEX24.fullmatch(text))


def _is_short_name(text: str) -> bool:
    return len(text) <= 63 and bool(_SHORT_NAME.fullmatch(text))


def _is_long_name(text: str) -> bool:
    return len(text) <= 253 and all(_SHORT_NAME.fullmatch(part) for part in text.split("."))


def _is_anything(_: str) -> bool:
    return True


_COLOR_PART = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"

_CHECKS: Final[dict[str, Check]] = {
    "bsonobjectid": _is_object_id,
    "uri": netformats.is_request_uri,
    "email": netformats.is_email,
    "hostname": _is_hostname,
    "ipv4": netformats.is_ipv4,
    "ipv6": netformats.is_ipv6,
    "cidr": netformats.is_cidr,
    "mac": netformats.is_mac,
    "uuid": _matches(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    "uuid3": _matches(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    "uuid4": _matches(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    "uuid5": _matches(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    "isbn": _is_isbn,
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _is_ssn,
    "hexcolor": _matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _matches(rf"^rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)$"),
    "byte": _matches(r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$"),
    "password": _is_anything,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_datetime,
    "k8sshortname": _is_short_name,
    "k8slongname": _is_long_name,
}
