"""DefinitionPolicy: which CRDs are managed automatically, and how."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from crdkeeper.api.finalizerrelease import FinalizerRule, FinalizerStanding
from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind
from crdkeeper.api.storagemigration import MigrationTemplate

_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_MAP_BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class LabelSelectorRequirement(ApiModel):
    """One requirement of a label selector (metav1.LabelSelectorRequirement)."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[str], Field(default_factory=list, json_schema_extra=_ATOMIC)]


class LabelSelector(ApiModel):
    """Selects by labels (metav1.LabelSelector). An empty selector selects everything."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: Annotated[
        list[LabelSelectorRequirement], Field(default_factory=list, json_schema_extra=_ATOMIC)
    ]


class DefinitionRequirement(LabelSelectorRequirement):
    """One requirement of a label selector. What is longer than a label can be matches none."""

    key: str = Field(max_length=317)
    values: Annotated[
        list[Annotated[str, Field(max_length=63)]],
        Field(default_factory=list, max_length=64, json_schema_extra=_ATOMIC),
    ]


class DefinitionSelector(ApiModel):
    """Selects CRDs by their labels. An empty selector selects all CRDs.

    Its size is limited, because the API server evaluates it whenever somebody deletes a CRD. What costs it
    more than CEL may cost would protect nothing.
    """

    match_labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(default_factory=dict, max_length=64)
    match_expressions: Annotated[
        list[DefinitionRequirement],
        Field(default_factory=list, max_length=64, json_schema_extra=_ATOMIC),
    ]


class MigrationPolicy(ApiModel):
    """What to do when a selected CRD has stored versions other than its storage version."""

    mode: Literal["Automatic", "Plan", "Disabled"] = "Automatic"
    """Automatic migrates the objects. Plan reports the result of a dry run. Disabled does nothing."""
    template: Annotated[MigrationTemplate, Field(default_factory=MigrationTemplate)]
    """How to run the migrations."""


class DefinitionProtection(ApiModel):
    """What nobody may do to the selected CRDs. The API server itself refuses, also if crdkeeper is down."""

    deletion: Literal["Allow", "Deny"] = "Allow"
    """Deny refuses to delete a CRD, with all of its objects, and to stop serving its last version.

    The annotation `crdkeeper.dev/allow-deletion` of a CRD, with a reason as its value, lets both pass. All
    policies that select a CRD count, not only the oldest.
    """


class DefinitionPolicySpec(ApiModel):
    """Which CRDs to select, and what to do for them. A CRD must match both selector and groups."""

    selector: Annotated[DefinitionSelector, Field(default_factory=DefinitionSelector)]
    """Selects CRDs by their labels. An empty selector selects all CRDs."""
    groups: Annotated[
        list[Annotated[str, Field(max_length=253)]],
        Field(default_factory=lambda: ["*"], min_length=1, max_length=64, json_schema_extra=_SET),
    ]
    """API groups as shell globs, such as `*.example.com`."""
    storage_migration: Annotated[MigrationPolicy, Field(default_factory=MigrationPolicy)]
    """Whether and how to migrate the objects of the selected CRDs."""
    protection: Annotated[DefinitionProtection, Field(default_factory=DefinitionProtection)]
    """What to refuse, of all CRDs that are selected."""
    finalizers: Annotated[
        list[FinalizerRule], Field(default_factory=list, max_length=32, json_schema_extra=_MAP_BY_NAME)
    ]
    """Finalizers to release from objects in deletion of the CRDs that this policy governs."""
    changes: Literal["Allow", "Warn", "Deny"] = "Allow"
    """What to do when somebody changes a CRD that is selected.

    Warn shows whom the change would affect, as warnings of `kubectl apply`. Deny also refuses a change by
    which live objects would lose something or be refused, unless the CRD has the annotation
    `crdkeeper.dev/allow-change` with a reason as its value. What cannot be examined in time passes. All
    policies that select a CRD count, not only the oldest. Needs manifests/changes.
    """


class DefinitionPolicyStatus(ApiModel):
    """The CRDs that the policy currently selects."""

    observed_generation: Annotated[int, Field(json_schema_extra={"format": "int64"})] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    selected: int = 0
    """Number of CRDs that this policy governs. If several policies match a CRD, the oldest one governs it."""
    outdated: int = 0
    """Number of those whose status.storedVersions lists more than the storage version."""
    failing: int = 0
    """Number of those whose migration, or in mode Plan whose dry run, is failing. 0 in mode Disabled."""
    protected: int = 0
    """Number of CRDs that this policy protects from deletion, without those that may be deleted."""
    finalizers: Annotated[list[FinalizerStanding], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """What each of the finalizers in spec holds up."""


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class DefinitionPolicy(Kind):
    """Selects CRDs, by labels and API groups, for crdkeeper to manage automatically."""

    plural: ClassVar[str] = "definitionpolicies"
    short_names: ClassVar[tuple[str, ...]] = ("defpol",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Ready", type="string", json_path=_ready("status")),
        Column(name="Reason", type="string", json_path=_ready("reason")),
        Column(name="Selected", type="integer", json_path=".status.selected"),
        Column(name="Outdated", type="integer", json_path=".status.outdated"),
        Column(name="Failing", type="integer", json_path=".status.failing"),
        Column(name="Protected", type="integer", json_path=".status.protected"),
        Column(name="Message", type="string", json_path=_ready("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["DefinitionPolicy"] = "DefinitionPolicy"
    spec: Annotated[DefinitionPolicySpec, Field(default_factory=DefinitionPolicySpec)]
    status: Annotated[DefinitionPolicyStatus, Field(default_factory=DefinitionPolicyStatus)]
