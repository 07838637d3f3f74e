"""Values that one field's schema probably takes and its successor may refuse: to be tried on both."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from crdkeeper.apiserver.schema.props import INT_OR_STRING, VALIDATIONS, Schema
from crdkeeper.core.compatibility.node import JUNCTORS
from crdkeeper.core.conversion.fieldpaths import ABSENT
from crdkeeper.core.conversion.samples import least, samples
from crdkeeper.core.conversion.samplevalues import candidates as usual
from crdkeeper.core.patterntexts import texts_of

MOST: Final = 200
"""The most candidates for one field."""
_MOST_WORDS: Final = 40
_MOST_NAMED: Final = 4
_MOST_LENGTH: Final = 5_000
_LITERAL: Final = re.compile(r"""'([^'\\]{0,80})'|"([^"\\]{0,80})"|(?<![\w.'"])(-?[0-9]{1,9})(?![\w.'"])""")
_LENGTHS: Final = ("minLength", "maxLength")
_NUMBERS: Final = ("minimum", "maximum", "multipleOf")
_SIZES: Final = ("minItems", "maxItems", "minProperties", "maxProperties")


def values_of(old: Schema, new: Schema) -> Iterator[Any]:
    """Some values; some of them are invalid."""
    if old.get("nullable"):
        yield None
    if old.get("enum"):
        yield from old["enum"]
        return
    kind = "integer-or-string" if old.get(INT_OR_STRING) else old.get("type")
    words = _Words(old, new)
    match kind:
        case "boolean":
            yield from (True, False)
        case "string":
            yield from words.texts(old, new)
        case "integer" | "number":
            yield from words.numbers(old)
        case "integer-or-string":
            yield from words.numbers(old)
            yield from words.texts(old, new)
        case "object":
            yield from _objects(old, words)
        case "array":
            yield from _lists(old, words)


class _Words:
    """What two schemas name: texts and numbers in rules and junctors, and the fields that they require."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self.literals: list[Any] = []
        self._lengths: list[int] = []
        self.sizes: list[int] = []
        self._patterns: list[str] = []
        self.required: list[str] = []
        self.rules = [
            each.get("rule", "")[:_MOST_LENGTH]
            for schema in (new, old)
            for each in (schema.get(VALIDATIONS) or ())[:_MOST_WORDS]
        ]
        for schema in (new, old):
            for key in JUNCTORS:
                given = schema.get(key)
                for branch in given if isinstance(given, list) else [given]:
                    if isinstance(branch, Mapping):
                        self._read(branch, 0)
            self._read_limits(schema)
        for rule in self.rules:
            for one, other, number in _LITERAL.findall(rule):
                self.literals.append(int(number) if number else one or other)
                if number:
                    # It may be compared with a size.
                    self._lengths.append(int(number))
                    self.sizes.append(int(number))
        self.literals = list(dict.fromkeys(self.literals))[:_MOST_WORDS]

    def _read(self, schema: Mapping[str, Any], depth: int) -> None:
        if depth > 4 or len(self.literals) > _MOST_WORDS:
            return
        self._read_limits(schema)
        self.literals += [each for each in schema.get("enum") or () if isinstance(each, str | int | float)]
        self.required += schema.get("required") or ()
        if schema.get("pattern"):
            self._patterns.append(schema["pattern"])
        inner = [*(schema.get("properties") or {}).values()]
        for key in JUNCTORS:
            given = schema.get(key)
            inner += given if isinstance(given, list) else [given]
        for each in inner[:_MOST_WORDS]:
            if isinstance(each, Mapping):
                self._read(each, depth + 1)

    def _read_limits(self, schema: Mapping[str, Any]) -> None:
        self._lengths += [int(schema[each]) for each in _LENGTHS if each in schema]
        self.sizes += [int(schema[each]) for each in _SIZES if each in schema]
        self.literals += [schema[each] for each in _NUMBERS if each in schema]

    def texts(self, old: Schema, new: Schema) -> Iterator[str]:
        """Texts for a field with the schema `old`."""
        lengths = [length + by for length in self._lengths for by in (-1, 0, 1)]
        yield from (each for each in self.literals if isinstance(each, str))
        patterns = [each for each in (new.get("pattern"), *self._patterns) if each]
        made = texts_of(old["pattern"], patterns) if old.get("pattern") else []
        for pattern in patterns:
            made += texts_of(pattern, patterns)
        made += (each for each in usual(old) if isinstance(each, str))
        yield from made
        for length in dict.fromkeys(lengths):
            if 0 <= length <= _MOST_LENGTH:
                yield from (_of_length(each, length) for each in made[:4] if each)

    def numbers(self, old: Schema) -> Iterator[float]:
        """Numbers for a field with the schema `old`."""
        named = [
            each for each in self.literals if isinstance(each, int | float) and not isinstance(each, bool)
        ]
        for by in (0, -1, 1) if old.get("type") != "number" else (0, -1, 1, -0.5, 0.5):
            yield from (each + by for each in named)
        yield from (each for each in usual(old) if isinstance(each, int | float))


