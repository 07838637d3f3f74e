"""StorageMigration: rewrite all objects of a resource at its storage version and trim storedVersions."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from crdkeeper.api.meta import OPERATOR, UNSEEN, ApiModel, Column, Condition, Kind, Time, immutable
from crdkeeper.api.texts import Line

_INT64: dict[str, Any] = {"format": "int64"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}

QUARANTINE_SHOWN = 50
"""How many refused objects status lists by name; the count is always the full one."""


class GroupResource(ApiModel):
    """Names a resource as discovery does: plural and API group."""

    group: Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")] = ""
    """API group; empty for the core group."""
    resource: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")]
    """Plural name in lower case, such as `certificates`."""

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class MigrationLimits(ApiModel):
    """Upper bounds on the load that a migration puts on the API server."""

    max_concurrency: Annotated[int, Field(ge=1, le=256)] = 64
    """Requests in flight at most; below that, latency and throttling decide."""
    max_objects_per_second: Annotated[int | None, Field(ge=1)] = None
    """Objects written per second at most."""
    max_bytes_per_second: Annotated[int | None, Field(ge=1024, json_schema_extra=_INT64)] = None
    """Bytes of objects written per second at most, by the size of sampled objects."""


class MigrationRetry(ApiModel):
    """When objects that were refused are tried again."""

    limit: Annotated[int | None, Field(ge=0)] = None
    """Rounds of retries at most; unset means until all are written."""
    backoff_seconds: Annotated[int, Field(ge=1, le=3600)] = 10
    """Wait before the first round; doubles with each further round."""
    max_backoff_seconds: Annotated[int, Field(ge=1, le=86400)] = 300
    """The longest wait between two rounds."""


class MigrationTemplate(ApiModel):
    """How to migrate: the part of a migration's spec that a policy can also hand out."""

    limits: Annotated[MigrationLimits, Field(default_factory=MigrationLimits)]
    retry: Annotated[MigrationRetry, Field(default_factory=MigrationRetry)]
    trim: bool = True
    """Whether to remove the old versions from the CRD's status.storedVersions once all is proved."""
    managed_fields: Literal["Keep", "Retarget"] = "Keep"
    """Retarget moves entries of metadata.managedFields from other versions to the storage version."""
    verify: Literal["Remaining", "Full"] = "Remaining"
    """What the second pass writes again: objects not seen rewritten since the start, or all.

    With Full a run does its work also if storedVersions holds the storage version only: every object is
    written once more, as after a change of encryption keys.
    """
    settle_seconds: Annotated[int, Field(ge=0, le=3600)] = 65
    """How long all API servers get to see a new storage version; keep it above their --request-timeout."""
    api_server_leases: Literal["Require", "Ignore"] = "Require"
    """Whether each API server must renew its identity Lease after the change before anything counts."""
    ttl_seconds_after_finished: Annotated[int | None, Field(ge=0)] = None
    """Delete the migration this long after it succeeded; unset keeps it."""


class StorageMigrationSpec(MigrationTemplate):
    """What to migrate and how."""

    resource: Annotated[GroupResource, Field(json_schema_extra=immutable("resource"))]
    """The resource whose objects are rewritten; any resource, not only a CRD's."""
    mode: Annotated[Literal["Execute", "Plan"], Field(json_schema_extra=immutable("mode"))] = "Execute"
    """Plan tries every write as a server-side dry run and reports what would be refused."""
    suspend: bool = False
    """Stops the work where it is; set back to false to go on from there."""
    managed_by: Annotated[str, Field(max_length=63, json_schema_extra=immutable("managedBy"))] = OPERATOR
    """Who runs the migration: the operator, or `crdkeeper.dev/cli` for `crdkeeper migrate`."""


