"""CompositeResourceDefinition: a custom API, for which crdkeeper creates the CRD.

The fields have the names that they have in Crossplane's definitions, so that a reader of its documentation is
at home (https://docs.crossplane.io/latest/composition/composite-resource-definitions/).
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from crdkeeper.api.composite import CompositionReference, UpdatePolicy
from crdkeeper.api.definitionpolicy import LabelSelector
from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind, immutable, rules

_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_MAP_BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

MOST_VERSIONS = 64

Name = Annotated[str, Field(min_length=1, max_length=63)]
OpenSchema = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]


class CompositeNames(ApiModel):
    """The names of the API, as in a CRD."""

    model_config = rules(
        (
            "(has(self.singular) ? self.singular : self.kind.lowerAscii()) == "
            "(has(oldSelf.singular) ? oldSelf.singular : oldSelf.kind.lowerAscii())",
            "names.singular is immutable",
        )
    )

    kind: Annotated[Name, Field(json_schema_extra=immutable("names.kind"))]
    """The kind in CamelCase, such as Database."""
    plural: Annotated[Name, Field(json_schema_extra=immutable("names.plural"))]
    """The plural in lower case, such as databases."""
    singular: Name | None = None
    """The singular in lower case. If unset, the kind in lower case."""
    list_kind: Name | None = None
    """The kind of lists. If unset, the kind followed by List."""
    short_names: Annotated[list[Name], Field(default_factory=list, max_length=32, json_schema_extra=_SET)]
    """Short names for kubectl."""
    categories: Annotated[list[Name], Field(default_factory=list, max_length=32, json_schema_extra=_SET)]
    """Categories for kubectl, besides `composite`."""


class CompositeSchema(ApiModel):
    """The schema of a version."""

    open_api_schema: Annotated[OpenSchema, Field(alias="openAPIV3Schema")]
    """The schema in OpenAPI v3, as in a CRD. It describes spec and status; crdkeeper adds spec.crdkeeper,
    status.crdkeeper, status.conditions and status.observedGeneration."""


class CompositeColumn(ApiModel):
    """A column of kubectl get, as in a CRD."""

    name: str
    type: str
    json_path: str
    format: str | None = None
    description: str | None = None
    priority: int | None = None


class CompositeSelectableField(ApiModel):
    """A field that can be used in field selectors, as in a CRD."""

    json_path: str


class CompositeScale(ApiModel):
    """The subresource scale, as in a CRD."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str | None = None


class CompositeSubresources(ApiModel):
    """The subresources besides status, which every composite has."""

    scale: CompositeScale | None = None
    """Lets kubectl scale and autoscalers change the composite."""


