"""A CRD reduced to what decisions need.

A CRD with its schemas can have a megabyte, and a cluster has hundreds. The operator keeps these facts in
memory instead of the objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from crdkeeper.apiserver.golang.times import moment

ALLOW_DELETION: Final = "crdkeeper.dev/allow-deletion"
"""The annotation of a CRD with the reason why no DefinitionPolicy protects it."""


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """One entry of spec.versions."""

    name: str
    served: bool
    storage: bool
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class DefinitionFacts:
    """A CustomResourceDefinition (apiextensions.k8s.io/v1) without its schemas."""

    name: str
    uid: str
    resource_version: str
    generation: int
    group: str
    plural: str
    kind: str
    namespaced: bool
    versions: tuple[VersionFacts, ...]
    stored_versions: tuple[str, ...]
    labels: Mapping[str, str]
    established: bool
    terminating: bool
    changed_at: datetime | None
    """No earlier than the last change of spec, in the API server's time; None if unknown."""
    created_at: datetime | None = None
    storage_migrating: bool = False
    """Whether the API server's own migrator reports that it is rewriting the objects."""
    deletion_allowed: bool = False
    """Whether it has the annotation ALLOW_DELETION, so that no DefinitionPolicy protects it."""

    @property
    def storage_version(self) -> str:
        """The version in which new objects are stored; the API server guarantees exactly one."""
        return next(each.name for each in self.versions if each.storage)

    @property
    def served_versions(self) -> tuple[str, ...]:
        """The versions at which objects can be read and written."""
        return tuple(each.name for each in self.versions if each.served)

    @property
    def endpoint_version(self) -> str | None:
        """The version to list and patch at: the storage version if served, which saves a conversion."""
        served = self.served_versions
        return self.storage_version if self.storage_version in served else next(iter(served), None)

    @property
    def outdated_versions(self) -> tuple[str, ...]:
        """Stored versions other than the storage version, which a migration removes."""
        return tuple(each for each in self.stored_versions if each != self.storage_version)


def definition_facts(crd: Mapping[str, Any]) -> DefinitionFacts:
    """Reduce a CRD object.

    Raises KeyError if it is not a complete CRD as returned by the API server.
    """
    metadata, spec, status = crd["metadata"], crd["spec"], crd.get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    created = metadata.get("creationTimestamp")
    return DefinitionFacts(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata.get("generation", 0),
        group=spec["group"],
        plural=spec["names"]["plural"],
        kind=spec["names"]["kind"],
        namespaced=spec["scope"] == "Namespaced",
        versions=tuple(
            VersionFacts(each["name"], each["served"], each["storage"], bool(each.get("deprecated")))
            for each in spec["versions"]
        ),
        stored_versions=tuple(status.get("storedVersions") or ()),
        labels=dict(metadata.get("labels") or {}),
        established=conditions.get("Established") == "True",
        terminating="deletionTimestamp" in metadata or conditions.get("Terminating") == "True",
        changed_at=spec_changed_at(metadata),
        created_at=datetime.fromisoformat(created) if created else None,
        storage_migrating=conditions.get("StorageMigrating") == "True",
        deletion_allowed=bool((metadata.get("annotations") or {}).get(ALLOW_DELETION)),
    )


_TRUNCATED = timedelta(seconds=1)
"""The API server truncates times to whole seconds, so a recorded time is up to this much too early."""
_LATEST = datetime.max.replace(tzinfo=UTC) - _TRUNCATED


def spec_changed_at(metadata: Mapping[str, Any]) -> datetime | None:
    """The newest time in managedFields outside subresources, rounded up: spec did not change after it.

    The API server updates an entry's time only when the write changes the object, and each change of spec
    belongs to an entry without a subresource. None if there are no such entries.
    """
    times = [
        moment(entry["time"])
        for entry in metadata.get("managedFields") or ()
        if not entry.get("subresource") and entry.get("time")
    ]
    return min(max(times), _LATEST) + _TRUNCATED if times else None
