"""Decodes a document like the API server's JSON decoder does for typed fields.

All later checks see only the result: unknown fields and nulls are gone, and so is a field that Go cannot
distinguish from an absent one (false, an empty string).
"""

import binascii
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, Protocol

from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT, received
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.violation import Report

ABSENT: Final = object()
_EXACT: Final = 1 << 53
"""Below, each integer is a floating-point number."""


class FieldType(Protocol):
    """How one field is decoded."""

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        """The value; ABSENT, after a report, if it has another type. `raw` is not None."""


def described(raw: Any) -> str:
    """The JSON type of a value."""
    if isinstance(raw, bool):
        return "a boolean"
    if isinstance(raw, str):
        return "a string"
    if isinstance(raw, int | float):
        return "a number"
    return "an array" if isinstance(raw, list) else "an object"


def mismatch(raw: Any, wanted: str, path: Path, report: Report) -> Any:
    """Report a value of a wrong type."""
    report.invalid(rules.DECODE, path, raw if _short(raw) else [], f"must be {wanted}, not {described(raw)}")
    return ABSENT


def _short(raw: Any) -> bool:
    return isinstance(raw, bool | int | float) or (isinstance(raw, str) and len(raw) < 100)


class Text:
    """A string; `pointer` if an empty one differs from an absent one."""

    def __init__(self, *, pointer: bool = False) -> None:
        self._pointer = pointer

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if not isinstance(raw, str):
            return mismatch(raw, "a string", path, report)
        return raw if raw or self._pointer else ABSENT


class Flag:
    """A boolean; `pointer` if false differs from an absent one."""

    def __init__(self, *, pointer: bool = False) -> None:
        self._pointer = pointer

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if not isinstance(raw, bool):
            return mismatch(raw, "a boolean", path, report)
        return raw if raw or self._pointer else ABSENT


class Integer:
    """An integer of that many bits; `pointer` if zero differs from an absent one."""

    def __init__(self, bits: int = 64, *, pointer: bool = True) -> None:
        self._pointer = pointer
        self._limit = 1 << (bits - 1)
        self._wanted = f"a {bits}-bit integer"

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)  # as in a YAML file with 1.0
        if isinstance(raw, bool) or not isinstance(raw, int) or not -self._limit <= raw < self._limit:
            return mismatch(raw, self._wanted, path, report)
        return raw if raw or self._pointer else ABSENT


class Number:
    """A floating-point number."""

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            return mismatch(raw, "a number", path, report)
        try:
            return float(raw)
        except OverflowError:
            return mismatch(raw, "a 64-bit number", path, report)


_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T([01]?\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?(Z|[+-]([01]\d|2[0-4]):([0-5]\d|60))",
    re.ASCII,
)


class Time:
    """A time in RFC 3339."""

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        found = _TIME.fullmatch(raw) if isinstance(raw, str) else None
        if found:
            try:
                date(int(found[1]) or 4, int(found[2]), int(found[3]))
            except ValueError:
                found = None
        if found is None:
            return mismatch(raw, "a time such as 2006-01-02T15:04:05Z", path, report)
        return raw


class Base64:
    """Bytes in base64, or as an array of numbers, which Go's decoder takes as well."""

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        """The bytes; ABSENT if empty."""
        if isinstance(raw, list):
            numbers = [0 if each is None else each for each in raw]
            if all(type(each) is int and 0 <= each <= 0xFF for each in numbers):
                return bytes(numbers) or ABSENT
        if not isinstance(raw, str):
            return mismatch(raw, "a string in base64", path, report)
        try:
            decoded = binascii.a2b_base64(raw.replace("\r", "").replace("\n", ""), strict_mode=True)
        except ValueError:
            return mismatch([], "in base64", path, report)
        return decoded or ABSENT


class Anything:
    """Any JSON; null counts as absent."""

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        return _all_received(raw) if _has_long_integer(raw) else raw


def _has_long_integer(value: Any) -> bool:
    # Without recursion, as in the copy: decoding does not fail because a value is deep.
    waiting = [value]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if kind is dict:
            waiting.extend(each.values())
        elif kind is list:
            waiting.extend(each)
        elif kind is int and not MIN_INT <= each <= MAX_INT:
            return True
    return False


def _all_received(value: Any) -> Any:
    """A copy with each integer as the server decodes it."""
    whole = [value]
    waiting: list[Any] = [whole]
    while waiting:
        at = waiting.pop()
        for key in list(at) if type(at) is dict else range(len(at)):
            each = at[key]
            if type(each) is dict or type(each) is list:
                at[key] = each.copy()
                waiting.append(at[key])
            elif type(each) is int:
                at[key] = received(each)
    return whole[0]


class ListOf:
    """An array; a null in it means an empty item."""

    def __init__(self, item: FieldType, empty: Any) -> None:
        self._item = item
        self._empty = empty

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if not isinstance(raw, list):
            return mismatch(raw, "an array", path, report)
        item = self._item
        decoded = []
        for i, each in enumerate(raw):
            value = ABSENT if each is None else item.decode(each, path.index(i), report)
            decoded.append(self._empty if value is ABSENT else value)
        return decoded


class MapOf:
    """An object with arbitrary keys."""

    def __init__(self, value: FieldType, empty: Any) -> None:
        self._value = value
        self._empty = empty

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if not isinstance(raw, dict):
            return mismatch(raw, "an object", path, report)
        value = self._value
        decoded = {}
        for key, each in raw.items():
            one = ABSENT if each is None else value.decode(each, path.key(key), report)
            decoded[key] = self._empty if one is ABSENT else one
        return decoded


class Struct:
    """An object with known fields; the others are dropped with a warning."""

    def __init__(self, fields: Mapping[str, FieldType]) -> None:
        self.fields = fields

    def decode(self, raw: Any, path: Path, report: Report) -> Any:
        if not isinstance(raw, dict):
            return mismatch(raw, "an object", path, report)
        fields = self.fields
        decoded: dict[str, Any] = {}
        for key, each in raw.items():
            kind = fields.get(key)
            if kind is None:
                report.warn(rules.UNKNOWN_FIELD, path.child(key), f'unknown field "{path.child(key)}"')
            elif type(each) is str and each and isinstance(kind, Text):
                decoded[key] = each  # most fields are, and need no path
            elif type(each) is int and -_EXACT < each < _EXACT and isinstance(kind, Number):
                decoded[key] = float(each)  # neither
            elif each is not None:
                value = kind.decode(each, path.child(key), report)
                if value is not ABSENT:
                    decoded[key] = value
        return decoded
