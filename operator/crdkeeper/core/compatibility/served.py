"""Compares the served versions of the new CRD with each other: what a client of one sees at the other.

Without the differences that the old CRD had between the same versions, because those are not changes.
"""

from collections.abc import Container, Iterator
from itertools import combinations

from crdkeeper.apiserver.schema.props import Schema, equal
from crdkeeper.core.compatibility import definitionkinds as kinds
from crdkeeper.core.compatibility import schemakinds
from crdkeeper.core.compatibility.change import Change, ChangeKind, Place
from crdkeeper.core.compatibility.definitions import DecodedDefinition, DecodedVersion, DefinitionPair
from crdkeeper.core.compatibility.findings import Allowance, Changes
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
_LOSSES = frozenset(
    (
        schemakinds.FIELD_REMOVED,
        schemakinds.UNKNOWN_FIELDS_PRUNED,
        schemakinds.MAP_CLOSED,
        schemakinds.TYPE_CHANGED,
    )
)
"""What is pruned from objects of the first version where they are stored at the second one."""
_LOSS_IDS = frozenset(each.id for each in _LOSSES)

_Key = tuple[str, str, str]


def compare_served(pair: DefinitionPair) -> None:
    """All pairs of served versions, those with the storage version first. Raises Exhausted.

    If another version is the storage version now, it is compared with the others even if it is not served:
    what it lacks is pruned from each object that is written, whatever was known before.
    """
    no_longer_converts = pair.old.converts and not pair.new.converts
    unchanged = frozenset() if no_longer_converts else frozenset(_unchanged(pair))
    moved = _moved_storage(pair)
    for first, second in _pairs(pair, moved):
        if second is not moved and first.name in unchanged and second.name in unchanged:
            continue
        known = frozenset() if no_longer_converts else _known(first.name, second.name, pair)
        if second is moved:
            known = frozenset(_not_lost_anew(known, first, pair))
        _tell_differences(first, second, _NewDifferences(pair, first, second, known))


def compare_all_served(definition: DecodedDefinition, findings: Changes) -> None:
    """All differences between the served versions of one CRD. Raises Exhausted."""
    pair = DefinitionPair(definition, definition, findings)
    for first, second in _pairs(pair, None):
        _tell_differences(first, second, _NewDifferences(pair, first, second, ()))


def _moved_storage(pair: DefinitionPair) -> DecodedVersion | None:
    """The storage version, if another one was that before, and nothing converts."""
    old, new = pair.old.storage, pair.new.storage
    if old is None or new is None or old.name == new.name or pair.old.converts or pair.new.converts:
        return None
    return new


def _pairs(
    pair: DefinitionPair, moved: DecodedVersion | None
) -> Iterator[tuple[DecodedVersion, DecodedVersion]]:
    """Each pair in the order of the CRD, but with `moved` last. Raises Exhausted."""
    compared = [each for each in pair.new.versions.values() if each.served or each is moved]
    compared.sort(key=lambda each: not each.storage)
    for one, other in combinations(compared, 2):
        pair.findings.spend()
        first, second = sorted((one, other), key=lambda each: (each is moved, each.index))
        yield first, second


def _unchanged(pair: DefinitionPair) -> Iterator[str]:
    """Versions in which nothing can have changed, which saves most work for CRDs with many versions."""
    for version in pair.new.served:
        before = pair.old.versions.get(version.name)
        if before is None or not before.served or before.schema is None or version.schema is None:
            continue
        if equal(before.schema, version.schema):
            yield version.name


def _known(first: str, second: str, pair: DefinitionPair) -> frozenset[_Key]:
    """The differences between two versions of the old CRD."""
    old = [pair.old.versions.get(each) for each in (first, second)]
    if old[0] is None or old[1] is None or not (old[0].served and old[1].served):
        return frozenset()
    found = _Keys(pair.findings.allowance)
    _tell_differences(old[0], old[1], found)
    return frozenset(found.keys)


def _not_lost_anew(known: frozenset[_Key], version: DecodedVersion, pair: DefinitionPair) -> Iterator[_Key]:
    """Those of the known differences by which objects of a version lose nothing that they had.

    They lost what the old storage version lacked, too.
    """
    before = pair.old.storage
    lost = frozenset() if before is None else _known(version.name, before.name, pair)
    return (each for each in known if each[0] not in _LOSS_IDS or each in lost)


def _key(change: Change) -> _Key:
    return change.kind.id, change.place.field, change.message


class _Keys(Changes):
    """Differences, reduced to what is needed to recognize them."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__(allowance)
        self.keys: set[_Key] = set()

    def add(self, change: Change) -> None:
        """Raise Exhausted."""
        self.allowance.spend()
        self.keys.add(_key(change))


class _NewDifferences(Changes):
    """Passes on unknown differences between two versions."""

    def __init__(
        self, pair: DefinitionPair, first: DecodedVersion, second: DecodedVersion, known: Container[_Key]
    ) -> None:
        super().__init__(pair.findings.allowance)
        self._pair, self._first, self._second, self._known = pair, first, second, known

    def add(self, change: Change) -> None:
        """Raise Exhausted."""
        # Nobody sees what is only stored: it matters what is lost there.
        matters = self._second.served or change.kind in _LOSSES
        kind = _kind(change.kind, converts=self._pair.new.converts) if matters else None
        if kind is None or _key(change) in self._known:
            self.allowance.spend()
        else:
            self._pair.findings.add(_between(change, kind, self._first, self._second))


def _tell_differences(first: DecodedVersion, second: DecodedVersion, findings: Changes) -> None:
    one: Schema | None = first.schema
    other: Schema | None = second.schema
    if one is not None and other is not None:
        compare_schemas(one, other, first.schema_path, second.schema_path, Teller("", findings))


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
