"""Deterministic objects generated from a schema, to try rules before anyone has such objects.

They are as valid as the schema's keywords require: types, enums, bounds, formats, patterns that a known
string matches, keys of lists, required fields. Junctors and CEL rules, which relate several fields, are
ignored: rules between versions do not know them either.
"""

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any, Final

from crdkeeper.apiserver.schema.props import EMBEDDED, LIST_MAP_KEYS, LIST_TYPE, PRESERVE, Schema
from crdkeeper.core.conversion.fieldpaths import ABSENT, Steps
from crdkeeper.core.conversion.samplevalues import candidates

_OWN: Final = ("apiVersion", "kind", "metadata")
_KEYS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight")
_ITEM: Final = "[]"
"""The step of a path to the items of a list or the values of a map."""
_DEEPEST: Final = 32
_MOST_VALUES: Final = 20_000
"""Values in one object; further optional fields are left out."""
_MOST_WORK: Final = 500_000
"""Values of all objects and visited fields, together: converting them takes ten times as long."""
_MOST_ITEMS: Final = 16
_MANY_LEVELS: Final = 3
"""Lists nested this deep have one item: two would double the object with every level."""


def samples(schema: Schema, number: int) -> Iterator[dict[str, Any]]:
    """At most that many objects of a structural schema, without apiVersion, kind and metadata.

    The first has only required fields, the second has all fields. Then objects with one optional field (and
    what must be around it) alternate with mixtures; if there are more fields than turns, the fields are
    spread over the whole schema. Large schemas have fewer objects. A string whose pattern no known string
    matches is left out if it is optional, and is any string if it is required.
    """
    root = _Node(schema, top=True)
    alone = list(root.optional(()))
    turns = max(1, min((number - 1) // 2, _MOST_WORK // (2 * len(alone) + 1)))
    if len(alone) > turns:
        alone = [alone[i * len(alone) // turns] for i in range(turns)]
    work = 0
    for choice in islice(_choices(alone), number):
        yield root.object(choice)
        work += choice.work
        if work > _MOST_WORK:
            return


def _choices(alone: Sequence[Steps]) -> Iterator["_Choice"]:
    yield _Choice()
    yield _Everything()
    for i in count():
        yield _Alone(alone[i // 2], i // 2) if i % 2 == 0 and i // 2 < len(alone) else _Mixture(i)


def around(schema: Schema, place: Steps) -> dict[str, Any]:
    """An object with the field at a place, what must be there, and nothing else.

    The step `[]` leads to the items of a list or the values of a map.
    """
    return _Node(schema, top=True).object(_Alone(place, 0))


def least(schema: Schema) -> Any:
    """A value with only what is required; ABSENT if none is known."""
    return _Node(schema).value(_Choice(), (), 0)


class _Choice:
    """What goes into one object; by itself only what is required."""

    def __init__(self, turn: int = 0) -> None:
        self.left = _MOST_VALUES
        self.work = 0
        """The values so far, and the fields that were looked at."""
        self._turn = turn

    def takes(self, at: Steps) -> bool:
        """Whether to include an optional field."""
        return False

    def items(self, at: Steps, levels: int) -> int:
        """How many items a list has that is nested in that many others."""
        return 0

    def pick(self, values: Sequence[Any]) -> Any:
        """The next of these in turn, so that the strings of an object differ."""
        self._turn += 1
        return values[(self._turn - 1) % len(values)]

    def nothing(self) -> bool:
        """Whether to set a nullable value to null."""
        return False


class _Everything(_Choice):
    """All fields."""

    def takes(self, at: Steps) -> bool:
        return True

    def items(self, at: Steps, levels: int) -> int:
        return 2 if levels < _MANY_LEVELS else 1


class _Alone(_Choice):
    """One optional field, and what is around it."""

    def __init__(self, goal: Steps, turn: int) -> None:
        super().__init__(turn)
        self._goal = goal

    def takes(self, at: Steps) -> bool:
        return self._goal[: len(at)] == at

    def items(self, at: Steps, levels: int) -> int:
        return 1 if self.takes(at) else 0


class _Mixture(_Choice):
    """Some fields, by a pseudo-random sequence."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._state = seed << 32

    def _below(self, limit: int) -> int:
        # SplitMix64: a counter in large steps, its bits mixed.
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (self._state ^ self._state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        return (mixed ^ mixed >> 31) * limit >> 64

    def takes(self, at: Steps) -> bool:
        return self._below(3) > 0

    def items(self, at: Steps, levels: int) -> int:
        return self._below(4 if levels < _MANY_LEVELS else 2)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[self._below(len(values))]

    def nothing(self) -> bool:
        return self._below(4) == 0


class _Node:
    """A schema, analyzed once."""

    def __init__(self, schema: Schema, *, top: bool = False, depth: int = 0) -> None:
        self._schema = schema
        self._required = frozenset(schema.get("required") or ())
        self._top = top
        properties = schema.get("properties") or {}
        values, items = schema.get("additionalProperties"), schema.get("items")
        self._fields: dict[str, _Node] = {}
        self._values: _Node | None = None
        self._items: _Node | None = None
        if depth < _DEEPEST:
            self._fields = {
                name: _Node(each, depth=depth + 1)
                for name, each in properties.items()
                if not (name in _OWN and (top or schema.get(EMBEDDED)))
            }
            self._values = _Node(values, depth=depth + 1) if isinstance(values, dict) else None
            self._items = _Node(items, depth=depth + 1) if isinstance(items, dict) else None
        self._open = values is True or bool(schema.get(PRESERVE))
        self._scalars: Sequence[Any] | None = None

    def optional(self, at: Steps) -> Iterator[Steps]:
        """The paths to all optional fields."""
        for name, node in self._fields.items():
            if name not in self._required:
                yield (*at, name)
            yield from node.optional((*at, name))
        for inner in (self._values, self._items):
            if inner is not None:
                yield from inner.optional((*at, _ITEM))

    def value(self, choice: _Choice, at: Steps, levels: int) -> Any:
        """A value; ABSENT if none is known."""
        choice.left -= 1
        choice.work += 1
        kind = self._schema.get("type")
        if self._schema.get("nullable") and choice.nothing():
            return None
        if kind == "array" and not self._schema.get("enum"):
            return self._list(choice, at, levels)
        if kind == "object" and not self._schema.get("enum"):
            return self.object(choice, at, levels)
        if self._scalars is None:
            self._scalars = candidates(self._schema)
        return choice.pick(self._scalars) if self._scalars else ABSENT

    def object(self, choice: _Choice, at: Steps = (), levels: int = 0) -> dict[str, Any]:
        """An object or a map."""
        made: dict[str, Any] = {}
        choice.work += len(self._fields)
        if self._schema.get(EMBEDDED):
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": choice.pick(_KEYS)}}
        least, most = int(self._schema.get("minProperties") or 0), self._schema.get("maxProperties")
        room = len(self._fields) if most is None else int(most) - len(self._required)
        for name, node in self._fields.items():
            inner = (*at, name)
            if name in self._required:
                self._set(made, name, node, choice, inner, levels)
            elif room > 0 and choice.left > 0 and choice.takes(inner):
                self._set(made, name, node, choice, inner, levels)
                room -= 1
        for name, node in self._fields.items():
            if len(made) >= least:
                break
            if name not in made:
                self._set(made, name, node, choice, (*at, name), levels)
        if self._values is not None:
            number = self._number(choice, at, levels, least, most)
            for name in _KEYS[:number]:
                self._set(made, name, self._values, choice, (*at, _ITEM), levels + 1)
        elif self._open and not self._top and choice.left > 0 and choice.takes((*at, "*")):
            made["unknown-to-the-schema"] = choice.pick(({"a": [1, {"b": True}]}, "x", 0.5, []))
        return made

    def _set(
        self, made: dict[str, Any], name: str, node: "_Node", choice: _Choice, at: Steps, levels: int
    ) -> None:
        value = node.value(choice, at, levels)
        if value is not ABSENT:
            made[name] = value
        elif name in self._required:
            made[name] = "one"

    def _list(self, choice: _Choice, at: Steps, levels: int) -> list[Any]:
        if self._items is None:
            return []
        number = self._number(
            choice, at, levels, int(self._schema.get("minItems") or 0), self._schema.get("maxItems")
        )
        made: list[Any] = []
        known: set[str] = set()
        for _ in range(number * 2):
            if len(made) == number:
                break
            value = self._items.value(choice, (*at, _ITEM), levels + 1)
            name = self._name(value, len(made))
            if value is not ABSENT and name not in known:
                made.append(value)
                known.add(name)
        return made

    def _number(self, choice: _Choice, at: Steps, levels: int, least: int, most: int | None) -> int:
        wanted = choice.items((*at, _ITEM), levels) if choice.left > 0 else 0
        wanted = max(wanted, min(least, _MOST_ITEMS))
        return wanted if most is None else max(0, min(wanted, most))

    def _name(self, item: Any, position: int) -> str:
        """The field by which two items of the list must differ."""
        kind, keys = self._schema.get(LIST_TYPE), self._schema.get(LIST_MAP_KEYS) or ()
        if kind == "map" and isinstance(item, dict):
            fields = self._schema["items"].get("properties") or {}
            return repr([item.get(key, (fields.get(key) or {}).get("default")) for key in keys])
        return repr(item) if kind == "set" else str(position)