class MigrationTarget(ApiModel):
    """The facts that were pinned at the start; if one changes, the run stops and starts again."""

    uid: str | None = None
    """metadata.uid of the CRD; unset for resources that are no CRD's."""
    generation: Annotated[int | None, Field(json_schema_extra=_INT64)] = None
    """metadata.generation of the CRD."""
    storage_version: str | None = None
    """The version in which the API server stores; unset where only the server knows."""
    endpoint_version: str
    """The served version at which objects are listed and patched."""
    stored_versions: Annotated[list[str], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """status.storedVersions of the CRD when the run began."""
    storage_version_hash: str | None = None
    """Discovery's storageVersionHash, for resources that are no CRD's."""
    kind: str
    namespaced: bool

    def same_as(self, other: "MigrationTarget") -> bool:
        """Whether evidence gathered for one holds for the other: same object, spec and storage version."""

        def identity(target: MigrationTarget) -> tuple[object, ...]:
            return (target.uid, target.generation, target.storage_version, target.storage_version_hash)

        return identity(self) == identity(other)


class MigrationSweep(ApiModel):
    """How far the current pass over all objects has come."""

    type: Literal["Rewrite", "Verify", "Plan"]
    continue_token: str | None = None
    """Where to go on; only a short cut, a lost token costs time and nothing else."""
    scanned: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that this pass has dealt with."""
    unexpected: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that the verify pass found still to be rewritten; not zero means one more pass."""
    done: bool = False


class MigrationProgress(ApiModel):
    """Counts of objects; those of before an interruption are kept."""

    total: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that exist, as of the latest page."""
    rewritten: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Written by this migration: their resourceVersion changed."""
    current: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Shown to be stored in the storage version without a write of ours."""
    gone: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Deleted by somebody in the meantime."""
    quarantined: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Refused; see status.quarantine."""
    percent: Annotated[int, Field(ge=0, le=100)] = 0
    objects_per_second: int = 0
    concurrency: int = 0
    """Requests in flight that the API server's latency allows at present."""
    remaining: str = ""
    """Estimated time to the end of the current pass, such as 2m10s."""


class RefusedObject(ApiModel):
    """An object that could not be written, and why."""

    namespace: str = ""
    name: str
    code: int
    """HTTP status code of the answer."""
    reason: Line
    """The API server's reason, such as Invalid or Forbidden."""
    denied_by: Line = ""
    """The webhook or policy that denied the write, where the answer names one."""
    field: Line = ""
    """The field at fault, where the answer names one."""
    message: Line


class MigrationQuarantine(ApiModel):
    """What could not be written. As long as it is not empty nothing is trimmed."""

    objects: Annotated[list[RefusedObject], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The first of them; progress.quarantined is the full count."""
    rounds: int = 0
    """Rounds of retries so far."""
    next_retry_time: Time | None = None


class StorageMigrationStatus(ApiModel):
    """What has been done and proved. It is also the checkpoint that a restarted run goes on from."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    target: MigrationTarget | None = None
    settled_resource_version: str | None = None
    """Separates before from after: what was written above it was written at the storage version."""
    sweep: MigrationSweep | None = None
    progress: Annotated[MigrationProgress, Field(default_factory=MigrationProgress)]
    quarantine: Annotated[MigrationQuarantine, Field(default_factory=MigrationQuarantine)]
    restarts: int = 0
    """How often the pinned facts changed and the run began again."""
    start_time: Time | None = None
    completion_time: Time | None = None


def _condition(path: str) -> str:
    return f'.status.conditions[?(@.type=="Succeeded")].{path}'


class StorageMigration(Kind):
    """Rewrites all objects of a resource at its storage version, proves it, and trims storedVersions."""

    plural: ClassVar[str] = "storagemigrations"
    short_names: ClassVar[tuple[str, ...]] = ("smig",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Succeeded", type="string", json_path=_condition("status")),
        Column(name="Reason", type="string", json_path=_condition("reason")),
        Column(name="Storage", type="string", json_path=".status.target.storageVersion"),
        Column(name="Percent", type="integer", json_path=".status.progress.percent"),
        Column(name="Rate", type="integer", json_path=".status.progress.objectsPerSecond"),
        Column(name="ETA", type="string", json_path=".status.progress.remaining"),
        Column(name="Rewritten", type="integer", json_path=".status.progress.rewritten"),
        Column(name="Refused", type="integer", json_path=".status.progress.quarantined"),
        Column(name="Current", type="integer", json_path=".status.progress.current", priority=1),
        Column(name="Total", type="integer", json_path=".status.progress.total", priority=1),
        Column(name="Message", type="string", json_path=_condition("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["StorageMigration"] = "StorageMigration"
    spec: StorageMigrationSpec
    status: Annotated[StorageMigrationStatus, Field(default_factory=StorageMigrationStatus)]
