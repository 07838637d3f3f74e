"""StorageMigration: rewrites all objects of a resource at its storage version and trims storedVersions."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from crdkeeper.api.meta import OPERATOR, UNSEEN, ApiModel, Column, Condition, Kind, Time, immutable, rules
from crdkeeper.api.texts import Line

_INT64: dict[str, Any] = {"format": "int64"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}

SHARDS_MOST = 16
"""Each shard reads and writes the object, with the state of all parts, every few seconds: bytes grow with the
square of their number, and etcd keeps each version for minutes."""
QUARANTINE_SHOWN = 50
"""The most refused objects that status lists by name; progress.quarantined counts all of them."""


class GroupResource(ApiModel):
    """A resource, named by its plural and API group as in discovery."""

    group: Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")] = ""
    """API group. Empty means the core group."""
    resource: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")]
    """Plural name in lowercase, such as `certificates`."""

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class MigrationLimits(ApiModel):
    """Limits on the load that a migration puts on the API server."""

    model_config = rules(
        (
            # Always present, except in the default of `limits` itself, which API servers check, too.
            "!has(self.minConcurrency) || !has(self.maxConcurrency)"
            " || self.minConcurrency <= self.maxConcurrency",
            "minConcurrency must not exceed maxConcurrency",
        )
    )

    min_concurrency: Annotated[int, Field(ge=1, le=256)] = 1
    """Number of requests in flight that growing latency leaves; only after 429 or a failure of the API server
    there are fewer for a while. Must not exceed maxConcurrency."""
    max_concurrency: Annotated[int, Field(ge=1, le=256)] = 64
    """Maximum number of requests in flight. Up to this limit, crdkeeper adapts to what they bring, to latency
    and to throttling."""
    max_objects_per_second: Annotated[int | None, Field(ge=1)] = None
    """Maximum number of objects written per second."""
    max_bytes_per_second: Annotated[int | None, Field(ge=1024, json_schema_extra=_INT64)] = None
    """Maximum number of bytes written per second, estimated from the size of sampled objects."""


class MigrationRetry(ApiModel):
    """When to retry objects that were refused."""

    limit: Annotated[int | None, Field(ge=0)] = None
    """Maximum number of retry rounds. If unset, crdkeeper retries until all objects are written."""
    backoff_seconds: Annotated[int, Field(ge=1, le=3600)] = 10
    """Wait before the first retry round. It doubles with each further round."""
    max_backoff_seconds: Annotated[int, Field(ge=1, le=86400)] = 300
    """Maximum wait between two retry rounds."""


class MigrationPace(ApiModel):
    """How fast and how patiently to migrate."""

    limits: Annotated[MigrationLimits, Field(default_factory=MigrationLimits)]
    retry: Annotated[MigrationRetry, Field(default_factory=MigrationRetry)]
    settle_seconds: Annotated[int, Field(ge=0, le=3600)] = 65
    """How long to wait for all API servers to see a new storage version. Keep it above their
    --request-timeout."""
    api_server_leases: Literal["Require", "Ignore"] = "Require"
    """Whether to wait until each API server has renewed its identity Lease after the change."""
    ttl_seconds_after_finished: Annotated[int | None, Field(ge=0)] = None
    """Delete the migration this long after it succeeds. If unset, it is kept."""


class MigrationTemplate(MigrationPace):
    """How to migrate. A DefinitionPolicy can set these fields for the migrations that it creates."""

    trim: bool = True
    """Whether to remove the old versions from the CRD's status.storedVersions after the proof."""
    managed_fields: Literal["Keep", "Retarget"] = "Keep"
    """Whether to change metadata.managedFields: Retarget moves all entries to the storage version.

    With Keep, the condition ManagedFieldsCurrent is False if an entry names a version that this migration
    drops: server-side apply to such an object fails once the version is removed from spec.versions. Until
    then nothing is wrong, and Retarget can still be chosen.
    """
    verify: Literal["Remaining", "Full"] = "Remaining"
    """What the second pass writes: Remaining writes objects not known to be rewritten, Full writes all.

    With Full, every object is rewritten even if storedVersions lists only the storage version. Use it, for
    example, after you rotate encryption keys.
    """


class StorageMigrationSpec(MigrationTemplate):
    """What to migrate, and how."""

    resource: Annotated[GroupResource, Field(json_schema_extra=immutable("resource"))]
    """The resource to migrate. It can be any resource, not only one defined by a CRD."""
    mode: Annotated[Literal["Execute", "Plan"], Field(json_schema_extra=immutable("mode"))] = "Execute"
    """Execute migrates. Plan tries every write as a server-side dry run and reports what would be refused."""
    suspend: bool = False
    """Pauses the migration. Set it to false to resume."""
    managed_by: Annotated[str, Field(max_length=63, json_schema_extra=immutable("managedBy"))] = OPERATOR
    """Who runs the migration: `crdkeeper.dev/operator`, or `crdkeeper.dev/cli` for `crdkeeper migrate`."""


