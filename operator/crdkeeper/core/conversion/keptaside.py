"""What a version cannot hold is kept in an annotation of the object, and comes back with the way back.

When an object leaves a version, its way there and back is tried. Where that would change something, the
annotation keeps three things: where, what was there, and what would be there instead. On the real way back a
field that still is what it would be gets its old value again; one that is something else was edited
meanwhile, and the edit wins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from crdkeeper.core.conversion.fieldpaths import ABSENT
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.schema.props import LIST_MAP_KEYS, LIST_TYPE, Schema

PREFIX: Final = "conversion.crdkeeper.dev/"
MAX_BYTES: Final = 200 * 1024
"""The API server allows 256 KiB for all annotations of an object."""

Step = str | int | Sequence[Any]
"""A key, a position, or the values of the keys of an item of a list-type map."""
Entry = dict[str, Any]
"""`at`, `was` and `is`, of which one that is not there is left out; or `at` and the `order` of a list."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept for one version. Later notes have a higher `order`."""

    order: int
    entries: Sequence[Entry]


def differences(before: Any, after: Any, schema: Schema | None) -> list[Entry]:
    """Where `after` differs from `before`, at the deepest fields that both have."""
    if _alike(before, after):
        return []
    found: list[Entry] = []
    _compare(before, after, schema or {}, (), found)
    return found


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are surely the same: a quick look, as nearly all objects come back as they were."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        one = {key: each for key, each in one.items() if each is not other[key]}
        other = {key: other[key] for key in one}
    try:
        texts = [orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in (one, other)]
    except orjson.JSONEncodeError:
        return False  # too deep or too large for it
    return texts[0] == texts[1]


def _compare(before: Any, after: Any, schema: Schema, at: tuple[Step, ...], found: list[Entry]) -> None:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
        # In one order in all processes: every replica must make the same annotation of an object.
        for key in sorted(before.keys() | after.keys()):
            inner = properties.get(key) or (values if isinstance(values, dict) else {})
            _compare(before.get(key, ABSENT), after.get(key, ABSENT), inner, (*at, key), found)
        return
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        items = schema.get("items")
        inner = items if isinstance(items, dict) else {}
        names, others = _names(before, schema), _names(after, schema)
        if names is not None and others is not None and names.keys() == others.keys():
            for text, (name, i) in names.items():
                _compare(before[i], after[others[text][1]], inner, (*at, name), found)
            if list(names) != list(others):
                found.append({"at": list(at), "order": [name for name, _ in names.values()]})
            return
        changed = [i for i, each in enumerate(before) if not same(each, after[i])]
        if not any(same(before[i], after[j]) for i in changed for j in changed):
            # Positions shift when somebody inserts an item, so that it is known by all that it is.
            found.extend({"at": [*at, i], "was": before[i], "is": after[i]} for i in changed)
            return
    if not same(before, after):
        entry: Entry = {"at": list(at)}
        if before is not ABSENT:
            entry["was"] = before
        if after is not ABSENT:
            entry["is"] = after
        found.append(entry)


def _names(items: list[Any], schema: Schema) -> dict[str, tuple[list[Any], int]] | None:
    """The values of the items' keys with their positions, by a text of them; None for any other list."""
    keys = schema.get(LIST_MAP_KEYS) if schema.get(LIST_TYPE) == "map" else None
    if not keys or not all(isinstance(each, dict) for each in items):
        return None
    names = [[each.get(key) for key in keys] for each in items]
    found = {repr(name): (name, i) for i, name in enumerate(names)}
    return found if len(found) == len(items) else None


def same(one: Any, other: Any) -> bool:
    """Equality of JSON. 1 and 1.0 are the same, as the API server writes one for the other."""
    if one is other:
        return True
    if type(one) is not type(other):
        numbers = (int, float)
        return type(one) in numbers and type(other) in numbers and bool(one == other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def written(note: Note) -> str:
    """The annotation's text. Raises Unconvertible if it is too large or too deep for one."""
    try:
        text = orjson.dumps({"order": note.order, "fields": note.entries}, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise Unconvertible(f"something cannot be kept aside: {error}") from None
    if len(text) > MAX_BYTES:
        raise Unconvertible(
            f"{len(text):,} bytes would have to be kept in an annotation, {MAX_BYTES:,} at most can"
        )
    return text.decode()


def read(text: Any) -> Note:
    """What an annotation holds. What somebody made unreadable is worth nothing any more."""
    try:
        found = orjson.loads(text)
    except (orjson.JSONDecodeError, TypeError):
        return Note(0, [])
    order, entries = (found.get("order"), found.get("fields")) if isinstance(found, dict) else (0, [])
    known = [each for each in entries if _is_entry(each)] if isinstance(entries, list) else []
    return Note(order if isinstance(order, int) else 0, known)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("at"), list) and bool(entry["at"])


def restore(value: Any, entries: Sequence[Entry], schema: Schema | None) -> Any:
    """`value` with what was kept aside back in its place; shares with `value` what does not change."""
    for entry in entries:
        value = _restored(value, entry["at"], entry, schema or {})
    return value


def _restored(value: Any, at: Sequence[Any], entry: Entry, schema: Schema) -> Any:
    if not at and "order" in entry:
        return _ordered(value, entry["order"], schema)
    if not at:
        return entry.get("was", ABSENT) if same(value, entry.get("is", ABSENT)) else value
    step, rest = at[0], at[1:]
    if isinstance(value, dict) and isinstance(step, str):
        properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
        inner = properties.get(step) or (values if isinstance(values, dict) else {})
        before = value.get(step, ABSENT)
        after = _restored(before, rest, entry, inner)
        if after is before:
            return value
        if after is ABSENT:
            return {key: each for key, each in value.items() if key != step}
        return {**value, step: after}
    if isinstance(value, list):
        i = _position(value, step, entry, schema)
        if i is None:
            return value
        items = schema.get("items")
        after = _restored(value[i], rest, entry, items if isinstance(items, dict) else {})
        return value if after is value[i] or after is ABSENT else [*value[:i], after, *value[i + 1 :]]
    return value


def _ordered(items: Any, order: Any, schema: Schema) -> Any:
    """A list-type map in this order of its items' keys; those that are not named come last."""
    names = _names(items, schema) if isinstance(items, list) else None
    if names is None or not isinstance(order, list):
        return items
    places = {repr(name): i for i, name in enumerate(order)}
    ranked = sorted(names, key=lambda text: places.get(text, len(places)))
    return [items[names[text][1]] for text in ranked]


def _position(items: list[Any], step: Any, entry: Entry, schema: Mapping[str, Any]) -> int | None:
    if isinstance(step, int):
        if 0 <= step < len(items) and same(items[step], entry.get("is")):
            return step
        return next((i for i, each in enumerate(items) if same(each, entry.get("is"))), None)
    keys = schema.get(LIST_MAP_KEYS)
    if not isinstance(step, list) or not keys:
        return None
    names = ([each.get(key) for key in keys] if isinstance(each, dict) else None for each in items)
    return next((i for i, name in enumerate(names) if name == step), None)
