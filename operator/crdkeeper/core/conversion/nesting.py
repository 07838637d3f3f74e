"""JSON nested as deep as an API server accepts it: 10,000 levels.

If a schema preserves unknown fields, anyone can write such objects. No rule reaches that deep, so what is
below a certain level is a single value, `Deep`, which is moved, kept aside and compared as text. Recursive
functions can process everything else.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import chain
from typing import Any, Final, cast

import orjson

DEEPEST: Final = 9_997
"""Levels that an object can have in the answer of a conversion webhook, where it starts at the third level:
the API server reads 10,000 (maxNestingDepth in sigs.k8s.io/json).
"""
_SHALLOW: Final = 128
"""Levels of what contains any `Deep`."""
_FEW: Final = 200
"""Text with no more brackets is not nested too deeply for orjson, which writes 254 levels."""
_TOKEN: Final = re.compile(rb'[ \t\n\r]*([][{},:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^][{},:"\s]+)', re.DOTALL)
_CLOSING: Final[Mapping[bytes, bytes]] = {b"[": b"]", b"{": b"}"}


class _Unreadable(Exception):
    """The text is not JSON."""


class Deep:
    """A list or an object at a deep level. (Not a dataclass: orjson would serialize one by itself.)"""

    __slots__ = ("levels", "text")

    def __init__(self, text: bytes, levels: int) -> None:
        self.text = text
        """JSON that is the same for all equal values, because API servers sort keys."""
        self.levels = levels

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Deep) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class _Met(threading.local):
    deep = False


_met = _Met()


def loads(text: bytes | bytearray | str) -> Any:
    """Parse JSON; parts that are nested too deep become `Deep`. Raises orjson.JSONDecodeError."""
    data = text.encode() if isinstance(text, str) else text
    few = data.count(b"[") + data.count(b"{") <= _FEW
    try:
        value = orjson.loads(data)
        if not few:
            orjson.dumps(value)
    except orjson.JSONDecodeError:
        if few:
            raise
    except orjson.JSONEncodeError:
        pass
    else:
        return value
    _met.deep = True
    try:
        return _Reader().read(bytes(data))
    except _Unreadable:
        raise orjson.JSONDecodeError("no JSON", "", 0) from None


def dumps(value: Any, *, sort: bool = False) -> bytes:
    """Serialize a value as JSON, with sorted keys if `sort`."""
    option = orjson.OPT_SORT_KEYS if sort else None
    try:
        return orjson.dumps(value, None, option)
    except orjson.JSONEncodeError:
        pass  # it contains a `Deep`, or a number too large for orjson
    deep: list[bytes] = []
    try:
        text = _named(value, deep, "", option)
    except orjson.JSONEncodeError:
        return _joined(value, sort=sort)
    # orjson.Fragment is meant for this, but orjson 3.13 writes some beyond its buffer. No value contains a
    # digest of all values.
    name = sha256(b"".join((text, *deep))).hexdigest()
    pieces = _named(value, [], name, option).split(f'"{name}"'.encode())
    return b"".join(chain.from_iterable(zip(pieces, (*deep, b""), strict=True)))


def length(value: Any) -> int:
    """The bytes of a value as JSON; 0 if it is nested too deep to be processed at all."""
    try:
        return len(dumps(value))
    except RecursionError:
        return 0


def _named(value: Any, deep: list[bytes], name: str, option: int | None) -> bytes:
    """The text, with this name for each `Deep`, whose texts are added to `deep`."""

    def written(value: Any) -> str:
        if not isinstance(value, Deep):
            raise TypeError
        deep.append(value.text)
        return name

    try:
        return orjson.dumps(value, written, option)
    except orjson.JSONEncodeError as error:
        # Work may be aborted anywhere, also while orjson calls us: then it raises this instead.
        if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
            raise error.__cause__ from None
        raise


def _joined(value: Any, *, sort: bool) -> bytes:
    """The text of what is too deep, or a number too large, for orjson, from the texts of its parts."""
    if isinstance(value, dict):
        keys = sorted(value) if sort else value
        parts = (orjson.dumps(key) + b":" + dumps(value[key], sort=sort) for key in keys)
        return b"{" + b",".join(parts) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(dumps(each, sort=sort) for each in value) + b"]"
    return json.dumps(value).encode()


def plain(value: Any) -> Any:
    """A number as the API server writes it: whole floats as integers, integers beyond 64 bits as floats."""
    if isinstance(value, float):
        return int(value) if abs(value) < 2**63 and value.is_integer() else value
    return value if not isinstance(value, int) or abs(value) < 2**63 else float(value)


def forget() -> None:
    """Assume from now on that what is read contains no `Deep`."""
    _met.deep = False


def without_abysses(value: Any) -> Any:
    """The value without parts that are too deep for an API server to read in an answer, if there are any."""
    return _bounded(value, DEEPEST) if _met.deep else value


def _bounded(value: Any, most: int) -> Any:
    if isinstance(value, dict):
        return {key: _bounded(each, most - 1) for key, each in value.items() if not _abyss(each, most - 1)}
    if isinstance(value, list):
        return [None if _abyss(each, most - 1) else _bounded(each, most - 1) for each in value]
    return value


def _abyss(value: Any, most: int) -> bool:
    return isinstance(value, Deep) and value.levels > most


_Step = Callable[[bytes], Any]
"""Takes a token, and returns the function for the next one."""


class _Reader:
    """A JSON parser without recursion."""

    def __init__(self) -> None:
        self._closing: list[bytes] = []
        """The closing brackets to expect, of all levels."""
        self._made: list[Any] = [[]]
        """The open lists and objects, within one more list; not those at deep levels."""
        self._keys: list[str] = []
        self._text: list[bytes] = []
        """The text of a deep value while one is read."""
        self._levels = 0

    def read(self, data: bytes) -> Any:
        """Return the value. Raises orjson.JSONDecodeError."""
        at, step = 0, cast(_Step, self._value)
        while step != self._end:
            found = _TOKEN.match(data, at)
            if found is None:
                raise _Unreadable
            at = found.end()
            step = step(found[1])
        if data[at:].strip(b" \t\n\r"):
            raise _Unreadable
        return self._made[0][0]

    def _value(self, token: bytes) -> _Step:
        closing = _CLOSING.get(token)
        if closing is None:
            self._put(orjson.loads(token))
            return self._next()
        self._closing.append(closing)
        depth = len(self._closing)
        if depth > _SHALLOW:
            self._text.append(token)
            self._levels = max(self._levels, depth - _SHALLOW)
        else:
            self._made.append([] if token == b"[" else {})
        return self._first_item if token == b"[" else self._first_key

    def _first_item(self, token: bytes) -> _Step:
        return self._after(token) if token == b"]" else self._value(token)

    def _first_key(self, token: bytes) -> _Step:
        return self._after(token) if token == b"}" else self._key(token)

    def _key(self, token: bytes) -> _Step:
        key = orjson.loads(token)
        if not isinstance(key, str):
            raise _Unreadable
        if self._text:
            self._text.append(orjson.dumps(key))
        else:
            self._keys.append(key)
        return self._colon

    def _colon(self, token: bytes) -> _Step:
        if token != b":":
            raise _Unreadable
        if self._text:
            self._text.append(token)
        return self._value

    def _after(self, token: bytes) -> _Step:
        if token == b",":
            if self._text:
                self._text.append(token)
            return self._value if self._closing[-1] == b"]" else self._key
        if token != self._closing.pop():
            raise _Unreadable
        if not self._text:
            self._put(self._made.pop())
        else:
            self._text.append(token)
            if len(self._closing) == _SHALLOW:
                text, self._text = self._text, []
                self._put(Deep(b"".join(text), self._levels))
                self._levels = 0
        return self._next()

    def _end(self, token: bytes) -> _Step:
        raise _Unreadable

    def _next(self) -> _Step:
        return self._after if self._closing else self._end

    def _put(self, value: Any) -> None:
        if self._text:
            self._text.append(orjson.dumps(plain(value)))
        elif isinstance(self._made[-1], list):
            self._made[-1].append(value)
        else:
            self._made[-1][self._keys.pop()] = value
