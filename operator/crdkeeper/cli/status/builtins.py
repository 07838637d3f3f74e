"""Built-in resources with how they are stored and when they were migrated: from facts to records and rows.

`crdkeeper status --builtins -o json` prints the records. As in an API, fields are only ever added to them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from crdkeeper.api.builtinpolicy import BuiltinPolicy, BuiltinResource
from crdkeeper.api.meta import ApiModel, Time, find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.output.table import age
from crdkeeper.core.builtins.selection import governing
from crdkeeper.core.builtins.view import StoredAs

HEADERS = ("NAME", "STORAGE", "HASH", "MIGRATED", "DUE", "REASON", "POLICY")
WIDE_HEADERS = (*HEADERS, "MIGRATION", "CONFIGURATION", "KEY", "MESSAGE")


class BuiltinOverview(ApiModel):
    """One built-in resource."""

    name: str
    storage_version: str
    """The version in which objects are written; empty if the hash does not show it."""
    storage_version_hash: str
    """As the API server says now that has answered this command."""
    encryption_configuration: str
    """The hash of the encryption configuration, as the operator saw it; empty if unknown or none."""
    encryption_key: str
    """spec.encryptionKey of the policy."""
    due: Literal["yes", "no", "unknown"]
    """Whether objects may be stored otherwise than the API server writes them now."""
    reason: str
    message: str
    policy: str
    """The BuiltinPolicy that governs the resource; empty without one."""
    migration: str
    """The last migration that was not a plan."""
    migrated_time: Time | None = None
    """When a migration last succeeded."""


class BuiltinOverviewList(ApiModel):
    """The output of `crdkeeper status --builtins -o json` and `-o yaml`."""

    api_version: Literal["cli.crdkeeper.dev/v1alpha1"] = "cli.crdkeeper.dev/v1alpha1"
    kind: Literal["BuiltinOverviewList"] = "BuiltinOverviewList"
    items: Annotated[list[BuiltinOverview], Field(default_factory=list)]


def builtin_overview(
    stored: Iterable[StoredAs], migrations: Iterable[StorageMigration], policies: Sequence[BuiltinPolicy]
) -> list[BuiltinOverview]:
    """One record for each resource, by name."""
    by_resource: dict[str, list[StorageMigration]] = {}
    for each in migrations:
        if each.spec.mode == "Execute":
            by_resource.setdefault(str(each.spec.resource), []).append(each)
    return [
        _describe(each, by_resource.get(each.name, ()), governing(policies, each.group, each.resource))
        for each in sorted(stored, key=lambda each: (each.group, each.resource))
    ]


def _describe(
    stored: StoredAs, migrations: Sequence[StorageMigration], policy: BuiltinPolicy | None
) -> BuiltinOverview:
    succeeded = [each for each in migrations if _succeeded(each)]
    last = max(succeeded, key=_ended, default=None)
    recorded = next(
        (each for each in policy.status.resources if each.resource == stored.name) if policy else iter(()),
        None,
    )
    due, reason, message = _due(stored, policy, recorded, last)
    newest = max(
        migrations, key=lambda each: (each.status.completion_time is None, _ended(each)), default=None
    )
    times = [recorded.migrated_time if recorded else None, last.status.completion_time if last else None]
    return BuiltinOverview(
        name=stored.name,
        storage_version=stored.version,
        storage_version_hash=stored.hash,
        encryption_configuration=(recorded.encryption_configuration or "") if recorded else "",
        encryption_key=policy.spec.encryption_key if policy else "",
        due=due,
        reason=reason,
        message=message,
        policy=policy.metadata.name if policy else "",
        migration=(recorded.migration if recorded else "") or (newest.metadata.name if newest else ""),
        migrated_time=max((each for each in times if each is not None), default=None),
    )


def _due(
    stored: StoredAs,
    policy: BuiltinPolicy | None,
    recorded: BuiltinResource | None,
    last: StorageMigration | None,
) -> tuple[Literal["yes", "no", "unknown"], str, str]:
    if policy is not None and recorded is None:
        return "yes", "NotKnown", "The operator has not seen it yet."
    if policy is not None and recorded is not None:
        if recorded.storage_version_hash != stored.hash:
            return "yes", "Changed", f"The operator last saw {recorded.storage_version_hash}."
        if recorded.encryption_key != policy.spec.encryption_key:
            return "yes", "Changed", "spec.encryptionKey has changed."
        return "no" if recorded.migrated else "yes", recorded.reason, recorded.message
    target = last.status.target if last is not None else None
    if target is not None and target.storage_version_hash != stored.hash:
        return "yes", "Changed", f"The last migration was for {target.storage_version_hash}."
    return "unknown", "NoPolicy", "No BuiltinPolicy selects it, so no change of its encryption is recorded."


def _succeeded(migration: StorageMigration) -> bool:
    found = find_condition(migration.status.conditions, "Succeeded")
    return found is not None and found.status == "True"


def _ended(migration: StorageMigration) -> float:
    ended = migration.status.completion_time or migration.metadata.creation_timestamp
    return ended.timestamp() if ended is not None else 0.0


def builtin_row(record: BuiltinOverview, now: datetime, *, wide: bool = False) -> list[str]:
    """The cells of one record; empty if there is nothing to show."""
    migrated = record.migrated_time
    cells = [
        record.name,
        record.storage_version,
        record.storage_version_hash,
        age((now - migrated).total_seconds()) if migrated is not None else "",
        record.due,
        record.reason,
        record.policy,
    ]
    if not wide:
        return cells
    message = " ".join(record.message.split())
    return [*cells, record.migration, record.encryption_configuration, record.encryption_key, message]
