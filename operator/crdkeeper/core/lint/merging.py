"""Merges findings: those about a field in several versions, and about a type that several fields have.

An author fixes them in one place: the versions of a field usually share its declaration, and a type that a
schema repeats three hundred times was written once.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.found import Found, Where
from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.severity import Severity

_MOST_COMPARED = 8
"""Types with the same properties to compare a type with; with more differences it is not a repetition."""


def merge(found: Iterable[Found]) -> list[Found]:
    """The findings, merged; each at the place of its first occurrence.

    Findings of the API server are not changed. One that the author ignores is not merged with one that
    counts. One that requires another name gets the severity in the most stable version, any other the highest
    severity.
    """
    groups: list[_Group] = []
    by_path: dict[Any, _Group] = {}
    paths = _Paths()
    by_type: dict[Any, _Group] = {}
    types = _Types()
    for each in found:
        if each.final or not isinstance(each.rule, Convention):
            groups.append(_Group(each))
            continue
        what = (each.rule.id, each.message, each.below, each.ignored)
        key = (paths.of(each.where), *what)
        group = by_path.get(key)
        if group is None:
            type_ = types.of(each.where) if isinstance(each.where, SchemaPlace) else None
            if type_ is not None and isinstance(each.where, SchemaPlace):
                of_type = (type_, each.where.name, *what)
                group = by_type.setdefault(of_type, _Group(each))
            else:
                group = _Group(each)
            if group.first is each:
                groups.append(group)
            by_path[key] = group
        group.add(each, key[0])
    return [each.one() for each in groups]


@dataclass(slots=True)
class _Group:
    first: Found
    severities: set[Severity] = field(default_factory=set)
    versions: dict[str, None] = field(default_factory=dict)
    places: dict[Hashable, Where] = field(default_factory=dict)
    """A place for each path."""

    def add(self, found: Found, path: Hashable) -> None:
        self.severities.add(found.severity)
        if found.version:
            self.versions[found.version] = None
        self.places.setdefault(path, found.where)

    def one(self) -> Found:
        several = len(self.versions) > 1, len(self.places) > 1
        if not any(several):
            return self.first
        rule = self.first.rule
        settled = isinstance(rule, Convention) and rule.renames
        return replace(
            self.first,
            severity=(max if settled else min)(self.severities, key=lambda each: each.rank),
            versions=tuple(self.versions) if several[0] else (),
            places=tuple(self.places.values()) if several[1] else (),
        )


class _Paths:
    """Numbers for the paths of fields, equal in all versions.

    The names of 40,000 fields a hundred levels deep are much longer together than their schema.
    """

    def __init__(self) -> None:
        self._of_place: dict[SchemaPlace, int] = {}
        self._known: dict[tuple[int, str], int] = {}

    def of(self, where: Where) -> Hashable:
        """The number of a field's path; outside of schemas, the path itself."""
        if not isinstance(where, SchemaPlace):
            return where.path
        unknown: list[SchemaPlace] = []
        at: SchemaPlace | None = where
        while at is not None and at not in self._of_place:
            unknown.append(at)
            at = at.parent
        number = self._of_place[at] if at is not None else 0
        for each in reversed(unknown):
            if each.parent is not None:
                number = self._known.setdefault((number, each.text), len(self._known) + 1)
            self._of_place[each] = number
        return number


class _Types:
    """Numbers for types: two places have the same if they are of one type."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._by_names: dict[frozenset[str], list[Schema]] = {}

    def of(self, place: SchemaPlace) -> int | None:
        """The type of a place, or the type of which it is a field."""
        schema = next(_declared(place), None)
        if schema is None:
            return None
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = self._number(schema)
        return known

    def _number(self, schema: Schema) -> int:
        alike = self._by_names.setdefault(frozenset(schema["properties"]), [])
        for each in alike:
            if _is_same(each, schema):
                return id(each)
        if len(alike) < _MOST_COMPARED:
            alike.append(schema)
        return id(schema)


def _declared(place: SchemaPlace) -> Iterator[Schema]:
    """The types around a place, the innermost first: its own, or the one of which it is a field."""
    schema = place.schema
    for each in (schema, schema.get("items"), schema.get("additionalProperties")):
        if isinstance(each, dict) and each.get("properties"):
            yield each
    at = place.parent
    while at is not None:
        if at.schema.get("properties"):
            yield at.schema
        at = at.parent


def _is_same(one: Schema, other: Schema) -> bool:
    """Whether two schemas are one type, apart from the field's own description."""
    keys = (one.keys() | other.keys()) - {"description"}
    return all(one.get(each) == other.get(each) for each in keys)
