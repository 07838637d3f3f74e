"""DefinitionReport: what is wrong with a CRD, why, and what to do; one for each, made by the operator."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind

_INT64: dict[str, Any] = {"format": "int64"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}

FINDINGS_SHOWN = 50
"""How many findings status lists; status.findingCounts counts them all."""

Severity = Literal["Refused", "Error", "Warning", "Note", "Unchecked"]
"""Of a finding, the worst first."""
SEVERITIES: tuple[Severity, ...] = ("Refused", "Error", "Warning", "Note", "Unchecked")


class Finding(ApiModel):
    """What the linter says of one field of the CRD."""

    severity: Severity
    """Refused: the API server would refuse the CRD for it if the CRD were created now. Error: it is accepted
    and cannot work. Warning: somebody will stumble over it. Unchecked: only the API server can tell."""
    id: str
    """Names the rule in the documentation of `crdkeeper lint`."""
    path: str
    """The field, as the API server names it."""
    message: str


class FindingCounts(ApiModel):
    """How many findings there are, also of those that status.findings has no room for."""

    total: int = 0
    """Those that ask for something: refused, errors and warnings."""
    refused: int = 0
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    """Matters of taste; `crdkeeper lint --all` lists them."""
    unchecked: int = 0
    """Checks that only the API server can make."""


class DefinitionReportStatus(ApiModel):
    """What is the case. All of it is written by the operator, and again if somebody else changes it."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    """The metadata.generation of the report itself."""
    definition_generation: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """The metadata.generation of the CRD that was looked at."""
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    """Ready sums up the others. What each reason means and what to do about it is in docs/reports.md."""
    storage_version: str = ""
    """The version in which the API server writes objects."""
    stored_versions: Annotated[list[str], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The versions in which objects may be stored: status.storedVersions of the CRD."""
    findings: Annotated[list[Finding], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The worst findings of `crdkeeper lint`, without notes."""
    finding_counts: Annotated[FindingCounts, Field(default_factory=FindingCounts)]
    assessed: str = ""
    """Tells the operator whether findings are those of the CRD as it is, found by its own version."""


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class DefinitionReport(Kind):
    """Says how a CustomResourceDefinition is; it has the CRD's name, is owned by it and goes with it."""

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
