"""The reasons of an update: of Accepted, before it is applied, and of StorageCurrent, after it."""

from typing import Final

from crdkeeper.api.meta import ConditionStatus
from crdkeeper.core.diagnosis.verdict import Reason

ACCEPTED: Final = "Accepted"
STORAGE_CURRENT: Final = "StorageCurrent"


def _accepted(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(ACCEPTED, status, name, meaning, remedy, healthy=False)


def _storage(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    # The API works whatever version objects are stored in.
    return Reason(STORAGE_CURRENT, status, name, meaning, remedy)


BREAKING_CHANGES: Final = _accepted(
    "False",
    "BreakingChanges",
    "The change would break existing composites or their clients, so the CRD stays as it is.",
    "Change the definition as the message says, or set spec.breakingChanges to Allow.",
)
NOT_COMPARABLE: Final = _accepted(
    "False",
    "NotComparable",
    "The CRD cannot be compared with what it would become, so it stays as it is.",
    "Set spec.breakingChanges to Allow.",
)
NOT_PREDICTED: Final = _accepted(
    "False",
    "NotPredicted",
    "What the change does to some composites cannot be predicted, so the CRD stays as it is.",
    "Check the composites in the message, then set spec.breakingChanges to Allow.",
)
COMPOSITES_UNKNOWN: Final = _accepted(
    "False",
    "CompositesUnknown",
    "The change may hurt composites, which the composer may not list, so the CRD stays as it is.",
    "Grant the rule in the message. The composer continues within seconds.",
)
REHEARSING: Final = _accepted(
    "Unknown",
    "Rehearsing",
    "The change is tried on the composites that exist.",
    "Wait a moment. If an attempt failed, fix what the message names.",
)
VERSION_STORED: Final = _accepted(
    "False",
    "VersionStored",
    "A version that is no longer in the definition is still in the CRD's status.storedVersions.",
    "Put the version back, with served: false if nobody uses it, until StorageCurrent is True.",
)
VERSION_IN_USE: Final = _accepted(
    "False",
    "VersionInUse",
    "Clients may use a version that the definition no longer has or serves.",
    "Set deprecated: true first, then served: false, and remove the version last.",
)
CONVERSION_MISSING: Final = _accepted(
    "False",
    "ConversionMissing",
    "Served versions differ, and nothing converts between them: fields would be lost.",
    "Create the VersionConversion that the message proposes, or let the versions have the same fields.",
)
CONVERSION_INCOMPLETE: Final = _accepted(
    "False",
    "ConversionIncomplete",
    "The VersionConversion does not convert between the versions of the definition.",
    "Change its rules as the message says.",
)
CONVERSION_PENDING: Final = _accepted(
    "Unknown",
    "ConversionPending",
    "The CRD has the new versions, but serves them only when the VersionConversion is ready.",
    "See the conditions of the VersionConversion.",
)

CURRENT: Final = _storage("True", "Current", "All composites are stored in the referenceable version.")
MIGRATING: Final = _storage(
    "False", "Migrating", "A StorageMigration moves composites to the referenceable version."
)
MIGRATION_PENDING: Final = _storage(
    "False", "MigrationPending", "A StorageMigration is about to be created.", "Wait a moment."
)
MIGRATION_FAILING: Final = _storage(
    "False",
    "MigrationFailing",
    "The StorageMigration cannot move all composites.",
    "See the StorageMigration's conditions and status.quarantine.",
)
MIGRATIONS_UNAVAILABLE: Final = _storage(
    "False",
    "MigrationsUnavailable",
    "StorageMigrations are not installed, or the composer has no right to create them.",
    "Install the operator with its manifests, or run `crdkeeper migrate`.",
)
STORAGE_UNKNOWN: Final = _storage(
    "Unknown",
    "NotEstablished",
    "There is no CRD yet, or the API server has not reported its stored versions.",
)

UPDATE_REASONS: Final[tuple[Reason, ...]] = (
    BREAKING_CHANGES,
    NOT_COMPARABLE,
    NOT_PREDICTED,
    COMPOSITES_UNKNOWN,
    REHEARSING,
    VERSION_STORED,
    VERSION_IN_USE,
    CONVERSION_MISSING,
    CONVERSION_INCOMPLETE,
    CONVERSION_PENDING,
    CURRENT,
    MIGRATING,
    MIGRATION_PENDING,
    MIGRATION_FAILING,
    MIGRATIONS_UNAVAILABLE,
    STORAGE_UNKNOWN,
)
