"""One field in two schemas: its place, and the changes reported for it."""

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol

from crdkeeper.apiserver.golang.text import json_text
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import PRESERVE, VALIDATIONS, Schema
from crdkeeper.core.compatibility.change import Audience, Change, ChangeKind, Effects, Impact, Place
from crdkeeper.core.compatibility.findings import Changes
from crdkeeper.core.compatibility.schemakinds import LIMIT_SATISFIED

JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_SHOWN = 120
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@dataclass(frozen=True, slots=True)
class FieldPair:
    """A field that both schemas have."""

    field: str
    """Its path from the top of the object, for people."""
    name: str
    """The name of the property that it is, or of whose items it is one; empty at the top."""
    old: Schema
    new: Schema
    old_path: Path
    path: Path
    status: bool
    """Whether it is .status or below."""
    guards: tuple["Guard", ...]
    """What may reject values of the new schema as a whole, at this field and around it."""
    required: bool = False
    """Whether it is a property that the new schema requires."""

    def child(self, name: str, field: str, old: Schema, new: Schema) -> "FieldPair":
        """The schema of items or of a map's values."""
        return self._below(field, old, new, self.old_path.child(name), self.path.child(name))

    def property(self, name: str, old: Schema, new: Schema, *, required: bool) -> "FieldPair":
        """A field of an object."""
        below_old = self.old_path.child("properties").key(name)
        below_new = self.path.child("properties").key(name)
        made = self._below(below(self.field, name), old, new, below_old, below_new)
        status = self.status or (not self.field and name == "status")
        return replace(made, name=name, status=status, required=required)

    def _below(self, field: str, old: Schema, new: Schema, old_path: Path, path: Path) -> "FieldPair":
        guards = with_guard(self.guards, new, field)
        return FieldPair(field, self.name, old, new, old_path, path, self.status, guards)

    def may_be_refused(self, name: str | None) -> bool:
        """Whether an expression or a junctor may depend on this field, or on its `name`."""
        if name is None:
            return any(each.concerns(self.name, self.field) for each in self.guards)
        if "maxProperties" in self.new:
            return True
        return any(each.concerns(name, below(self.field, name)) for each in self.guards)


def item_schema(schema: Schema) -> Schema | None:
    """The schema of a list's items; None if there is none.

    A list that preserves unknown fields preserves those of its items.
    """
    found = schema.get("items")
    if not isinstance(found, dict):
        return None
    return {**found, PRESERVE: True} if schema.get(PRESERVE) else found


def below(field: str, name: str) -> str:
    """The path of a field inside another one."""
    if not name or not _PLAIN.issuperset(name):
        return f"{field}[{json_text(name)}]"
    return f"{field}.{name}" if field else name


@dataclass(frozen=True)
class Guard:
    """The expressions, junctors and enum of one schema node, which may reject a value as a whole."""

    parts: Mapping[str, Any]
    field: str
    """The node that has them."""

    @cached_property
    def _text(self) -> str:
        return json_text(self.parts)

    @cached_property
    def _sees_whole(self) -> bool:
        return _WHOLE.search(self._text) is not None

    @cached_property
    def _words(self) -> list[list[str]]:
        """All words of the text, in sequences joined by single underscores."""
        return [found.split("_") for found in _WORDS.findall(self._text)]

    @cached_property
    def _names(self) -> dict[int, frozenset[str]]:
        """Everything that may be a name, by its number of words."""
        return {}

    def _is_named(self, name: str) -> bool:
        number = name.count("_") + 1
        if number > _MOST_WORDS:
            return True
        known = self._names.get(number)
        if known is None:
            known = self._names[number] = frozenset(
                "_".join(run[i : i + number]) for run in self._words for i in range(len(run) - number + 1)
            )
        return name in known

    def concerns(self, name: str, field: str) -> bool:
        """Whether they can depend on a field: they name it, read whole objects, or belong to it or its items.

        CEL can read an object with named fields only by naming one. Names that are spelled differently there
        than in the schema, with escape sequences, count as named.
        """
        if not _IDENTIFIER.fullmatch(name) or self._is_named(name):
            return True
        return self.field.startswith(field) or self._sees_whole


