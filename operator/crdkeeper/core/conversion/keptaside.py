"""What a version cannot hold is kept in an annotation of the object, and is restored on the way back.

When an object leaves a version, the round trip is tried. Where that would change something, the annotation
keeps three things: the place, the value there, and the value that would be there instead. On the real way
back, a field that still has the latter gets its old value again; any other value means that it was edited
meanwhile, and the edit wins.

Anyone who can write the object can write the annotation. It is untrusted input; `restoring` and `arrival`
decide what of it is believed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from crdkeeper.apiserver.schema.props import LIST_MAP_KEYS, LIST_TYPE, Schema
from crdkeeper.core.conversion.fieldpaths import ABSENT
from crdkeeper.core.conversion.nesting import Deep, dumps, loads, plain
from crdkeeper.core.conversion.values import Unconvertible

MOST_CHARACTERS: Final = 8 << 20
"""The longest note."""
_MOST_VALUES: Final = 1_000_000
"""Commas and opening brackets of a note: enough for a whole object, and bounded by a worker's memory."""
_DEEPEST: Final = 100
"""Steps to a place at most."""

Step = str | int | Sequence[Any]
"""A key, a position, or the key values of an item of a list-type map."""
Entry = dict[str, Any]
"""`at`, `was` and `is`, without those that are absent; or `at` and the `order` of a list."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept for one version."""

    entries: Sequence[Entry]
    unreadable: int = 0
    """How many entries are invalid; 1 for an annotation that is invalid as a whole."""


def differences(before: Any, after: Any, schema: Schema | None) -> list[Entry]:
    """The places where `after` differs from `before`, at the deepest fields that both have."""
    if _alike(before, after):
        return []
    found: list[Entry] = []
    _compare(before, after, schema or {}, (), found)
    return found


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are certainly equal: a quick check, as nearly all objects come back unchanged."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        one = {key: each for key, each in one.items() if each is not other[key]}
        other = {key: other[key] for key in one}
    return dumps(one, sort=True) == dumps(other, sort=True)


def _compare(before: Any, after: Any, schema: Schema, at: tuple[Step, ...], found: list[Entry]) -> None:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
        # The same order in all processes: every replica must write the same annotation for an object.
        for key in sorted(before.keys() | after.keys()):
            inner = properties.get(key) or (values if isinstance(values, dict) else {})
            _compare(before.get(key, ABSENT), after.get(key, ABSENT), inner, (*at, key), found)
        return
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        items = schema.get("items")
        inner = items if isinstance(items, dict) else {}
        keys = schema.get(LIST_MAP_KEYS) if schema.get(LIST_TYPE) == "map" else None
        positions, others = named(before, keys), named(after, keys)
        if positions is not None and others is not None and positions.keys() == others.keys():
            for name, i in positions.items():
                _compare(before[i], after[others[name]], inner, (*at, _name(before[i], keys)), found)
            if list(positions) != list(others):
                found.append({"at": list(at), "order": [_name(each, keys) for each in before]})
            return
        changed = [i for i, each in enumerate(before) if not same(each, after[i])]
        if {canonical(before[i]) for i in changed}.isdisjoint(canonical(after[i]) for i in changed):
            # Positions shift when someone inserts an item, so its whole content identifies it.
            found.extend({"at": [*at, i], "was": before[i], "is": after[i]} for i in changed)
            return
    if not same(before, after):
        entry: Entry = {"at": list(at)}
        if before is not ABSENT:
            entry["was"] = before
        if after is not ABSENT:
            entry["is"] = after
        found.append(entry)


def named(items: Sequence[Any], keys: Sequence[str] | None) -> dict[bytes, int] | None:
    """The positions of the items of a list-type map by their keys; None for any other list."""
    if not keys or not all(isinstance(each, dict) for each in items):
        return None
    found = {canonical(_name(each, keys)): i for i, each in enumerate(items)}
    return found if len(found) == len(items) else None


def _name(item: Mapping[str, Any], keys: Sequence[str] | None) -> list[Any]:
    return [item.get(key) for key in keys or ()]


def canonical(value: Any) -> bytes:
    """JSON that is the same for all equal values."""
    # A copy: a string from orjson keeps the buffer in which it was written, kilobytes for some letters.
    return bytes(memoryview(dumps(_plain(value), sort=True)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return list(map(_plain, value)) if isinstance(value, list) else plain(value)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON. 1 and 1.0 are equal, because the API server writes one for the other."""
    if one is other:
        return True
    if type(one) is Deep or type(other) is Deep:
        return canonical(one) == canonical(other)
    if type(one) is not type(other):
        numbers = (int, float)
        return type(one) in numbers and type(other) in numbers and bool(one == other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def written(entries: Sequence[Entry]) -> str:
    """The note as text. Raises Unconvertible if it is too long to be read again."""
    text = dumps({"fields": entries}, sort=True).decode()
    if not _readable(text):
        raise Unconvertible(
            f"{len(text):,} bytes would have to be kept aside; {MOST_CHARACTERS:,} at most can be, "
            f"with {_MOST_VALUES:,} commas and brackets"
        )
    return text


def read(text: Any) -> Note:
    """Parse an annotation. Unreadable entries are ignored."""
    try:
        found = loads(text) if _readable(text) else None
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return Note([], 1)
    entries = found.get("fields") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        return Note([], 1)
    known = [each for each in entries if _is_entry(each)]
    return Note(known, len(entries) - len(known))


def _readable(text: Any) -> bool:
    return (
        isinstance(text, str)
        and len(text) <= MOST_CHARACTERS
        and sum(map(text.count, (",", "[", "{"))) <= _MOST_VALUES
    )


def _is_entry(entry: Any) -> bool:
    at = entry.get("at") if isinstance(entry, dict) else None
    if not isinstance(at, list) or not 0 < len(at) <= _DEEPEST:
        return False
    *way, last = at
    return (
        all(map(_is_step, at))
        and not any(type(each) is int for each in way)
        # If an item is identified by its key, compare its fields.
        and type(last) is not list
        and isinstance(entry.get("order", []), list)
    )


def _is_step(step: Any) -> bool:
    if type(step) is list:
        return bool(step) and not any(isinstance(each, list | dict) for each in step)
    return type(step) is str or (type(step) is int and step >= 0)
