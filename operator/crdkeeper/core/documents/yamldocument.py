"""Reads YAML like kubectl does, and records the position of each field.

PyYAML's own loader neither keeps positions nor limits the expansion of aliases, and it is several times
slower than its parser's events, from which the documents are built here. Plain scalars have the same meaning
as in kubectl's parser, which differs from PyYAML's for floats and dates. JSON is read as YAML.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import orjson
import yaml

from crdkeeper.core.documents.plainscalars import plain_scalar

MAX_DEPTH = 300
MAX_NODES = 300_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_KEY: Final = object()


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a file, counted from 1."""

    line: int = 1
    column: int = 1


class Unreadable(Exception):
    """A file cannot be read as YAML."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.position = position or Position()


class TooBig(Unreadable):
    """A file contains more than is read."""


@dataclass(slots=True)
class Document:
    """One YAML document: plain data with separate positions."""

    value: Any
    position: Position
    duplicates: list[tuple[str, Position]]
    """Keys that occur twice in a mapping."""
    _marks: Mapping[int, Any] = field(default_factory=dict)

    def find(self, steps: tuple[str | int, ...]) -> Position:
        """The position of a field; for a missing one, that of its nearest existing parent."""
        at, found = self.value, None
        for step in steps:
            marks = self._marks.get(id(at))
            if isinstance(marks, dict):
                mark = marks.get(step)
            elif isinstance(marks, list) and isinstance(step, int) and step < len(marks):
                mark = marks[step]
            else:
                mark = None
            if mark is None:
                break
            found = mark
            at = at[step]
        return self.position if found is None else _position(found)


def documents(text: str) -> Iterator[Document]:
    """The non-empty documents of a file. Raises Unreadable if one is not YAML."""
    start = text.lstrip()[:1]
    if start in ("{", "["):
        yield from _json(text)
    else:
        yield from _yaml(text)


_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON may contain unescaped; for YAML some of it is not text, and some ends a line."""


def _json(text: str) -> Iterator[Document]:
    try:
        # YAML does not allow tabs for indentation; JSON strings do not contain any, either.
        several = _yaml(text.replace("\t", " "))
        found = list(islice(several, 2))
    except TooBig:
        raise
    except Unreadable as unreadable:
        # JSON has escape sequences that YAML lacks. Serialized again it is YAML, but then positions are lost.
        try:
            written = orjson.dumps(orjson.loads(text)).decode()
        except ValueError:
            raise unreadable from None
        written = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
        yield from (Document(each.value, Position(), []) for each in _yaml(written))
    else:
        # Two documents are not JSON, so that the rest can only be YAML and need not be kept until the end.
        yield from found
        yield from several


def _yaml(text: str) -> Iterator[Document]:
    try:
        builder = _Builder()
        for event in yaml.parse(text, Loader=_LOADER):
            document = builder.take(event)
            if document is not None:
                if document.value is not None:
                    yield document
                builder = _Builder()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(
            f"not YAML: {error.problem or error.context}", _position(mark) if mark else None
        ) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {error}") from None


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


class _Frame:
    """A mapping or sequence in progress."""

    __slots__ = ("anchor", "key", "key_mark", "mark", "marks", "merged", "size", "value")

    def __init__(self, value: Any, marks: Any, event: Any) -> None:
        self.value = value
        self.marks = marks
        self.anchor: str | None = event.anchor
        self.mark = event.start_mark
        self.key: Any = _NO_KEY
        self.key_mark: Any = None
        self.merged: list[Any] = []
        self.size = 1


class _Builder:
    """Builds one document from events."""

    def __init__(self) -> None:
        self._stack: list[_Frame] = []
        self._marks: dict[int, Any] = {}
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._duplicates: list[tuple[str, Position]] = []
        self._root: Any = None
        self._root_mark: Any = None
        self._nodes = 0

    def take(self, event: Any) -> Document | None:
        """Process the next event; returns the document at its end."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            value = _scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
            self._add(value, event.start_mark, 1, plain=event.implicit[0])
        elif kind is yaml.MappingStartEvent:
            self._push(_Frame({}, {}, event))
        elif kind is yaml.SequenceStartEvent:
            self._push(_Frame([], [], event))
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._pop()
        elif kind is yaml.AliasEvent:
            self._alias(event)
        elif kind is yaml.DocumentEndEvent:
            position = _position(self._root_mark or event.start_mark)
            return Document(self._root, position, self._duplicates, self._marks)
        return None

    def _push(self, frame: _Frame) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise TooBig(f"nested deeper than {MAX_DEPTH} levels", _position(frame.mark))
        if frame.anchor:
            self._anchors[frame.anchor] = None
        self._stack.append(frame)

    def _pop(self) -> None:
        frame = self._stack.pop()
        for source in frame.merged:
            self._merge(frame, source)
        self._marks[id(frame.value)] = frame.marks
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.size)
        self._add(frame.value, frame.mark, frame.size)

    def _alias(self, event: Any) -> None:
        at = _position(event.start_mark)
        if event.anchor not in self._anchors:
            raise Unreadable(f"the alias *{event.anchor} has no anchor", at)
        known = self._anchors[event.anchor]
        if known is None:
            raise Unreadable(f"the alias *{event.anchor} is inside its own anchor", at)
        value, size = known
        self._add(value, event.start_mark, size)

    def _add(self, value: Any, mark: Any, size: int, *, plain: bool = False) -> None:
        self._nodes += 1
        if not self._stack:
            self._root, self._root_mark = value, mark
            return
        frame = self._stack[-1]
        frame.size += size
        if frame.size > MAX_NODES or self._nodes > MAX_NODES:
            raise TooBig(f"more than {MAX_NODES:,} values, aliases expanded", _position(mark))
        if isinstance(frame.value, list):
            frame.value.append(value)
            frame.marks.append(mark)
        elif frame.key is _NO_KEY:
            frame.key = "<<" if plain and value == "<<" else _key(value, mark)
            frame.key_mark = mark if frame.key != "<<" or not plain else None
        elif frame.key_mark is None:
            frame.merged.extend(value if isinstance(value, list) else [value])
            frame.key = _NO_KEY
        else:
            if frame.key in frame.value:
                self._duplicates.append((frame.key, _position(frame.key_mark)))
            frame.value[frame.key] = value
            frame.marks[frame.key] = frame.key_mark
            frame.key = _NO_KEY

    def _merge(self, frame: _Frame, source: Any) -> None:
        if not isinstance(source, dict):
            raise Unreadable("only a mapping can be merged with <<", _position(frame.mark))
        marks = self._marks[id(source)]
        for key, value in source.items():
            if key not in frame.value:
                frame.value[key] = value
                frame.marks[key] = marks[key]


def _key(value: Any, mark: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise Unreadable("a key must be a string", _position(mark))


_STRING = "tag:yaml.org,2002:str"


def _scalar(event: Any) -> Any:
    text: str = event.value
    if event.implicit[0]:
        return plain_scalar(text)
    if event.implicit[1] or event.tag in (None, "!", _STRING):
        return text
    return plain_scalar(text) if event.tag.startswith("tag:yaml.org,2002:") else text
