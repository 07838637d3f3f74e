"""The result of a rendering: the objects of a composite, and why others are not there."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.statusgap import StatusGap


class ResourceState(StrEnum):
    """What becomes of a resource."""

    RENDERED = "rendered"
    READ = "read"
    """An externalRef whose objects are there."""
    WAITING = "waiting"
    """Something that it needs is not there yet. Nothing of it is deleted."""
    PENDING = "pending"
    """Whether it is included cannot be computed yet. Nothing of it is deleted."""
    EXCLUDED = "excluded"
    """It is not to be: what there is of it goes."""
    FAILED = "failed"
    """It has no value for this composite. Nothing of it is deleted."""


class ReadinessState(StrEnum):
    """Whether an object is ready."""

    READY = "ready"
    NOT_READY = "not ready"
    ABSENT = "absent"
    """It does not exist yet."""
    UNKNOWN = "unknown"
    """It could not be read."""
    FAILED = "failed"
    """Its readyWhen cannot be evaluated, and waiting does not help."""


@dataclass(frozen=True, slots=True)
class ObjectReadiness:
    """Whether an object is ready, and why not."""

    state: ReadinessState
    why: str = ""
    """A sentence that names the object; empty if it is ready."""


@dataclass(frozen=True, slots=True)
class RenderedObject:
    """An object of a resource."""

    identity: Identity
    value: dict[str, Any] | None
    """The object to apply, which shares parts with what it was rendered from: change a copy. None of an
    externalRef."""
    readiness: ObjectReadiness | None = None
    """By readyWhen; None if that is not set, or if the resource waits."""


@dataclass(frozen=True, slots=True)
class RenderedResource:
    """A resource for one composite."""

    name: str
    api_version: str
    """Of its objects."""
    state: ResourceState
    wave: int
    """Its place in the order: resources of one wave do not need each other."""
    objects: Sequence[RenderedObject] = ()
    """Those to apply, or those that an externalRef reads, which are named also while it waits for them."""
    path: Path | None = None
    """The field that is the reason of the state."""
    column: int | None = None
    why: str = ""
    """What it waits for, why it is excluded, or how it failed."""
    hint: str = ""

    @property
    def unready(self) -> str | None:
        """Why the first object that is not ready by readyWhen is not; None if there is none."""
        for each in self.objects:
            if each.readiness is not None and each.readiness.state is not ReadinessState.READY:
                return each.readiness.why
        return None


@dataclass(frozen=True, slots=True)
class Rendering:
    """All resources of a composite, in the order in which they are applied."""

    resources: Sequence[RenderedResource]
    status: dict[str, Any]
    """The fields of the composite's status that have values."""
    gaps: Sequence[StatusGap]
    """The fields of the status that have none."""
    disputed: frozenset[Identity] = frozenset()
    """Those that two resources, or two items of one, would be: nothing says whose they are."""

    @property
    def objects(self) -> list[dict[str, Any]]:
        """All objects to apply, in order."""
        return [
            each.value for resource in self.resources for each in resource.objects if each.value is not None
        ]

    @property
    def failed(self) -> bool:
        """Whether a resource failed."""
        return any(each.state is ResourceState.FAILED for each in self.resources)