class CompositeVersion(ApiModel):
    """A version of the API."""

    name: Name
    """The name of the version, such as v1 or v1beta1."""
    served: bool = True
    """Whether clients can use the version."""
    referenceable: bool = False
    """Whether composites are stored in this version. Exactly one version must be referenceable."""
    deprecated: bool = False
    """Whether clients that use the version get a warning."""
    deprecation_warning: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The text of that warning."""
    schema_: Annotated[CompositeSchema, Field(alias="schema")]
    additional_printer_columns: Annotated[
        list[CompositeColumn], Field(default_factory=list, max_length=64, json_schema_extra=_ATOMIC)
    ]
    """Columns of kubectl get. They precede Ready, Synced, Composition and Age."""
    selectable_fields: Annotated[
        list[CompositeSelectableField], Field(default_factory=list, max_length=8, json_schema_extra=_ATOMIC)
    ]
    """Fields that can be used in field selectors."""
    subresources: CompositeSubresources | None = None


class CompositeMetadata(ApiModel):
    """Metadata of the CRD."""

    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class CompositeResourceDefinitionSpec(ApiModel):
    """The API: its names, versions and schemas, and the Compositions for it."""

    model_config = rules(
        (
            "self.versions.exists_one(each, each.referenceable)",
            "exactly one version must be referenceable: the one in which composites are stored",
        ),
        (
            "self.versions.exists(each, each.served)",
            "at least one version must be served",
        ),
        (
            "!self.versions.exists(each, each.served) || "
            "self.versions.all(each, each.served || !each.referenceable)",
            "the referenceable version must be served",
        ),
        (
            "self.versions.all(each, !has(each.deprecationWarning) || each.deprecated)",
            "deprecationWarning needs deprecated: true",
        ),
        (
            "!has(self.enforcedCompositionRef) || !has(self.defaultCompositionRef) || "
            "self.enforcedCompositionRef.name == self.defaultCompositionRef.name",
            "defaultCompositionRef has no effect beside enforcedCompositionRef: name the same Composition, "
            "or remove it",
        ),
        (
            "has(self.enforcedCompositionRef) == has(oldSelf.enforcedCompositionRef) && "
            "(!has(self.enforcedCompositionRef) || "
            "self.enforcedCompositionRef.name == oldSelf.enforcedCompositionRef.name)",
            "enforcedCompositionRef is immutable: composites rely on it",
        ),
    )

    group: Annotated[str, Field(min_length=1, max_length=253, json_schema_extra=immutable("group"))]
    """The API group, such as platform.example.com."""
    scope: Annotated[Literal["Namespaced", "Cluster"], Field(json_schema_extra=immutable("scope"))] = (
        "Namespaced"
    )
    """Whether composites are in namespaces."""
    names: CompositeNames
    versions: Annotated[
        list[CompositeVersion], Field(min_length=1, max_length=MOST_VERSIONS, json_schema_extra=_MAP_BY_NAME)
    ]
    """The versions of the API."""
    default_composition_ref: CompositionReference | None = None
    """The Composition of composites that select none."""
    default_composition_revision_selector: LabelSelector | None = None
    """compositionRevisionSelector of composites that set none."""
    default_composition_update_policy: UpdatePolicy = "Automatic"
    """compositionUpdatePolicy of composites that set none."""
    enforced_composition_ref: CompositionReference | None = None
    """The Composition of all composites, whatever they select."""
    metadata: CompositeMetadata | None = None
    """Labels and annotations of the CRD."""
    deletion: Literal["Protect", "Cascade", "Orphan"] = "Protect"
    """What a deletion of the definition does while composites exist. Protect waits until there are none.
    Cascade deletes them, then the CRD. Orphan leaves the CRD and the composites."""
    breaking_changes: Literal["Refuse", "Allow"] = "Refuse"
    """Refuse leaves the CRD as it is if a change would hurt clients or existing composites."""


class CompositeResourceDefinitionStatus(ApiModel):
    """The state of the CRD and its composites."""

    observed_generation: Annotated[int, Field(json_schema_extra={"format": "int64"})] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    composites: Annotated[int, Field(json_schema_extra={"format": "int64"})] = 0
    """Number of composites. While somebody's deletion of the CRD lasts, the number when it began."""
    crd_uid: Annotated[str, Field(alias="crdUID")] = ""
    """metadata.uid of the CRD that has these composites."""
    lost_composites: Annotated[int, Field(json_schema_extra={"format": "int64"})] = 0
    """Number of composites that were deleted with a CRD, by somebody else than crdkeeper."""


def _condition(type_: str, path: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{path}'


class CompositeResourceDefinition(Kind):
    """Defines a custom API, each of whose objects represents other objects."""

    plural: ClassVar[str] = "compositeresourcedefinitions"
    short_names: ClassVar[tuple[str, ...]] = ("cxrd",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Established", type="string", json_path=_condition("Established")),
        Column(name="Offered", type="string", json_path=_condition("Offered")),
        Column(name="Ready", type="string", json_path=_condition("Ready")),
        Column(name="Reason", type="string", json_path=_condition("Ready", "reason")),
        Column(name="Composites", type="integer", json_path=".status.composites"),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )
    validations: ClassVar[tuple[dict[str, str], ...]] = (
        {
            "rule": "self.metadata.name == self.spec.names.plural + '.' + self.spec.group",
            "message": "metadata.name must be <spec.names.plural>.<spec.group>",
        },
    )

    kind: Literal["CompositeResourceDefinition"] = "CompositeResourceDefinition"
    spec: CompositeResourceDefinitionSpec
    status: Annotated[
        CompositeResourceDefinitionStatus, Field(default_factory=CompositeResourceDefinitionStatus)
    ]
