"""What an author most likely means by two fields that differ: which belong together, and by which rule."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from crdkeeper.apiserver.schema.props import INT_OR_STRING, LIST_MAP_KEYS, Schema
from crdkeeper.core.conversion.alike import difference
from crdkeeper.core.conversion.fieldpaths import Steps
from crdkeeper.core.conversion.values import strictly

Inside = Callable[[Schema, Schema], str | None]
"""The rules for two objects within lists or maps, as YAML; None if they need none."""

LIKELY: Final = 0.4
"""From this similarity on, two names are considered to mean the same thing."""

_PLAIN = re.compile(r"[A-Za-z][-\w.$]*")
_MEANT: Final = ("true", "false", "null", "yes", "no", "on", "off")
"""Words that YAML does not read as strings."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_BYTES = re.compile("([KMG]i)B")
_DURATIONS: Final = {
    "nanoseconds": "ns",
    "microseconds": "us",
    "milliseconds": "ms",
    "millis": "ms",
    "ms": "ms",
    "seconds": "s",
    "secs": "s",
    "minutes": "m",
    "hours": "h",
}
_QUANTITIES: Final = {"kib": "Ki", "mib": "Mi", "gib": "Gi", "kb": "k", "mb": "M", "gb": "G", "bytes": ""}
_UNITS: Final = _DURATIONS.keys() | _QUANTITIES.keys()
_SCALARS: Final = frozenset(("string", "integer", "number", "boolean"))
_NUMBERS: Final = frozenset(("integer", "number"))
_KEYS: Final = ("name", "key", "id", "type")


@lru_cache(maxsize=16384)
def words(name: str) -> frozenset[str]:
    """The words of a name, without those that mean a unit."""
    found = _words(name)
    return frozenset(each for each in found if each not in _UNITS) or frozenset(found)


def _words(name: str) -> list[str]:
    return [each.lower() for each in _WORD.findall(_BYTES.sub(r"\1b", name))]


def likeness(one: Steps, other: Steps) -> float:
    """How similar two fields are, from 0 to 1: by their names and, with less weight, by their parents."""
    names = _shared(words(one[-1]), words(other[-1]))
    short, long = sorted((one[-1].lower(), other[-1].lower()), key=len)
    if len(short) > 2 and short in long:
        names = max(names, 0.5)
    if not names:
        return 0.0
    ways = [frozenset().union(*map(words, steps)) for steps in (one, other)]
    return names * (0.5 + 0.5 * _shared(*ways))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def between(hub: Schema, spoke: Schema, names: tuple[str, str], inside: Inside) -> str | None:
    """What the rule between two fields needs besides their names, such as `cast: true`; empty for a move.

    None if no rule fits.
    """
    if not difference(hub, spoke):
        return ""
    types = hub.get("type"), spoke.get("type")
    if "array" in types and types[0] != types[1]:
        return _list_and_other(hub, spoke, inside)
    inner = [each.get("items", each.get("additionalProperties")) for each in (hub, spoke)]
    if types[0] == types[1] and isinstance(inner[0], Mapping) and isinstance(inner[1], Mapping):
        if all(each.get("type") == "object" for each in inner):
            return _each(inside(inner[0], inner[1]))
        return None
    if INT_OR_STRING in hub or INT_OR_STRING in spoke or not _SCALARS.issuperset(types):
        return None
    if hub.get("enum") and spoke.get("enum"):
        return _values(hub["enum"], spoke["enum"])
    if types[0] != types[1] and "string" in types and _NUMBERS.intersection(types):
        return _unit(names)
    return "cast: true"


def _list_and_other(hub: Schema, spoke: Schema, inside: Inside) -> str | None:
    list_, other = (hub, spoke) if hub.get("type") == "array" else (spoke, hub)
    items, values = list_.get("items") or {}, other.get("additionalProperties")
    if isinstance(values, Mapping):
        key = _key(list_, items)
        if key is None:
            return None
        rest = {name: each for name, each in items["properties"].items() if name != key}
        left = {**items, "properties": rest}
        if values.get("type") != "object":
            return f"key: {in_yaml(key)}" if len(rest) == 1 else None
        rules = inside(left, values) if list_ is hub else inside(values, left)
        return f"key: {in_yaml(key)}" if rules is None else f"key: {in_yaml(key)}, {_each(rules)}"
    if not difference(items, other):
        return "wrap: true"
    if items.get("type") == "object" == other.get("type"):
        rules = inside(items, other) if list_ is hub else inside(other, items)
        return f"wrap: true, {_each(rules)}"
    if items.get("type") in _SCALARS and other.get("type") == "string":
        return "separator: ','"
    return None


def _key(list_: Schema, items: Schema) -> str | None:
    properties = items.get("properties") or {}
    named = [*(list_.get(LIST_MAP_KEYS) or ()), *_KEYS]
    return next((each for each in named if (properties.get(each) or {}).get("type") == "string"), None)


def _each(rules: str | None) -> str:
    return f"each: [{rules or '...'}]"


def _values(hub: list[Any], spoke: list[Any]) -> str:
    """Pairs of values that are equal except for their case; `...` where the author must decide."""
    pairs = []
    left = {strictly(each): each for each in spoke}
    for one in hub:
        found = next((key for key, other in left.items() if _bare(other) == _bare(one)), None)
        other = in_yaml(left.pop(found)) if found is not None else "..."
        pairs.append(f"{{hub: {in_yaml(one)}, spoke: {other}}}")
    pairs += [f"{{hub: ..., spoke: {in_yaml(other)}}}" for other in left.values()]
    return f"values: [{', '.join(pairs)}]"


def _bare(value: Any) -> str:
    return str(value).lower().replace("-", "").replace("_", "")


def in_yaml(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _MEANT:
        return value
    return orjson.dumps(value).decode()


def _unit(names: tuple[str, str]) -> str:
    for name in names:
        last = (_words(name) or [""])[-1]
        if last in _DURATIONS:
            return f"duration: {_DURATIONS[last]}"
        if last in _QUANTITIES:
            return f"quantity: {_QUANTITIES[last] or chr(34) * 2}"
    return "cast: true"
