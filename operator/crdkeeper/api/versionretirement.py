"""VersionRetirement: takes an old version of a CRD out of service, step by step, each step proved."""

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind, Time, immutable, rules
from crdkeeper.api.storagemigration import GroupResource, MigrationPace
from crdkeeper.api.texts import Line

_INT64: dict[str, Any] = {"format": "int64"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}

DEPRECATED: Final = "Deprecated"
UNUSED: Final = "Unused"
NOT_SERVED: Final = "NotServed"
MIGRATED: Final = "Migrated"
REMOVED: Final = "Removed"
Step = Literal["Deprecated", "Unused", "NotServed", "Migrated", "Removed"]
STEPS: Final[tuple[Step, ...]] = (DEPRECATED, UNUSED, NOT_SERVED, MIGRATED, REMOVED)
"""The conditions that are steps, in order."""

SHOWN = 50
"""The most writers, readers, owners and holds that status lists."""


class VersionRetirementSpec(ApiModel):
    """Which version to retire, and how."""

    model_config = rules(("self.resource.group != ''", "resource.group must be the group of a CRD"))

    resource: Annotated[GroupResource, Field(json_schema_extra=immutable("resource"))]
    """The CRD, by plural and group."""
    version: Annotated[
        str,
        Field(
            min_length=1,
            max_length=63,
            pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
            json_schema_extra=immutable("version"),
        ),
    ]
    """The version to retire, such as `v1alpha1`."""
    quiet_period: Annotated[
        str,
        Field(min_length=2, max_length=18, pattern="^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$"),
    ] = "168h"
    """How long nobody may have used the deprecated version before it is no longer served, such as `168h` or
    `1h30m`. The period starts again with each new use."""
    mode: Literal["Plan", "Guide", "Execute"] = "Plan"
    """Plan reports what would be done. Guide reports the change that is due, for a CRD whose manifest is
    changed elsewhere, and waits until it is made. Execute changes the CRD."""
    suspend: bool = False
    """Pauses the retirement: nothing is changed, but uses of the version are still observed."""
    migration: Annotated[MigrationPace, Field(default_factory=MigrationPace)]
    """How to migrate the objects before the version is removed."""


class VersionWriter(ApiModel):
    """A field manager that has written objects at the version, in one namespace."""

    manager: Line
    operation: Line
    """Apply or Update."""
    subresource: Line = ""
    namespace: Line = ""
    objects: Annotated[int, Field(json_schema_extra=_INT64)]
    """Number of objects with such an entry in metadata.managedFields."""
    last_time: Time | None = None
    """The newest of these entries."""


class VersionReader(ApiModel):
    """Requests at the version that an API server has counted since it started. It does not say whose."""

    server: Line = ""
    what: Line
    requests: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    since: Time | None = None
    """When the server started to count."""


class VersionOwner(ApiModel):
    """Who sets the CRD's versions and would put the version back."""

    tool: Line = ""
    manager: Line = ""
    detail: Line = ""


class RetirementHold(ApiModel):
    """What must change before a step may be taken."""

    step: Step
    reason: Line
    name: Line = ""
    message: Line


class VersionEvidence(ApiModel):
    """Who uses the version, as far as the cluster tells."""

    taken_time: Time | None = None
    complete: bool = False
    """Whether all objects were counted."""
    failure: Line = ""
    """Why they could not all be counted."""
    counted: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Number of objects counted."""
    objects: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Number of those whose metadata.managedFields names the version."""
    newest_time: Time | None = None
    """The newest write at the version."""
    writers: Annotated[list[VersionWriter], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The latest writers. writerCount covers all of them."""
    writer_count: int = 0
    readers: Annotated[list[VersionReader], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """What API servers have counted, those that have answered last first."""
    reader_count: int = 0
    owners: Annotated[list[VersionOwner], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """Who would put the version back; at most 20 are found."""
    owner_count: int = 0
    warnings: Annotated[list[Line], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """What changes for others without the version, and holds no step; at most 50 are found."""
    unknown: Annotated[list[Line], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """What cannot be known."""


class DueChange(ApiModel):
    """The change to make next."""

    step: Step
    message: Line
    """What to change."""
    patch: Annotated[str, Field(max_length=4096)] = ""
    """The change as a JSON patch of the CRD, for `kubectl patch --type=json` or kustomize.

    Empty for Migrated, which changes no CRD.
    """
    manifest: Annotated[str, Field(max_length=4096)] = ""
    """The changed fields in the CRD's manifest; for Migrated, the manifest of a StorageMigration.

    Empty for Removed: the whole entry of the version goes out of the CRD's manifest.
    """


class RevertedStep(ApiModel):
    """A step that somebody has taken back. It is not repeated before spec changes."""

    step: Step
    generation: Annotated[int, Field(json_schema_extra=_INT64)]
    """The metadata.generation of the VersionRetirement at that time."""
    managers: Line = ""
    """Field managers of the CRD's spec.versions, the latest first."""
    time: Time


class VersionRetirementStatus(ApiModel):
    """What is proved, what holds the next step, and the change that is due."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    definition_uid: str = ""
    """metadata.uid of the CRD that the conditions are about."""
    quiet_since_time: Time | None = None
    """The beginning of the quiet period: the version was deprecated, used, or served again."""
    due: DueChange | None = None
    """The change that is due. Unset while there is nothing to change."""
    holds: Annotated[list[RetirementHold], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """What holds steps that are not done. A search ends at 50: then there may be more than holdCount."""
    hold_count: int = 0
    reverted: RevertedStep | None = None
    migration: str = ""
    """The StorageMigration that the retirement created or waits for."""
    evidence: Annotated[VersionEvidence, Field(default_factory=VersionEvidence)]


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class VersionRetirement(Kind):
    """Takes an old version of a CRD out of service: deprecated, unused, not served, migrated, removed."""

    plural: ClassVar[str] = "versionretirements"
    short_names: ClassVar[tuple[str, ...]] = ("vret",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Ready", type="string", json_path=_ready("status")),
        Column(name="Reason", type="string", json_path=_ready("reason")),
        Column(name="Resource", type="string", json_path=".spec.resource.resource"),
        Column(name="Version", type="string", json_path=".spec.version"),
        Column(name="Mode", type="string", json_path=".spec.mode"),
        Column(name="Due", type="string", json_path=".status.due.step"),
        Column(name="Writers", type="integer", json_path=".status.evidence.writerCount"),
        Column(name="Group", type="string", json_path=".spec.resource.group", priority=1),
        Column(name="Message", type="string", json_path=_ready("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["VersionRetirement"] = "VersionRetirement"
    spec: VersionRetirementSpec
    status: Annotated[VersionRetirementStatus, Field(default_factory=VersionRetirementStatus)]
