"""Merges findings: those about a field in several versions, and about a type that several fields have.

An author fixes them in one place: the versions of a field usually share its declaration, and a type that a
schema repeats three hundred times was written once.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.found import Found, Where
from crdkeeper.core.lint.place import SchemaPlace

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
            groups.append([(None, each)])
            continue
        what = (each.rule.id, each.message, each.below, each.ignored)
        path = paths.of(each.where)
        key = (path, what)
        group = by_path.get(key)
        if group is None:
            of_type = None
            if isinstance(each.where, SchemaPlace) and (type_ := types.of(each.where)) is not None:
                of_type = (type_, each.where.name, what)
                group = by_type.get(of_type)
            if group is None:
                group = []
                groups.append(group)
                if of_type is not None:
                    by_type[of_type] = group
            by_path[key] = group
        group.append((path, each))
    return [_one(each) for each in groups]


_Group = list[tuple[Hashable, Found]]
"""Equal findings, with the number of the path of each; most have no equal."""


def _one(group: _Group) -> Found:
    first = group[0][1]
    if len(group) == 1:
        return first
    versions: dict[str, None] = {}
    places: dict[Hashable, Where] = {}
    for path, each in group:
        where = each.where
        places.setdefault(path, where)
        if where.version:
            versions[where.version] = None
    several = len(versions) > 1, len(places) > 1
    if not any(several):
        return first
    settled = isinstance(first.rule, Convention) and first.rule.renames
    return first._replace(
        severity=(max if settled else min)({each.severity for _, each in group}, key=lambda each: each.rank),
        versions=tuple(versions) if several[0] else (),
        places=tuple(places.values()) if several[1] else (),
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
        self._by_names: dict[frozenset[str], list[tuple[int, Schema]]] = {}

    def of(self, place: SchemaPlace) -> int | None:
        """The type of a place, or the type of which it is a field."""
        schema = _declared(place)
        if schema is None:
            return None
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = self._number(schema)
        return known

    def _number(self, schema: Schema) -> int:
        alike = self._by_names.setdefault(frozenset(schema["properties"]), [])
        # Two schemas are one type apart from the field's own description.
        type_ = {**schema, "description": ""}
        for number, each in alike:
            if each == type_:
                return number
        if len(alike) < _MOST_COMPARED:
            alike.append((id(schema), type_))
        return id(schema)


def _declared(place: SchemaPlace) -> Schema | None:
    """The innermost type around a place: its own, or the one of which it is a field."""
    schema = place.schema
    for each in (schema, schema.get("items"), schema.get("additionalProperties")):
        if isinstance(each, dict) and each.get("properties"):
            return each
    at = place.parent
    while at is not None:
        if at.schema.get("properties"):
            return at.schema
        at = at.parent
    return None
