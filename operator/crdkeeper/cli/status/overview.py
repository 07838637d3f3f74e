"""CRDs with their stored versions and migrations: from facts to one record each, and to rows.

`crdkeeper status -o json` prints the records. As in an API, fields are only ever added to them.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import ApiModel, Condition, ConditionStatus, Time, find_condition
from crdkeeper.api.storagemigration import StorageMigration, StorageMigrationStatus
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cli.output.table import age
from crdkeeper.core.migration.sharding import division
from crdkeeper.core.policy.selection import governing

HEADERS = ("NAME", "STORAGE", "STORED", "SERVED", "MIGRATION", "PROGRESS", "REASON", "AGE")
WIDE_HEADERS = (*HEADERS, "POLICY", "REWRITTEN", "CURRENT", "REFUSED", "PARTS", "MESSAGE")
_FINDINGS: Final = 20


class PartsOverview(ApiModel):
    """The parts of a migration that several processes share (`crdkeeper migrate --shards`)."""

    count: int
    done: int
    """Of the latest pass that rewrites; so are those at work."""
    at_work: int
    coordinator: str
    """The process that verifies and trims; empty if nobody does."""


class MigrationOverview(ApiModel):
    """The latest migration of a CRD: the running one, else the one created last. Without plans."""

    name: str
    managed_by: str
    succeeded: ConditionStatus
    """Status of the condition Succeeded; its reason and message follow."""
    reason: str
    message: str
    percent: int
    objects_per_second: int
    remaining: str
    """Estimated time to the end of the current pass, such as 2m10s; empty if unknown."""
    total: int
    rewritten: int
    current: int
    gone: int
    refused: int
    start_time: Time | None = None
    completion_time: Time | None = None
    parts: PartsOverview | None = None
    """Present if several processes share it."""


class PolicyOverview(ApiModel):
    """The DefinitionPolicy that governs a CRD."""

    name: str
    mode: Literal["Automatic", "Plan", "Disabled"]
    """How it handles old stored versions."""


class FindingOverview(ApiModel):
    """A condition of the CRD's DefinitionReport that is False, and does not affect its Ready."""

    type: str
    reason: str
    message: str


class DefinitionOverview(ApiModel):
    """One CRD."""

    name: str
    kind: str
    storage_version: str
    """The version in which objects are written."""
    stored_versions: list[str]
    """status.storedVersions: the versions in which objects may be stored."""
    served_versions: list[str]
    outdated_versions: list[str]
    """Stored versions other than the storage version; if there are any, a migration is needed."""
    migration_needed: bool
    """Whether a migration is needed and none is running, or waiting for a person to fix something."""
    established: bool
    terminating: bool
    creation_timestamp: Time | None = None
    migration: MigrationOverview | None = None
    policy: PolicyOverview | None = None
    findings: Annotated[list[FindingOverview], Field(default_factory=list)]
    """What its autoscalers or the writers of its status do wrong, as far as a report says so."""


class DefinitionOverviewList(ApiModel):
    """The output of `crdkeeper status -o json` and `-o yaml`."""

    api_version: Literal["cli.crdkeeper.dev/v1alpha1"] = "cli.crdkeeper.dev/v1alpha1"
    kind: Literal["DefinitionOverviewList"] = "DefinitionOverviewList"
    items: Annotated[list[DefinitionOverview], Field(default_factory=list)]


def overview(
    definitions: Iterable[DefinitionFacts],
    migrations: Iterable[StorageMigration],
    policies: Sequence[DefinitionPolicy],
    found: Mapping[str, Sequence[Condition]],
) -> list[DefinitionOverview]:
    """One record for each CRD, by name. `found` are conditions of reports that are False, by CRD."""
    by_resource: dict[str, list[StorageMigration]] = {}
    for each in migrations:
        by_resource.setdefault(str(each.spec.resource), []).append(each)
    return [
        _describe(each, by_resource, governing(policies, each), found.get(each.name, ()))
        for each in sorted(definitions, key=lambda each: each.name)
    ]


def _describe(
    definition: DefinitionFacts,
    migrations: Mapping[str, Sequence[StorageMigration]],
    policy: DefinitionPolicy | None,
    found: Iterable[Condition],
) -> DefinitionOverview:
    latest = _latest(definition, migrations.get(definition.name, ()))
    return DefinitionOverview(
        name=definition.name,
        kind=definition.kind,
        storage_version=definition.storage_version,
        stored_versions=list(definition.stored_versions),
        served_versions=[each.name for each in definition.versions if each.served],
        outdated_versions=list(definition.outdated_versions),
        migration_needed=bool(definition.outdated_versions)
        and (latest is None or _is_over(definition, latest)),
        established=definition.established,
        terminating=definition.terminating,
        creation_timestamp=definition.created_at,
        migration=None if latest is None else _summarize(latest),
        policy=None
        if policy is None
        else PolicyOverview(name=policy.metadata.name, mode=policy.spec.storage_migration.mode),
        findings=[
            FindingOverview(type=each.type, reason=each.reason, message=each.message) for each in found
        ],
    )


