"""Who writes which version of a resource: counts over managedFields of all objects, in bounded memory.

Each manager's entry names the version of its last write. Nothing else in a cluster shows who still uses a
version: the API server's metrics do not name clients.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.probes import Failure

TOP = 20
"""Uses that a census lists; the others are only counted."""
EXAMPLES = 3
"""Objects that it names for each use."""
_MOST_USES = 1000
"""Uses that are counted separately: a client may invent a manager's name for every request."""
_MOST_VERSIONS = 100


@dataclass(frozen=True, slots=True)
class ManagerUse:
    """One manager's entries that name one version."""

    manager: str
    operation: str
    """Apply or Update."""
    subresource: str
    version: str
    """Without the group."""
    objects: int
    """How many objects have such an entry."""
    last: datetime | None
    """The time of the newest entry."""
    examples: tuple[str, ...]
    """The first few objects, as `namespace/name` or `name`."""


@dataclass(frozen=True, slots=True)
class Census:
    """A count over all objects, or over those reached so far."""

    objects: int
    """Number of objects counted."""
    complete: bool
    """Whether these are all objects."""
    uses: tuple[ManagerUse, ...]
    """At most `TOP`: first of removed versions, then of deprecated ones, then by number of objects."""
    uses_total: int
    """Total number of uses; if this is 1,000 or more, there may be more."""
    versions: Mapping[str, int]
    """How many objects have an entry with a version, by version."""
    resource_version: str
    """The resourceVersion of the list: the census does not include later writes."""
    taken_at: datetime
    failure: Failure | None = None
    """Why it is not complete, if it is not just in progress."""
    renewing: bool = False
    """Whether a newer census is in progress: this one remains valid until that one is complete."""


@dataclass(slots=True)
class _Count:
    objects: int = 0
    last: str = ""
    examples: list[str] = field(default_factory=list)


_Key = tuple[str, str, str, str]


@dataclass(slots=True)
class CensusTally:
    """Counts objects one by one. `suspects` are versions whose writers matter most."""

    definition: DefinitionFacts
    suspects: tuple[str, ...] = ()
    objects: int = 0
    _uses: dict[_Key, _Count] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Count objects by their metadata."""
        for each in items:
            self._add(each["metadata"])

    def _add(self, metadata: Mapping[str, Any]) -> None:
        self.objects += 1
        prefix = f"{self.definition.group}/"
        seen: set[str] = set()
        for entry in metadata.get("managedFields") or ():
            named: str = entry.get("apiVersion") or ""
            if not named.startswith(prefix):
                continue
            version = named.removeprefix(prefix)
            seen.add(version)
            key = (
                version,
                entry.get("manager", ""),
                entry.get("operation", ""),
                entry.get("subresource", ""),
            )
            count = self._uses.get(key)
            if count is None:
                if len(self._uses) >= _MOST_USES:
                    continue
                count = self._uses[key] = _Count()
            count.objects += 1
            count.last = max(count.last, entry.get("time") or "")
            if len(count.examples) < EXAMPLES:
                count.examples.append(object_name(metadata))
        for version in seen:
            if version in self._versions or len(self._versions) < _MOST_VERSIONS:
                self._versions[version] = self._versions.get(version, 0) + 1

    def census(
        self, now: datetime, *, complete: bool, resource_version: str, failure: Failure | None = None
    ) -> Census:
        """The counts so far."""
        known = {each.name for each in self.definition.versions}

        def weight(item: tuple[_Key, _Count]) -> tuple[bool, bool, int, _Key]:
            (version, *_), count = item
            return version in known, version not in self.suspects, -count.objects, item[0]

        top = sorted(self._uses.items(), key=weight)[:TOP]
        return Census(
            objects=self.objects,
            complete=complete,
            uses=tuple(_use(key, count) for key, count in top),
            uses_total=len(self._uses),
            versions=dict(self._versions),
            resource_version=resource_version,
            taken_at=now,
            failure=failure,
        )


def _use(key: _Key, count: _Count) -> ManagerUse:
    version, manager, operation, subresource = key
    last = datetime.fromisoformat(count.last) if count.last else None
    return ManagerUse(manager, operation, subresource, version, count.objects, last, tuple(count.examples))


def object_name(metadata: Mapping[str, Any]) -> str:
    """`namespace/name`, or `name` of an object without namespace."""
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
