"""What crdkeeper adds to every composite: how its Composition is chosen, and the state of its resources."""

from typing import Annotated, Any, Literal

from pydantic import Field

from crdkeeper.api.definitionpolicy import LabelSelector
from crdkeeper.api.meta import UNSEEN, ApiModel, Condition
from crdkeeper.api.texts import Line

_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

MOST_RESOURCES = 1000
"""The most objects that a composite has: status.crdkeeper.resources lists all of them."""

UpdatePolicy = Literal["Automatic", "Manual"]


class CompositionReference(ApiModel):
    """A Composition, by name."""

    name: Annotated[str, Field(min_length=1, max_length=253)]


class CompositionRevisionReference(ApiModel):
    """A CompositionRevision, by name."""

    name: Annotated[str, Field(min_length=1, max_length=253)]


class CompositeSettings(ApiModel):
    """How crdkeeper composes this object."""

    composition_ref: CompositionReference | None = None
    """The Composition to use."""
    composition_selector: LabelSelector | None = None
    """Selects the Composition by its labels, if none is named."""
    composition_revision_ref: CompositionRevisionReference | None = None
    """The revision of the Composition in use. Set it to choose one, with compositionUpdatePolicy Manual."""
    composition_revision_selector: LabelSelector | None = None
    """With compositionUpdatePolicy Automatic: the newest of the revisions with these labels is used."""
    composition_update_policy: UpdatePolicy | None = None
    """Automatic follows the newest revision. Manual keeps the one in use. If unset, the definition's default
    applies."""


class ComposedObject(ApiModel):
    """An object in the cluster."""

    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    uid: str | None = None


class ComposedResource(ApiModel):
    """One of the composite's objects."""

    name: str
    """The name of the resource in the Composition."""
    object: ComposedObject
    ready: bool = False
    message: Line | None = None
    """Why it is not ready."""
    wave: int = 0
    """Objects of a higher wave are created after it, and deleted before it."""
    deletion: Literal["Delete", "Orphan"] | None = None
    """What happens to it when the composite no longer has it. Delete if unset."""


class CompositeState(ApiModel):
    """The composed resources, and the revision from which they were composed."""

    revision: str | None = None
    """The name of the CompositionRevision."""
    resources: Annotated[
        list[ComposedResource],
        Field(default_factory=list, max_length=MOST_RESOURCES, json_schema_extra=_ATOMIC),
    ]
    """All of the composed resources, in the order in which they were created."""


class CompositeStatus(ApiModel):
    """The fields of every composite's status that crdkeeper writes."""

    observed_generation: Annotated[int, Field(json_schema_extra={"format": "int64"})] = UNSEEN
    """The metadata.generation that the status describes. -1 until a controller has seen the object."""
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    crdkeeper: Annotated[CompositeState, Field(default_factory=CompositeState)]
