"""Who writes which version of a resource: counts over managedFields of all objects, in bounded memory.

Each manager's entry names the version of its last write. Nothing else in a cluster shows who still uses a
version: the API server's metrics do not name clients.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crdkeeper.api.definitionreport import (
    OBJECTS_MOST,
    TOKEN_CHARACTERS,
    USES_KEPT,
    CountedUse,
    CountInProgress,
    VersionObjects,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.apiserver.golang.times import moment
from crdkeeper.core.diagnosis.probes import Failure

TOP = 20
"""Uses that a census lists; the others are only counted."""
EXAMPLES = 3
"""Objects that it names for each use."""
_MOST_USES = 1000
"""Uses that are counted separately: a client may invent a manager's name for every request."""
_MOST_VERSIONS = 100
_VERSION_CHARACTERS = 63


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
    held_up: bool = False
    """Whether the newer one could not go on when it was last tried."""
    counting: CountInProgress | None = None
    """How far the count in progress has got, for the next operator."""


@dataclass(slots=True)
class EntryCount:
    """The objects with an entry of managedFields that has something in common."""

    objects: int = 0
    last: str = ""
    """The time of the newest entry, as text; empty if none has a time."""
    examples: list[str] = field(default_factory=list)

    def add(self, metadata: Mapping[str, Any], time: str) -> None:
        """Count an object, by its metadata and the time of its entry."""
        self.objects += 1
        self.last = max(self.last, time)
        if len(self.examples) < EXAMPLES:
            self.examples.append(object_name(metadata))

    @property
    def newest(self) -> datetime | None:
        """The time of the newest entry."""
        return moment(self.last) if self.last else None


_Key = tuple[str, str, str, str]


@dataclass(slots=True)
class CensusTally:
    """Counts objects one by one. `suspects` are versions whose writers matter most."""

    definition: DefinitionFacts
    suspects: tuple[str, ...] = ()
    objects: int = 0
    _uses: dict[_Key, EntryCount] = field(default_factory=dict)
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
                count = self._uses[key] = EntryCount()
            count.add(metadata, entry.get("time") or "")
        for version in seen:
            if version in self._versions or len(self._versions) < _MOST_VERSIONS:
                self._versions[version] = self._versions.get(version, 0) + 1

    def progress(self, about: str, token: str, started: datetime) -> CountInProgress | None:
        """What a restarted operator needs to continue; None if it must begin again.

        Who wrote few objects is left out, and so is what no API server sends: an aggregated one may.
        """
        if not 0 < len(token) <= TOKEN_CHARACTERS or self.objects > OBJECTS_MOST:
            return None
        uses = [
            _counted(key, count)
            for key, count in sorted(self._uses.items(), key=self._weight)
            if _is_usual(key) and count.objects <= OBJECTS_MOST
        ]
        versions = [
            VersionObjects(version=name, objects=number)
            for name, number in self._versions.items()
            if len(name) <= _VERSION_CHARACTERS
        ]
        return CountInProgress(
            about=about,
            continue_token=token,
            started_at=started,
            objects=self.objects,
            versions=versions,
            uses=uses[:USES_KEPT],
        )

    def resume(self, before: CountInProgress) -> None:
        """Take over what was counted before a restart."""
        self.objects = before.objects
        self._versions = {each.version: each.objects for each in before.versions}
        for each in before.uses:
            key = each.version, each.manager, each.operation, each.subresource
            self._uses[key] = EntryCount(each.objects, each.last, list(each.examples))

    def _weight(self, item: tuple[_Key, EntryCount]) -> tuple[bool, bool, int, _Key]:
        (version, *_), count = item
        known = any(each.name == version for each in self.definition.versions)
        return known, version not in self.suspects, -count.objects, item[0]

    def census(
        self, now: datetime, *, complete: bool, resource_version: str, failure: Failure | None = None
    ) -> Census:
        """The counts so far."""
        top = sorted(self._uses.items(), key=self._weight)[:TOP]
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


def _is_usual(key: _Key) -> bool:
    version, manager, operation, subresource = key
    limits = (version, _VERSION_CHARACTERS), (manager, 128), (operation, 16), (subresource, 256)
    return all(len(each) <= most for each, most in limits)


def _counted(key: _Key, count: EntryCount) -> CountedUse:
    version, manager, operation, subresource = key
    return CountedUse(
        manager=manager,
        operation=operation,
        subresource=subresource,
        version=version,
        objects=count.objects,
        last=count.last if len(count.last) <= 64 else "",
        examples=[each for each in count.examples if len(each) <= 320],
    )


def _use(key: _Key, count: EntryCount) -> ManagerUse:
    version, manager, operation, subresource = key
    return ManagerUse(
        manager, operation, subresource, version, count.objects, count.newest, tuple(count.examples)
    )


def object_name(metadata: Mapping[str, Any]) -> str:
    """`namespace/name`, or `name` of an object without namespace."""
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
