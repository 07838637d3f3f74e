"""Compares the served versions of the new CRD with one another: what a client of one sees at the other.

Differences that the old CRD had between the same versions are left out, since they are no change.
"""

from collections.abc import Iterator
from itertools import combinations

from crdkeeper.apiserver.schema.props import Schema, equal
from crdkeeper.core.compatibility import definitionkinds as kinds
from crdkeeper.core.compatibility import schemakinds
from crdkeeper.core.compatibility.change import Change, ChangeKind, Place
from crdkeeper.core.compatibility.definitions import DecodedDefinition, DecodedVersion, DefinitionPair
from crdkeeper.core.compatibility.findings import Changes
from crdkeeper.core.compatibility.node import Teller
from crdkeeper.core.compatibility.schemas import compare_schemas

_ONLY_FIRST = frozenset((schemakinds.FIELD_REMOVED, schemakinds.FIELD_UNDESCRIBED))
_ONLY_SECOND = frozenset(
    (
        schemakinds.FIELD_ADDED,
        schemakinds.FIELD_ADDED_WITH_DEFAULT,
        schemakinds.FIELD_ADDED_REQUIRED,
        schemakinds.FIELD_DESCRIBED,
    )
)
_FIELDS = _ONLY_FIRST | _ONLY_SECOND | {schemakinds.UNKNOWN_FIELDS_PRUNED, schemakinds.UNKNOWN_FIELDS_KEPT}
_TYPES = frozenset(
    (
        schemakinds.TYPE_CHANGED,
        schemakinds.TYPE_WIDENED,
        schemakinds.MAP_CLOSED,
        schemakinds.MAP_OPENED,
        schemakinds.MAP_VALUES_LOOSENED,
        schemakinds.MAP_VALUES_TIGHTENED,
    )
)
_DEFAULTS = frozenset((schemakinds.DEFAULT_ADDED, schemakinds.DEFAULT_CHANGED, schemakinds.DEFAULT_REMOVED))
_ENUMS = frozenset((schemakinds.ENUM_LOOSENED, schemakinds.ENUM_TIGHTENED))
_HARMLESS = frozenset(
    (
        schemakinds.DOCUMENTATION,
        schemakinds.RULE_REWORDED,
        schemakinds.REQUIRED_WITH_DEFAULT,
        # Each version has its own owners of fields.
        schemakinds.MAP_MERGED,
        schemakinds.MAP_REPLACED,
    )
)


def compare_served(pair: DefinitionPair) -> None:
    """All pairs of served versions. Raises Exhausted."""
    for first, second in combinations(pair.new.served, 2):
        if _unchanged(first, second, pair):
            continue
        known = set() if _no_longer_converts(pair) else _known(first, second, pair)
        for change in _differences(first, second, pair.findings):
            if _key(change) in known:
                continue
            kind = _kind(change.kind, converts=pair.new.converts)
            if kind is not None:
                pair.findings.add(_between(change, kind, first, second))


def _no_longer_converts(pair: DefinitionPair) -> bool:
    return pair.old.converts and not pair.new.converts


def _unchanged(first: DecodedVersion, second: DecodedVersion, pair: DefinitionPair) -> bool:
    """Whether nothing can have changed, which saves most of the work for CRDs of many versions."""
    if _no_longer_converts(pair):
        return False
    return all(_same_schema(each, pair.old) for each in (first, second))


def _same_schema(version: DecodedVersion, old: DecodedDefinition) -> bool:
    before = old.versions.get(version.name)
    if before is None or not before.served or before.schema is None or version.schema is None:
        return False
    return equal(before.schema, version.schema)


def _known(first: DecodedVersion, second: DecodedVersion, pair: DefinitionPair) -> set[tuple[str, str, str]]:
    old = [pair.old.versions.get(each.name) for each in (first, second)]
    if old[0] is None or old[1] is None or not (old[0].served and old[1].served):
        return set()
    return {_key(each) for each in _differences(old[0], old[1], pair.findings)}


def _key(change: Change) -> tuple[str, str, str]:
    return change.kind.id, change.place.field, change.message


def _differences(first: DecodedVersion, second: DecodedVersion, findings: Changes) -> Iterator[Change]:
    one: Schema | None = first.schema
    other: Schema | None = second.schema
    if one is None or other is None:
        return
    # Everything must be kept, or a difference that the old CRD had could look new.
    inner = Changes(steps=findings.steps_left, kept=findings.steps_left)
    before = inner.steps_left
    compare_schemas(one, other, first.schema_path, second.schema_path, Teller("", inner))
    findings.spend(before - inner.steps_left)
    yield from inner.changes


def _kind(kind: ChangeKind, *, converts: bool) -> ChangeKind | None:
    if kind in _HARMLESS:
        return None
    if converts:
        return kinds.SERVED_CONVERSION if kind in _FIELDS | _TYPES | _DEFAULTS | _ENUMS else None
    if kind in _FIELDS:
        return kinds.SERVED_FIELD
    if kind in _TYPES:
        return kinds.SERVED_TYPE
    return kinds.SERVED_DEFAULT if kind in _DEFAULTS else kinds.SERVED_VALUE


def _between(change: Change, kind: ChangeKind, first: DecodedVersion, second: DecodedVersion) -> Change:
    place = change.place
    path = place.path
    if change.kind in _ONLY_FIRST and place.old_path is not None:
        message, path = f"only {first.name} has the field", place.old_path
    elif change.kind in _ONLY_SECOND:
        message = f"only {second.name} has the field"
    else:
        message = f"from {first.name} to {second.name}, {change.message}"
    where = Place(f"{first.name} and {second.name}", place.field, path, None)
    return Change(kind, where, message, kind.effects)
