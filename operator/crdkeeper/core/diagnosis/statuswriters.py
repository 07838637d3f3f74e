"""Who writes the status of objects through the main resource, by managedFields of some objects.

As soon as a version has the status subresource, the API server ignores a status that is written through the
main resource, and says so to nobody: the request succeeds. What was written before stays in the entry of its
manager, also when that manager writes other fields later. So an object whose status belongs to entries
without a subresource, and to no others, shows a writer that does not know the subresource, or is gone.

Manifests that somebody applies may have a status, too, such as a dump of an object. A status is a
controller's if it has fields that only controllers keep, or if its manager owns nothing else of the object
and is not kubectl or a tool that applies like it: of a manifest of which all but the status is there
already, an update owns only the status.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.apiserver.golang.times import moment
from crdkeeper.core.diagnosis.census import EntryCount
from crdkeeper.core.diagnosis.probes import Failure
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources

REACTION = timedelta(minutes=10)
"""A controller that has not written status so long after a change of spec does not, or without effect."""
_SHOWN = 5
_MOST_WRITERS = 200
"""Writers that are counted separately: a client may invent a manager's name for every request."""
_MOST_CONDITIONS = 50

Entry = Mapping[str, Any]
_OF_MANIFESTS: Final = frozenset(
    ("f:kubectl.kubernetes.io/last-applied-configuration", "f:argocd.argoproj.io/tracking-id")
)
"""Annotations by which tools that apply manifests know their objects."""


@dataclass(frozen=True, slots=True)
class StatusWriter:
    """A manager that wrote status through the main resource."""

    manager: str
    operation: str
    """Apply or Update."""
    version: str
    """Without the group."""
    objects: int
    last: datetime | None
    """The time of the newest entry, which may have been for other fields."""
    examples: tuple[str, ...]
    """The first few objects, as `namespace/name` or `name`."""


@dataclass(frozen=True, slots=True)
class Writers:
    """The managers that one thing is true for."""

    shown: tuple[StatusWriter, ...] = ()
    """Those of most objects; at most five."""
    total: int = 0
    objects: int = 0


@dataclass(frozen=True, slots=True)
class StatusWriters:
    """What some objects show. An object counts for one thing only."""

    objects: int
    """How many objects were read."""
    complete: bool
    """Whether these are all."""
    without: Writers = Writers()
    """At versions without status subresource."""
    ignored: Writers = Writers()
    """At versions that have one, of objects whose spec has long changed since, and whose status has not."""
    before: Writers = Writers()
    """At versions that have one, of other objects that nobody has written the status of since."""
    failure: Failure | None = None
    """Why not more objects could be read."""


@dataclass(slots=True)
class _Tally:
    objects: int = 0
    counts: dict[tuple[str, str, str], EntryCount] = field(default_factory=dict)

    def add(self, metadata: Mapping[str, Any], entries: Iterable[Entry]) -> None:
        self.objects += 1
        for entry in entries:
            version = str(entry["apiVersion"]).rpartition("/")[2]
            key = str(entry.get("manager") or ""), str(entry.get("operation") or ""), version
            count = self.counts.get(key)
            if count is None:
                if len(self.counts) >= _MOST_WRITERS:
                    continue
                count = self.counts[key] = EntryCount()
            count.add(metadata, entry.get("time") or "")

    def writers(self) -> Writers:
        top = sorted(self.counts.items(), key=lambda item: (-item[1].objects, item[0]))[:_SHOWN]
        shown = tuple(
            StatusWriter(*key, count.objects, count.newest, tuple(count.examples)) for key, count in top
        )
        return Writers(shown, len(self.counts), self.objects)


@dataclass(slots=True)
class StatusTally:
    """Counts objects one by one, in bounded memory."""

    definition: DefinitionFacts
    declared: DeclaredSubresources
    now: datetime
    objects: int = 0
    _without: _Tally = field(default_factory=_Tally)
    _ignored: _Tally = field(default_factory=_Tally)
    _before: _Tally = field(default_factory=_Tally)

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Count objects by their metadata."""
        for each in items:
            self.objects += 1
            self._add(each["metadata"])

    def _add(self, metadata: Mapping[str, Any]) -> None:
        prefix = f"{self.definition.group}/"
        entries: list[Entry] = [
            each
            for each in metadata.get("managedFields") or ()
            if str(each.get("apiVersion") or "").startswith(prefix)
        ]
        main = [each for each in entries if not each.get("subresource") and self._tells(each)]
        if not main:
            return
        bare = {each for each in self.definition.served_versions if each not in self.declared.status}
        without = [each for each in main if str(each["apiVersion"]).removeprefix(prefix) in bare]
        if without:
            self._without.add(metadata, without)
        elif self.declared.status and not any(each.get("subresource") == "status" for each in entries):
            (self._ignored if self._is_overdue(entries, main) else self._before).add(metadata, main)

    def _tells(self, entry: Entry) -> bool:
        """Whether a controller wrote this status."""
        status = _owned(entry, "f:status")
        if status is None or not status.keys() - {"."}:  # objects may say `status: {}`
            return False
        if "f:observedGeneration" in status or "f:conditions" in status:
            return True
        fields: Mapping[str, Any] = entry["fieldsV1"]
        if any(_has(fields, path) for path in self.declared.scale_status):
            return True
        return fields.keys() <= {"f:metadata", "f:status"} and not _is_applied(entry)

    def _is_overdue(self, entries: Iterable[Entry], main: Iterable[Entry]) -> bool:
        """Whether spec has changed since the subresource was there, and a status that follows it has not."""
        since = self.definition.changed_at
        writes = [each for each in entries if each.get("time") and _owned(each, "f:spec") is not None]
        changed = max((moment(each["time"]) for each in writes), default=None)
        if since is None or changed is None or not any(_follows(_owned(each, "f:status")) for each in main):
            return False
        return since < changed <= self.now - REACTION

    def writers(self, *, complete: bool, failure: Failure | None = None) -> StatusWriters:
        """What was counted."""
        return StatusWriters(
            objects=self.objects,
            complete=complete,
            without=self._without.writers(),
            ignored=self._ignored.writers(),
            before=self._before.writers(),
            failure=failure,
        )


def _owned(entry: Entry, field_: str) -> Mapping[str, Any] | None:
    fields = entry.get("fieldsV1")
    found = fields.get(field_) if isinstance(fields, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _has(fields: Any, path: str) -> bool:
    """Whether a field is among these, by its path, such as `.status.replicas`."""
    for name in path.removeprefix(".").split("."):
        if not isinstance(fields, Mapping) or f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
    return True


def _is_applied(entry: Entry) -> bool:
    """Whether a person or a tool wrote it from a manifest."""
    if str(entry.get("manager") or "").startswith("kubectl"):
        return True
    annotations = (_owned(entry, "f:metadata") or {}).get("f:annotations")
    return isinstance(annotations, Mapping) and not _OF_MANIFESTS.isdisjoint(annotations)


def _follows(status: Mapping[str, Any] | None) -> bool:
    """Whether these fields must change whenever spec does."""
    if status is None:
        return False
    if "f:observedGeneration" in status:
        return True
    conditions = status.get("f:conditions")
    each = list(conditions.values())[:_MOST_CONDITIONS] if isinstance(conditions, Mapping) else []
    return any(isinstance(one, Mapping) and "f:observedGeneration" in one for one in each)