class MigrationTarget(ApiModel):
    """The state of the resource when the migration started. If it changes, the migration starts over."""

    uid: str | None = None
    """metadata.uid of the CRD. Unset for resources that no CRD defines."""
    generation: Annotated[int | None, Field(json_schema_extra=_INT64)] = None
    """metadata.generation of the CRD."""
    storage_version: str | None = None
    """The version in which the API server stores objects. Unset if only the server knows it."""
    endpoint_version: str
    """The served version used to list and patch objects."""
    stored_versions: Annotated[list[str], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """status.storedVersions of the CRD when the migration started."""
    storage_version_hash: str | None = None
    """storageVersionHash from discovery, for resources that no CRD defines."""
    kind: str
    namespaced: bool

    def same_as(self, other: "MigrationTarget") -> bool:
        """Whether evidence gathered for one applies to the other: same object, spec and storage version."""

        def identity(target: MigrationTarget) -> tuple[object, ...]:
            return (target.uid, target.generation, target.storage_version, target.storage_version_hash)

        return identity(self) == identity(other)


class MigrationSweep(ApiModel):
    """Progress of the current pass over all objects."""

    type: Literal["Rewrite", "Verify", "Plan"]
    continue_token: str | None = None
    """Where to resume the list. Losing the token costs only time."""
    scanned: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that this pass has processed."""
    unexpected: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that the Verify pass still had to rewrite. If not zero, another pass follows."""
    done: bool = False
    rewritten_before: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that this migration had rewritten when the pass began."""


class MigrationProgress(ApiModel):
    """Number of objects by result. The counts survive interruptions."""

    total: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that exist, as of the latest page of the list."""
    rewritten: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that this migration rewrote: their resourceVersion changed."""
    current: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects proved to be stored at the storage version without being rewritten."""
    gone: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects deleted in the meantime."""
    quarantined: Annotated[int, Field(json_schema_extra=_INT64)] = 0
    """Objects that could not be written. See status.quarantine."""
    percent: Annotated[int, Field(ge=0, le=100)] = 0
    objects_per_second: int = 0
    concurrency: int = 0
    """Current limit on requests in flight, adapted to the API server's latency."""
    remaining: str = ""
    """Estimated time until the current pass ends, such as 2m10s."""


class RefusedObject(ApiModel):
    """An object that could not be written, and why."""

    namespace: str = ""
    name: str
    code: int
    """HTTP status code of the response."""
    reason: Line
    """The API server's reason, such as Invalid or Forbidden."""
    denied_by: Line = ""
    """The webhook or policy that denied the write, if the response names one."""
    field: Line = ""
    """The field at fault, if the response names one."""
    message: Line


class MigrationQuarantine(ApiModel):
    """Objects that could not be written. Nothing is trimmed until it is empty."""

    objects: Annotated[list[RefusedObject], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """The first quarantined objects. progress.quarantined counts all of them."""
    rounds: int = 0
    """Number of retry rounds so far."""
    next_retry_time: Time | None = None


class MigrationClaim(ApiModel):
    """Which process does something that one process should do at a time."""

    holder: Line = ""
    """The process. Empty means that the next one may take it."""
    term: Annotated[int, Field(ge=0, json_schema_extra=_INT64)] = 0
    """Increases when one takes or gives it up. A holder whose term is over cannot write here any more."""
    beat: Annotated[int, Field(ge=0, json_schema_extra=_INT64)] = 0
    """Increases every few seconds. If it does not for 15 seconds, another process takes over."""


class MigrationPart(MigrationClaim):
    """One part of the objects, and what was done about it in one pass."""

    sweep: Line = ""
    """The pass that the other fields are about."""
    done: bool = False
    """Whether the pass has processed the whole part. This is no proof: the second pass reads all objects."""
    continue_token: str | None = None
    """Where the next holder resumes the list."""
    scanned: Annotated[int, Field(ge=0, json_schema_extra=_INT64)] = 0
    """Objects of the part up to the token."""
    rewritten: Annotated[int, Field(ge=0, json_schema_extra=_INT64)] = 0
    gone: Annotated[int, Field(ge=0, json_schema_extra=_INT64)] = 0
    refused: Annotated[int, Field(ge=0, json_schema_extra=_INT64)] = 0
    examples: Annotated[
        list[RefusedObject], Field(default_factory=list, max_length=3, json_schema_extra=_ATOMIC)
    ]
    """The first refused objects."""
    total: Annotated[int, Field(ge=0, json_schema_extra=_INT64)] = 0
    """Objects of all parts, as of the latest page of the list."""
    concurrency: Annotated[int, Field(ge=0)] = 0
    trouble: Line = ""
    """Why its last holder gave it up."""


class MigrationShards(ApiModel):
    """The state of a migration that several processes share (`crdkeeper migrate --shards`)."""

    coordinator: Annotated[MigrationClaim, Field(default_factory=MigrationClaim)]
    """The process that settles, verifies and trims, and writes the rest of the status."""
    parts: Annotated[
        list[MigrationPart], Field(min_length=1, max_length=SHARDS_MOST, json_schema_extra=_ATOMIC)
    ]
    """Each object belongs to one part, by a hash of its namespace and name."""


class StorageMigrationStatus(ApiModel):
    """What has been done and proved. A restarted migration resumes from it."""

    observed_generation: Annotated[int, Field(json_schema_extra=_INT64)] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    target: MigrationTarget | None = None
    settled_resource_version: str | None = None
    """Any object with a higher resourceVersion was written at the storage version."""
    sweep: MigrationSweep | None = None
    progress: Annotated[MigrationProgress, Field(default_factory=MigrationProgress)]
    quarantine: Annotated[MigrationQuarantine, Field(default_factory=MigrationQuarantine)]
    shards: MigrationShards | None = None
    """Present if several processes share the migration."""
    restarts: int = 0
    """How often the migration started over because the facts in target changed."""
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
        Column(name="Coordinator", type="string", json_path=".status.shards.coordinator.holder", priority=1),
        Column(name="Message", type="string", json_path=_condition("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["StorageMigration"] = "StorageMigration"
    spec: StorageMigrationSpec
    status: Annotated[StorageMigrationStatus, Field(default_factory=StorageMigrationStatus)]