def _of_length(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def _objects(old: Schema, words: _Words) -> Iterator[dict[str, Any]]:
    properties: Mapping[str, Schema] = old.get("properties") or {}
    yield from samples(old, 24)
    named = [
        each
        for each in dict.fromkeys([*words.required, *_named(properties, words.rules)])
        if each in properties
    ]
    named = named[:_MOST_NAMED]
    base = least(old)
    if not isinstance(base, dict):
        return
    values = {name: _values(properties[name], words) for name in named}
    # With each subset of the fields that are named, and then with each value of each of them.
    for subset in range(1 << len(named)):
        taken = {name: values[name][0] for i, name in enumerate(named) if subset >> i & 1 and values[name]}
        left = {name: each for name, each in base.items() if name not in named or name in taken}
        yield {**left, **taken}
    whole = {**base, **{name: each[0] for name, each in values.items() if each}}
    for name, each in values.items():
        for value in each[1:]:
            yield {**whole, name: value}
    values_in = old.get("additionalProperties", False)
    item = least(values_in) if isinstance(values_in, dict) else "x"
    if values_in is False or item is ABSENT:
        return
    for size in words.sizes:
        if 0 <= size + 1 < 64:
            for number in (size - 1, size, size + 1):
                yield {f"k{i}": item for i in range(number)}


def _named(properties: Mapping[str, Schema], rules: Iterable[str]) -> Iterator[str]:
    """The fields that rules name."""
    found = set(re.findall(r"\w+", " ".join(rules)))
    return (name for name in properties if name in found)


def _values(schema: Schema, words: _Words) -> list[Any]:
    """Values for a field that is named: usual ones, those of its enum, and words of the rules."""
    found = [*usual(schema)[:4], *(schema.get("enum") or ())[:8]]
    if schema.get("type") == "string" and not schema.get("enum"):
        found += [each for each in words.literals if isinstance(each, str)]
    elif schema.get("type") in ("integer", "number"):
        numbers = [
            each for each in words.literals if isinstance(each, int | float) and not isinstance(each, bool)
        ]
        found += [each + by for each in numbers for by in (0, 1, -1)]
    if not found:
        value = least(schema)
        found = [] if value is ABSENT else [value]
    return found[:_MOST_WORDS]


def _lists(old: Schema, words: _Words) -> Iterator[list[Any]]:
    items = old.get("items")
    if not isinstance(items, dict):
        return
    value = least(items)
    if value is not ABSENT:
        # Twice the same first: a list that becomes a set or a map refuses it.
        yield [value, value]
    yield from (
        each["x"] for each in samples({"type": "object", "properties": {"x": old}, "required": ["x"]}, 12)
    )
    several = list(values_of(items, items))[:_MOST_WORDS]
    for number in {0, 1, 2, *(size + by for size in words.sizes for by in (-1, 0, 1))}:
        if 0 <= number <= 100 and several:
            yield [several[i % len(several)] for i in range(number)]
    for each in several:
        yield [each]
