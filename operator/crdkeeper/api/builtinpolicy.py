"""BuiltinPolicy: which built-in resources are written again when the API servers store them differently."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from crdkeeper.api.meta import UNSEEN, ApiModel, Column, Condition, Kind, Time
from crdkeeper.api.storagemigration import MigrationTemplate
from crdkeeper.api.texts import Line

_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
_MAP_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_PATTERN = r"^(\*\.(\*|[a-z0-9][-a-z0-9.]*)?|[a-z][-a-z0-9]*(\.[a-z0-9][-a-z0-9.]*)?)$"


class BuiltinPolicySpec(ApiModel):
    """Which built-in resources to migrate, and how."""

    resources: Annotated[
        list[Annotated[str, Field(max_length=253, pattern=_PATTERN)]],
        Field(min_length=1, max_length=64, json_schema_extra=_SET),
    ]
    """Built-in resources as in an EncryptionConfiguration.

    `secrets`, `deployments.apps`, `*.apps` for all of a group, `*.` for all of the core group, or `*.*`.
    Events are only included by name, because they are deleted after an hour.
    """
    mode: Literal["Automatic", "Plan"] = "Automatic"
    """Automatic migrates. Plan reports the result of a dry run."""
    encryption_key: Annotated[str, Field(max_length=253)] = ""
    """Any text, such as the name of the key that encrypts. If you change it, all resources are migrated.

    Change it only once every API server encrypts with the new key. Before you remove an old key, wait until
    Ready is True for the changed value. If it is empty, Ready is True only while EncryptionObserved is.
    """
    template: Annotated[MigrationTemplate, Field(default_factory=MigrationTemplate)]
    """How to run the migrations, of which one runs at a time."""


class BuiltinResource(ApiModel):
    """How the API servers store a resource, and whether its objects were written again since that changed."""

    resource: Annotated[str, Field(max_length=317)]
    """`plural`, or `plural.group`."""
    storage_version: str = ""
    """The version at which objects are stored. Empty if the hash is not that of a served version."""
    storage_version_hash: str = ""
    """storageVersionHash from discovery; several, separated by commas, while API servers differ."""
    encryption_configuration: str | None = None
    """The hash of the API servers' encryption configuration; empty if they have none, unset if unknown."""
    encryption_key: str = ""
    """spec.encryptionKey."""
    changed_time: Time
    """When the operator first saw the values above."""
    migrated: bool = False
    """Whether all objects are proved to be stored accordingly."""
    migrated_time: Time | None = None
    """When the last migration succeeded, also if it was before changedTime."""
    migration: str = ""
    """The StorageMigration that was created since changedTime."""
    reason: str
    """CamelCase reason for the current state."""
    message: Line
    """What the state is, and what to do about it."""


class BuiltinPolicyStatus(ApiModel):
    """What is known of the resources, and what was done."""

    observed_generation: Annotated[int, Field(json_schema_extra={"format": "int64"})] = UNSEEN
    conditions: Annotated[list[Condition], Field(default_factory=list, json_schema_extra=_MAP_BY_TYPE)]
    resources: Annotated[list[BuiltinResource], Field(default_factory=list, json_schema_extra=_ATOMIC)]
    """All resources that the policy selects and no older policy does."""
    selected: int = 0
    """Number of these resources."""
    due: int = 0
    """Number of those whose objects may be stored as they were before the last change."""
    failing: int = 0
    """Number of those that cannot be migrated until a person does something."""


def _ready(path: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{path}'


class BuiltinPolicy(Kind):
    """Migrates built-in resources when their storage version or the encryption of their objects changes."""

    plural: ClassVar[str] = "builtinpolicies"
    short_names: ClassVar[tuple[str, ...]] = ("builtinpol",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Ready", type="string", json_path=_ready("status")),
        Column(name="Reason", type="string", json_path=_ready("reason")),
        Column(name="Selected", type="integer", json_path=".status.selected"),
        Column(name="Due", type="integer", json_path=".status.due"),
        Column(name="Failing", type="integer", json_path=".status.failing"),
        Column(name="Message", type="string", json_path=_ready("message"), priority=1),
        Column(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    )

    kind: Literal["BuiltinPolicy"] = "BuiltinPolicy"
    spec: BuiltinPolicySpec
    status: Annotated[BuiltinPolicyStatus, Field(default_factory=BuiltinPolicyStatus)]
