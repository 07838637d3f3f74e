"""CompositionRevision: an immutable copy of a Composition, used by composites until they follow a newer one.

Immutable in all of its spec. In an object with known and unknown fields, `==` of the API server's CEL takes a
renamed unknown field for equal (unstructuredMap.Equal in k8s.io/apiserver/pkg/cel/common). So templates and
status have no schema here, as then all of them is compared; and lists are atomic, as then their order counts.
"""

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, JsonValue

from crdkeeper.api.composite import CompositionReference
from crdkeeper.api.composition import MOST_TEMPLATES, CompositionFields, ResourceFields
from crdkeeper.api.meta import GROUP, UNSEEN, ApiModel, Column, Condition, Kind, rules

_INT64: dict[str, Any] = {"format": "int64"}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

HASH_LABEL: Final = f"{GROUP}/composition-hash"
"""Identifies the content of a revision: the Composition's spec and labels."""

_Copy = Annotated[JsonValue, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]


class RevisionResource(ResourceFields):
    """A resource as it was in the Composition."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    template: _Copy | None = None


class CompositionRevisionSpec(CompositionFields):
    """The Composition's spec, with its name and a number."""

    model_config = rules(("self == oldSelf", "a CompositionRevision is immutable"))

    composition_ref: CompositionReference
    """The Composition that this is a copy of."""
    revision: Annotated[int, Field(ge=1, json_schema_extra=_INT64)]
    """Counts the changes of the Composition. The highest number is the newest."""
    status: _Copy | None = None
    resources: Annotated[
        list[RevisionResource],
        Field(min_length=1, max_length=MOST_TEMPLATES, json_schema_extra=_ATOMIC),
    ]


class CompositionRevisionStatus(ApiModel):
    """The use of the revision."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]


class CompositionRevision(Kind):
    """An immutable copy of a Composition, by which composites run."""

    plural: ClassVar[str] = "compositionrevisions"
    short_names: ClassVar[tuple[str, ...]] = ("comprev",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Composition", type="string", json_path=".spec.compositionRef.name"),
        Column(name="Revision", type="integer", json_path=".spec.revision"),
        Column(
            name="Hash",
            type="string",
            json_path=f".metadata.labels.{HASH_LABEL.replace('.', chr(92) + '.')}",
            priority=1,
        ),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["CompositionRevision"] = "CompositionRevision"
    spec: CompositionRevisionSpec
    status: Annotated[CompositionRevisionStatus, Field(default_factory=CompositionRevisionStatus)]
