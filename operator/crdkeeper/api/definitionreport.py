"""DefinitionReport: what is wrong with a CRD, why, and what to do. The operator writes one for each CRD."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind

_INT64: dict[str, Any] = {"format": "int64"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}

FINDINGS_SHOWN = 50
"""The most findings that status lists; status.findingCounts counts all of them."""

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
    assessed: str = ""
    """For the operator: identifies the CRD and the operator version that the findings belong to."""


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
