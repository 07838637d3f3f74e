"""What the operator knows of the cluster from its watches, and the listeners that it notifies of changes."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.diagnosis.facts import SeenDefinition
from crdkeeper.core.diagnosis.report import StoredReport

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Kind)


@dataclass(slots=True)
class ClusterState:
    """The latest state of each object by name. Decisions that must be right read the API server instead."""

    definitions: dict[str, DefinitionFacts] = field(default_factory=dict)
    seen: dict[str, SeenDefinition] = field(default_factory=dict)
    """What a diagnosis needs of the same CRDs."""
    reports: dict[str, StoredReport] = field(default_factory=dict)
    conversions: dict[str, int] = field(default_factory=dict)
    """VersionConversions, with the generation last seen."""
    _objects: dict[type[Kind], dict[str, Kind]] = field(default_factory=dict)
    """The objects of the kinds that are kept whole."""
    _listeners: list[Callable[[str, str], None]] = field(default_factory=list)

    def listen(self, listener: Callable[[str, str], None]) -> None:
        """Call `listener(kind, name)` on each change.

        `kind` is the name of a dictionary of this class, or the plural of a kind that is kept whole; or
        "migrated" when a migration was seen or is gone: then `name` is the `plural.group` of its resource; or
        "composing" when the composer gets or loses rights on the composites of the definition `name`.
        """
        self._listeners.append(listener)

    def kinds(self) -> Collection[type[Kind]]:
        """The kinds that are kept whole and of which an object was seen."""
        return self._objects.keys()

    def of(self, kind: type[_K]) -> dict[str, _K]:
        """The objects of a kind that is kept whole, by name."""
        return cast(dict[str, _K], self._objects.setdefault(kind, {}))

    def saw(self, kind: type[_K], name: str, seen: _K | None) -> None:
        """An object of a kind that is kept whole was seen, or is gone (None)."""
        self._saw(kind.plural, self.of(kind), name, seen)

    def saw_definition(self, name: str, seen: SeenDefinition | None) -> None:
        """A CRD was seen, or is gone (None)."""
        if seen is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = seen
        self._saw("definitions", self.definitions, name, seen.definition if seen is not None else None)

    def saw_migration(self, name: str, migration: StorageMigration | None) -> None:
        """A StorageMigration was seen, or is gone (None)."""
        concerned = migration or self.of(StorageMigration).get(name)
        self.saw(StorageMigration, name, migration)
        if concerned is not None:
            self._announce("migrated", str(concerned.spec.resource))

    def saw_conversion(self, name: str, generation: int | None) -> None:
        """A VersionConversion was seen, or is gone (None)."""
        self._saw("conversions", self.conversions, name, generation)

    def saw_rights(self, name: str) -> None:
        """The composer may compose the composites of a definition, or may not do so any more."""
        self._announce("composing", name)

    def saw_report(self, name: str, record: StoredReport | None) -> None:
        """A DefinitionReport was seen, or is gone (None). Ignores states older than the known one."""
        known = self.reports.get(name)
        if record is None or known is None or record.is_newer_than(known):
            self._saw("reports", self.reports, name, record)

    def _saw(self, kind: str, known: dict[str, _T], name: str, seen: _T | None) -> None:
        if seen is None:
            known.pop(name, None)
        else:
            known[name] = seen
        self._announce(kind, name)

    def _announce(self, kind: str, name: str) -> None:
        for listener in self._listeners:
            listener(kind, name)

    def is_converted(self, name: str, address: WebhookAddress) -> bool:
        """Whether the webhook at that address converts a CRD."""
        seen = self.seen.get(name)
        return seen is not None and seen.webhook is not None and address.serves(seen.webhook)

    def migrations_by_definition(self) -> Mapping[str, list[StorageMigration]]:
        """The migrations of each resource, by `plural.group`."""
        found: dict[str, list[StorageMigration]] = {}
        for each in self.of(StorageMigration).values():
            found.setdefault(str(each.spec.resource), []).append(each)
        return found