def _latest(definition: DefinitionFacts, migrations: Iterable[StorageMigration]) -> StorageMigration | None:
    of_this = [
        each
        for each in migrations
        if each.spec.mode == "Execute"
        # The report of a deleted CRD is not about a CRD created later.
        and (each.status.target is None or each.status.target.uid == definition.uid)
    ]
    return max(
        of_this,
        key=lambda each: (
            each.status.completion_time is None,
            each.metadata.creation_timestamp is not None and each.metadata.creation_timestamp.timestamp(),
            each.metadata.name,
        ),
        default=None,
    )


def _is_over(definition: DefinitionFacts, migration: StorageMigration) -> bool:
    """Whether it succeeded but the CRD has old versions again, which were added later."""
    succeeded, target = find_condition(migration.status.conditions, "Succeeded"), migration.status.target
    if migration.status.completion_time is None or succeeded is None or succeeded.status != "True":
        return False
    untrimmed = not migration.spec.trim and target is not None and target.generation == definition.generation
    return not untrimmed


def _summarize(migration: StorageMigration) -> MigrationOverview:
    status, progress = migration.status, migration.status.progress
    succeeded = find_condition(status.conditions, "Succeeded")
    return MigrationOverview(
        name=migration.metadata.name,
        managed_by=migration.spec.managed_by,
        succeeded=succeeded.status if succeeded is not None else "Unknown",
        reason=succeeded.reason if succeeded is not None else "Pending",
        message=succeeded.message if succeeded is not None else "",
        percent=progress.percent,
        objects_per_second=progress.objects_per_second,
        remaining=progress.remaining,
        total=progress.total,
        rewritten=progress.rewritten,
        current=progress.current,
        gone=progress.gone,
        refused=progress.quarantined,
        start_time=status.start_time,
        completion_time=status.completion_time,
        parts=_parts(status),
    )


def _parts(status: StorageMigrationStatus) -> PartsOverview | None:
    found = division(status)
    if found is None or status.shards is None:
        return None
    return PartsOverview(
        count=found.count,
        done=found.done,
        at_work=found.at_work,
        coordinator=status.shards.coordinator.holder,
    )


def row(record: DefinitionOverview, now: datetime, *, wide: bool = False) -> list[str]:
    """The cells of one record; empty if there is nothing to show."""
    migration = None if record.migration_needed else record.migration
    created = record.creation_timestamp
    cells = [
        record.name,
        record.storage_version,
        ",".join(record.stored_versions),
        ",".join(record.served_versions),
        "needed" if record.migration_needed else migration.name if migration is not None else "",
        _progress(migration) if migration is not None else "",
        _reason(record, migration),
        age((now - created).total_seconds()) if created is not None else "",
    ]
    if not wide:
        return cells
    policy = record.policy
    counts = (
        ("", "", "")
        if migration is None
        else (str(migration.rewritten), str(migration.current), str(migration.refused))
    )
    parts = "" if migration is None or migration.parts is None else _done_of(migration.parts)
    message = migration.message if migration is not None else ""
    return [*cells, policy.name if policy is not None else "", *counts, parts, " ".join(message.split())]


def finding_lines(records: Iterable[DefinitionOverview]) -> list[str]:
    """What reports found, a line each; only some if there are many."""
    found = [
        f"{each.name}: {one.type} is False, {one.reason}: {one.message}"
        for each in records
        for one in each.findings
    ]
    more = [f"... and {len(found) - _FINDINGS:,} more (-o json lists them)"]
    return found[:_FINDINGS] + (more if len(found) > _FINDINGS else [])


def _progress(migration: MigrationOverview) -> str:
    parts = [f"{migration.percent}%"]
    if migration.objects_per_second:
        parts.append(f"{migration.objects_per_second}/s")
    if migration.remaining:
        parts.append(migration.remaining)
    return " ".join(parts)


def _done_of(parts: PartsOverview) -> str:
    return f"{parts.done}/{parts.count}"


def _reason(record: DefinitionOverview, migration: MigrationOverview | None) -> str:
    if record.terminating:
        return "Terminating"
    if not record.established:
        return "NotEstablished"
    return migration.reason if migration is not None else ""