_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", re.ASCII)
_WORDS = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*", re.ASCII)
_MOST_WORDS = 8
"""Names with more words count as named: the text is scanned once for each number of words."""
_WHOLE = re.compile(r'"(min|max)Properties"|"enum":\[[^\]]*[\[{]')
"""Keywords that read a field without naming it: counts of fields, and enums of objects or lists."""


def with_guard(guards: tuple[Guard, ...], schema: Schema, field: str) -> tuple[Guard, ...]:
    """The guards around a node, with its own."""
    parts: dict[str, Any] = {each: schema[each] for each in JUNCTORS if schema.get(each)}
    if any(isinstance(each, dict | list) for each in schema.get("enum", ())):
        parts["enum"] = [{}]
    if schema.get(VALIDATIONS):
        parts["rules"] = [each.get("rule", "") for each in schema[VALIDATIONS]]
    return (*guards, Guard(parts, field)) if parts else guards


Weigh = Callable[[Effects], Effects]


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it when values of a field were tried on both schemas."""

    value: str | None
    """A value that was accepted before and is rejected now, as shown to users."""
    example: Mapping[str, Any] | None
    """An object with it."""
    none_exists: bool
    """Whether all values that there can be were tried, and none is refused."""


NOTHING_FOUND: Final = Tried(None, None, none_exists=False)
"""Nothing is proved."""


class TryOut(Protocol):
    """Tries values of a field on both schemas."""

    def __call__(self, node: FieldPair, changed: Mapping[str, Any], *, breaking: bool) -> Tried:
        """Where some keywords are as in `changed`, None for none. `breaking`: taken for so without a trial.

        Raises Exhausted.
        """


def nothing_tried(node: FieldPair, changed: Mapping[str, Any], *, breaking: bool) -> Tried:
    """Differences between two versions are not tried."""
    return NOTHING_FOUND


class Teller:
    """Reports changes of one version's schema."""

    def __init__(
        self,
        version: str,
        findings: Changes,
        weigh: Weigh = lambda effects: effects,
        elsewhere: Container[str] = (),
        try_out: TryOut = nothing_tried,
    ) -> None:
        """`weigh` says what is left of the effects for this version."""
        self.findings = findings
        self._try_out = try_out
        self.elsewhere = elsewhere
        """Names of fields that objects may have although the version's old schema does not contain them."""
        self._version = version
        self._weigh = weigh

    def say(
        self,
        kind: ChangeKind,
        node: FieldPair,
        message: str,
        *keywords: str,
        name: str | None = None,
        example: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a change of the node, at the changed keyword; `name` if it is one of the node's properties."""
        field, path, old_path = node.field, node.path, node.old_path
        status = node.status
        if name is not None:
            status = status or (not field and name == "status")
            field = below(field, name)
            path, old_path = path.child("properties").key(name), old_path.child("properties").key(name)
        for each in keywords:
            path, old_path = path.child(each), old_path.child(each)
        effects = dict(kind.at(status=status))
        if kind.reinterprets and node.may_be_refused(name):
            effects.setdefault(Audience.WRITERS, Impact.RISKY)
        place = Place(self._version, field, path, old_path)
        self.findings.add(Change(kind, place, message, self._weigh(effects), example))

    def say_tried(
        self,
        kind: ChangeKind,
        node: FieldPair,
        message: str,
        changed: Mapping[str, Any],
        *,
        proved: ChangeKind,
    ) -> None:
        """Adds a change of keywords that may refuse values: as `proved` with one that it does refuse.

        `kind` is what it is if none is found; where none can be, it is safe.
        """
        trial = self._try_out(node, changed, breaking=kind is proved)
        keyword = next(iter(changed))
        if trial.none_exists:
            self.say(LIMIT_SATISFIED, node, message, keyword)
        elif trial.value is not None:
            message = f"{message}; {trial.value} was accepted and is refused"
            self.say(proved, node, message, keyword, example=trial.example)
        else:
            self.say(kind, node, message, keyword)


def shown(value: Any) -> str:
    """A value as JSON, truncated if it is long."""
    return cut(json_text(value))


def cut(text: str) -> str:
    """A text, truncated if it is long."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def from_to(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """`maxLength: 63 → 32`, with `none` if it is missing."""
    before, after = (shown(each[keyword]) if keyword in each else "none" for each in (old, new))
    return f"{keyword}: {before} → {after}"
