"""What the operator knows of the cluster from its watches, and the listeners that it notifies of changes."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.diagnosis.facts import SeenDefinition
from crdkeeper.core.diagnosis.report import StoredReport
from crdkeeper.core.diagnosis.verdict import Verdict

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Kind)


@dataclass(slots=True)
class WebhookTrust:
    """The certificates by which API servers trust our webhook: one controller offers what others use."""

    bundle: str | None = None
    """PEM; None while there is none."""
    problem: str = ""
    """Why there is none, or why it cannot be renewed."""
    configured: str | None = None
    """The bundle in the configuration for changes of CRDs; None if API servers do not ask about changes."""
    wanted: bool = False
    """Whether API servers are to ask about changes, so that a certificate is needed."""


@dataclass(slots=True)
class ClusterState:
    """The latest state of each object by name. Decisions that must be right read the API server instead."""

    definitions: dict[str, DefinitionFacts] = field(default_factory=dict)
    seen: dict[str, SeenDefinition] = field(default_factory=dict)
    """What a diagnosis needs of the same CRDs."""
    reports: dict[str, StoredReport] = field(default_factory=dict)
    conversions: dict[str, int] = field(default_factory=dict)
    """VersionConversions, with the generation last seen."""
    uncomposed: dict[str, Verdict] = field(default_factory=dict)
    """By definition: why its composites cannot be composed; of all of them under an empty name."""
    trust: WebhookTrust = field(default_factory=WebhookTrust)
    _objects: dict[type[Kind], dict[str, Kind]] = field(default_factory=dict)
    """The objects of the kinds that are kept whole."""
    _migrations: dict[str, dict[str, StorageMigration]] = field(default_factory=dict)
    """The StorageMigrations by the `plural.group` of their resource, and by name."""
    _listeners: list[Callable[[str, str], None]] = field(default_factory=list)
    _readers: list[Callable[[SeenDefinition, Mapping[str, Any]], None]] = field(default_factory=list)

    def listen(self, listener: Callable[[str, str], None]) -> None:
        """Call `listener(kind, name)` on each change.

        `kind` is the name of a dictionary of this class, or the plural of a kind that is kept whole; or
        "migrated" when a migration was seen or is gone: then `name` is the `plural.group` of its resource; or
        "composing" when it is known that the composites of the definition `name` cannot be composed, or can
        again; those of all definitions if it is empty; or "trust", without a name, when `trust` has changed.
        """
        self._listeners.append(listener)

    def read_definitions(self, reader: Callable[[SeenDefinition, Mapping[str, Any]], None]) -> None:
        """Call `reader` with each CRD that was seen, before those who listen, and with its schemas.

        These are large, and nobody keeps them: it must reduce what it keeps of them.
        """
        self._readers.append(reader)

    def kinds(self) -> Collection[type[Kind]]:
        """The kinds that are kept whole and of which an object was seen."""
        return self._objects.keys()

    def of(self, kind: type[_K]) -> dict[str, _K]:
        """The objects of a kind that is kept whole, by name."""
        return cast(dict[str, _K], self._objects.setdefault(kind, {}))

    def saw(self, kind: type[_K], name: str, seen: _K | None) -> None:
        """An object of a kind that is kept whole was seen, or is gone (None)."""
        self._saw(kind.plural, self.of(kind), name, seen)

    def saw_definition(
        self, name: str, seen: SeenDefinition | None, crd: Mapping[str, Any] | None = None
    ) -> None:
        """A CRD was seen, or is gone (None); `crd` is the whole of it, if it is at hand."""
        if seen is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = seen
            if crd is not None:
                for read in self._readers:
                    read(seen, crd)
        self._saw("definitions", self.definitions, name, seen.definition if seen is not None else None)

    def saw_migration(self, name: str, migration: StorageMigration | None) -> None:
        """A StorageMigration was seen, or is gone (None)."""
        before = self.of(StorageMigration).get(name)
        if before is not None:
            known = self._migrations[str(before.spec.resource)]
            del known[name]
            if not known:
                del self._migrations[str(before.spec.resource)]
        if migration is not None:
            self._migrations.setdefault(str(migration.spec.resource), {})[name] = migration
        self.saw(StorageMigration, name, migration)
        for resource in dict.fromkeys(str(each.spec.resource) for each in (before, migration) if each):
            self._announce("migrated", resource)

    def saw_conversion(self, name: str, generation: int | None) -> None:
        """A VersionConversion was seen, or is gone (None)."""
        self._saw("conversions", self.conversions, name, generation)

    def saw_composing(self, name: str, trouble: Verdict | None) -> None:
        """Composites of a definition, or all if `name` is empty, cannot be composed; None if they can."""
        before = self.uncomposed.get(name)
        self._keep(self.uncomposed, name, trouble)
        if before != trouble:
            self._announce("composing", name)

    def trust_changed(self) -> None:
        """Announce that `trust` has changed."""
        self._announce("trust", "")

    def saw_report(self, name: str, record: StoredReport | None) -> None:
        """A DefinitionReport was seen, or is gone (None). Ignores states older than the known one."""
        known = self.reports.get(name)
        if record is None or known is None or record.is_newer_than(known):
            self._saw("reports", self.reports, name, record)

    def _saw(self, kind: str, known: dict[str, _T], name: str, seen: _T | None) -> None:
        self._keep(known, name, seen)
        self._announce(kind, name)

    @staticmethod
    def _keep(known: dict[str, _T], name: str, seen: _T | None) -> None:
        if seen is None:
            known.pop(name, None)
        else:
            known[name] = seen

    def _announce(self, kind: str, name: str) -> None:
        for listener in self._listeners:
            listener(kind, name)

    def is_converted(self, name: str, address: WebhookAddress) -> bool:
        """Whether the webhook at that address converts a CRD."""
        seen = self.seen.get(name)
        return seen is not None and seen.webhook is not None and address.serves(seen.webhook)

    def migrations_of(self, resource: str) -> tuple[StorageMigration, ...]:
        """The migrations of the resource `plural.group`."""
        return tuple(self._migrations.get(resource, {}).values())
