"""DefinitionReport: what is wrong with a CRD, why, and what to do. The operator writes one for each CRD."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, field_validator, model_validator

from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind, Time

_INT64: dict[str, Any] = {"format": "int64"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}

FINDINGS_SHOWN = 50
"""The most findings that status lists; status.findingCounts counts all of them."""

VERSIONS_COUNTED = 20
"""The most versions that a census lists."""

USES_KEPT = 50
"""The most uses that a count in progress keeps for a restarted operator."""
TOKEN_CHARACTERS = 4096
"""The API server's own tokens have at most some 600."""
OBJECTS_MOST = 10**12
"""More than etcd can hold. What a forged record has counted must leave room for the objects that follow."""

Severity = Literal["Refused", "Error", "Warning", "Note", "Unchecked"]
"""Severities of findings, worst first."""
SEVERITIES: tuple[Severity, ...] = ("Refused", "Error", "Warning", "Note", "Unchecked")


class Finding(ApiModel):
    """A problem that the linter found in the CRD."""

    severity: Severity
    """Refused: the API server would reject this CRD if it were created now. Error: the API server accepts
    it, but it cannot work. Warning: it is likely to cause trouble. Note: a matter of style.
    Unchecked: only the API server can check it."""
    id: str
    """ID of the rule, as in the documentation of `crdkeeper lint`."""
    path: str
    """Path of the field, in the API server's notation."""
    message: str


class FindingCounts(ApiModel):
    """Number of findings by severity, including those not listed in status.findings."""

    total: int = 0
    """Findings that need attention: refused, errors and warnings."""
    refused: int = 0
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    """Matters of style. `crdkeeper lint --all` lists them."""
    unchecked: int = 0
    """Findings that only the API server can confirm."""


class VersionObjects(ApiModel):
    """How many objects name a version."""

    version: Annotated[str, Field(max_length=63)]
    objects: Annotated[int, Field(ge=0, json_schema_extra=_INT64)]
    """Objects with an entry of metadata.managedFields that names this version."""


class CountedUse(ApiModel):
    """How many of the objects counted so far a field manager wrote in one way at one version."""

    manager: Annotated[str, Field(max_length=128)]
    operation: Annotated[str, Field(max_length=16)]
    subresource: Annotated[str, Field(max_length=256)] = ""
    version: Annotated[str, Field(max_length=63)]
    objects: Annotated[int, Field(ge=0, le=OBJECTS_MOST, json_schema_extra=_INT64)]
    last: Annotated[str, Field(max_length=64)] = ""
    """The newest time in metadata.managedFields, as it is written there."""
    examples: Annotated[
        list[Annotated[str, Field(max_length=320)]],
        Field(default_factory=list, max_length=3, json_schema_extra=_ATOMIC),
    ]


class CountInProgress(ApiModel):
    """How far a count of many objects has got. A restarted operator continues there."""

    about: Annotated[str, Field(max_length=64)]
    """Identifies the state of the CRD that the count is about."""
    continue_token: Annotated[str, Field(min_length=1, max_length=TOKEN_CHARACTERS)]
    """Where the API server continues the list."""
    started_at: Time
    """When the count began. One that began more than six hours ago is not continued."""
    objects: Annotated[int, Field(ge=0, le=OBJECTS_MOST, json_schema_extra=_INT64)]
    """Number of objects counted."""
    versions: Annotated[
        list[VersionObjects], Field(default_factory=list, max_length=100, json_schema_extra=_ATOMIC)
    ]
    uses: Annotated[
        list[CountedUse], Field(default_factory=list, max_length=USES_KEPT, json_schema_extra=_ATOMIC)
    ]
    """Who wrote most objects. What others wrote before a restart is counted in versions only."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if any(each.objects > self.objects for each in self.versions):
            raise ValueError("a version is named by more objects than were counted")
        return self


class ObjectCensus(ApiModel):
    """The last complete count of the CRD's objects. It does not include later writes."""

    taken_at: Time
    objects: Annotated[int, Field(ge=0, json_schema_extra=_INT64)]
    """Number of objects."""
    versions: Annotated[
        list[VersionObjects],
        Field(default_factory=list, max_length=VERSIONS_COUNTED, json_schema_extra=_ATOMIC),
    ]
    """The versions that objects name, first those that most objects name."""

    def is_as(self, other: "ObjectCensus") -> bool:
        """Whether both have the same counts."""
        return (self.objects, self.versions) == (other.objects, other.versions)


class DefinitionReportStatus(ApiModel):
    """The state of the CRD. The operator writes it, and overwrites changes made by others."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    """The metadata.generation of the report itself."""
    definition_generation: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """The metadata.generation of the CRD that this report describes."""
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    """Ready summarizes the other conditions. docs/reports.md explains each reason and what to do about it."""
    storage_version: str = ""
    """The version in which the API server stores objects."""
    stored_versions: Annotated[list[str], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The versions in which objects may be stored: the CRD's status.storedVersions."""
    findings: Annotated[list[Finding], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The worst findings of `crdkeeper lint`, without notes."""
    finding_counts: Annotated[FindingCounts, Field(default_factory=FindingCounts)]
    census: ObjectCensus | None = None
    """Absent for a CRD that has only ever had one version, and before the first count."""
    counting: CountInProgress | None = None
    """Absent if no count is in progress, or if it has just begun."""
    assessed: str = ""
    """For the operator: identifies the CRD and the operator version that the findings belong to."""

    @field_validator("counting", mode="wrap")
    @classmethod
    def _without_what_is_no_count(
        cls, value: Any, read: ValidatorFunctionWrapHandler
    ) -> CountInProgress | None:
        """A record that cannot be continued is none, and leaves the rest of the status readable."""
        try:
            found: CountInProgress | None = read(value)
        except ValidationError:
            return None
        return found


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class DefinitionReport(Kind):
    """Reports the state of the CustomResourceDefinition of the same name, which owns the report."""

    plural: ClassVar[str] = "definitionreports"
    short_names: ClassVar[tuple[str, ...]] = ("defrep",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Ready", type="string", json_path=_ready("status")),
        Column(name="Reason", type="string", json_path=_ready("reason")),
        Column(name="Storage", type="string", json_path=".status.storageVersion"),
        Column(name="Stored", type="string", json_path=".status.storedVersions"),
        Column(name="Findings", type="integer", json_path=".status.findingCounts.total"),
        Column(name="Message", type="string", json_path=_ready("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["DefinitionReport"] = "DefinitionReport"
    status: Annotated[DefinitionReportStatus, Field(default_factory=DefinitionReportStatus)]
