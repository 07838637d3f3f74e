"""StorageCurrent: whether all objects are stored in the storage version, as far as the CRD's status shows.

A version in status.storedVersions cannot be removed from spec.versions, and objects stored in it need
conversion on every read.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.decisivemigration import decisive_migration
from crdkeeper.core.diagnosis.verdict import Reason, Verdict

TYPE = "StorageCurrent"
_MIGRATE = "crdkeeper migrate"
_CLOCK = timedelta(seconds=1)
"""The API server tells its time in whole seconds."""

CURRENT = Reason(TYPE, "True", "Current", "status.storedVersions lists only the storage version.")
UNKNOWN_LABEL = Reason(
    TYPE,
    "True",
    "UnknownLabel",
    "status.storedVersions lists only the storage version, but the label that should ask for migrations has "
    "a value that means nothing. Only with `--watch-labels`.",
    "Set the label crdkeeper.dev/storage-migration of the CRD to automatic, plan or disabled, or take it "
    "off.",
    healthy=False,
)
MIGRATING = Reason(
    TYPE,
    "False",
    "Migrating",
    "Objects may be stored in old versions, and a StorageMigration is rewriting them.",
)
MIGRATION_FAILING = Reason(
    TYPE,
    "False",
    "MigrationFailing",
    "Objects may be stored in old versions, and the StorageMigration that rewrites them needs attention.",
    "Read the conditions of the StorageMigration that the message names; docs/operating.md says what each "
    "reason asks for.",
    healthy=False,
)
MIGRATION_SUSPENDED = Reason(
    TYPE,
    "False",
    "MigrationSuspended",
    "Objects may be stored in old versions, and the StorageMigration that would rewrite them is suspended.",
    "Set spec.suspend: false on the StorageMigration that the message names.",
    healthy=False,
)
OLD_VERSIONS_STORED = Reason(
    TYPE,
    "False",
    "OldVersionsStored",
    "Objects may be stored in versions other than the storage version, and no migration is running. These "
    "versions cannot be removed from the CRD.",
    "Run `crdkeeper migrate PLURAL.GROUP`, or let a DefinitionPolicy select the CRD.",
    healthy=False,
)
NOT_RECORDED = Reason(
    TYPE,
    "Unknown",
    "NotRecorded",
    "status.storedVersions is empty: the versions in which objects are stored are unknown.",
    "Find out who writes the CRD's status. The API server records each storage version when the CRD is "
    "written.",
    healthy=False,
)


def judge(
    definition: DefinitionFacts,
    migrations: Sequence[StorageMigration],
    *,
    unknown_label: str = "",
    overruled_label: str = "",
) -> Verdict:
    """The verdict; `migrations` are those of the CRD's resource. For the labels see `ReportFacts`."""
    outdated = definition.outdated_versions
    if not definition.stored_versions:
        return Verdict(NOT_RECORDED, f"{NOT_RECORDED.meaning} {NOT_RECORDED.remedy}")
    if not outdated and unknown_label:
        return Verdict(UNKNOWN_LABEL, f"{unknown_label} Set it to one of these, or take it off.")
    if not outdated:
        return Verdict(CURRENT, f"All objects are stored in {definition.storage_version}.")
    current = definition.storage_version
    old = f"Objects may be stored in {', '.join(outdated)}; the storage version is {current}."
    decisive = decisive_migration(definition, (each for each in migrations if each.spec.mode == "Execute"))
    if decisive is None:
        remedy = f"Run `{_MIGRATE} {definition.name}`, or let a DefinitionPolicy select the CRD."
        return Verdict(
            OLD_VERSIONS_STORED, " ".join(filter(None, (old, unknown_label or overruled_label, remedy)))
        )
    name = decisive.metadata.name
    succeeded = find_condition(decisive.status.conditions, "Succeeded")
    if decisive.spec.suspend:
        return Verdict(MIGRATION_SUSPENDED, f"{old} StorageMigration {name} is suspended.")
    if succeeded is not None and succeeded.status == "False":
        # Its message changes with its progress; a report that repeated it would be rewritten all the time.
        return Verdict(
            MIGRATION_FAILING,
            f"{old} StorageMigration {name} has not succeeded ({succeeded.reason}): "
            f"`kubectl describe smig {name}` shows why.",
        )
    return Verdict(MIGRATING, f"{old} StorageMigration {name} is running.")


def were_rewritten(migrations: Iterable[StorageMigration], since: datetime, now: datetime) -> bool:
    """Whether one of these has ended in that time. A completionTime to come is none."""
    times = (each.status.completion_time for each in migrations if each.spec.mode == "Execute")
    return any(each is not None and since - _CLOCK <= each <= now + _CLOCK for each in times)


def being_rewritten(migrations: Iterable[StorageMigration]) -> str:
    """What identifies the progress of those that are writing; empty if none is.

    The same as a while before: whoever ran them has ended without saying so.
    """
    writing = (
        each
        for each in migrations
        if each.spec.mode == "Execute"
        and each.status.completion_time is None
        and each.status.progress.concurrency
    )
    return " ".join(sorted(f"{each.metadata.uid}@{each.metadata.resource_version}" for each in writing))


CONDITION = ConditionType(
    TYPE,
    lambda facts: judge(
        facts.seen.definition,
        facts.migrations,
        unknown_label=facts.unknown_label,
        overruled_label=facts.overruled_label,
    ),
    reasons=(
        CURRENT,
        UNKNOWN_LABEL,
        MIGRATING,
        MIGRATION_FAILING,
        MIGRATION_SUSPENDED,
        OLD_VERSIONS_STORED,
        NOT_RECORDED,
    ),
)
