"""The result of a rendering: the objects of a composite, and why others are not there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.core.templates.namespaces import Identity


class ResourceState(StrEnum):
    """What becomes of a resource."""

    RENDERED = "rendered"
    READ = "read"
    """An externalRef whose object is there."""
    WAITING = "waiting"
    """Something that it needs is not there yet. Nothing of it is deleted."""
    PENDING = "pending"
    """Whether it is included cannot be computed yet. Nothing of it is deleted."""
    EXCLUDED = "excluded"
    """It is not to be: what there is of it goes."""
    FAILED = "failed"
    """It has no value for this composite. Nothing of it is deleted."""


@dataclass(slots=True)
class RenderedResource:
    """A resource for one composite."""

    name: str
    state: ResourceState
    objects: list[dict[str, Any]] = field(default_factory=list)
    """Those to apply; none in any state but `rendered`."""
    identities: list[Identity] = field(default_factory=list)
    """Of the objects, or of the one that is read."""
    path: Path | None = None
    """The field that is the reason of the state."""
    column: int | None = None
    why: str = ""
    """What it waits for, why it is excluded, or how it failed."""
    hint: str = ""
    unready: str | None = None
    """If readyWhen is set: why it is not ready; None if it is, or if that is not said by readyWhen."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """All resources of a composite, in the order in which they are applied."""

    resources: Sequence[RenderedResource]
    status: dict[str, Any]
    """The fields of the composite's status that have values."""
    gaps: Sequence[tuple[Path, str]]
    """The fields of the status that have none, with the reason."""

    @property
    def objects(self) -> list[dict[str, Any]]:
        """All objects to apply, in order."""
        return [each for resource in self.resources for each in resource.objects]

    @property
    def failed(self) -> bool:
        """Whether a resource failed."""
        return any(each.state is ResourceState.FAILED for each in self.resources)
