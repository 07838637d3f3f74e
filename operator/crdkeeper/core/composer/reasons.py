"""All conditions of a CompositeResourceDefinition with their reasons, which docs/composites.md lists."""

from collections.abc import Mapping
from typing import Final

from crdkeeper.api.meta import ConditionStatus
from crdkeeper.core.diagnosis.verdict import Reason

ACCEPTED: Final = "Accepted"
ESTABLISHED: Final = "Established"
OFFERED: Final = "Offered"
STORAGE_CURRENT: Final = "StorageCurrent"


def _accepted(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(ACCEPTED, status, name, meaning, remedy, healthy=status == "True")


def _established(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(ESTABLISHED, status, name, meaning, remedy, healthy=status == "True")


def _offered(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    # A composite can be created without a Composition, and be composed later.
    return Reason(OFFERED, status, name, meaning, remedy)


def _storage(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    # The API works whatever version objects are stored in.
    return Reason(STORAGE_CURRENT, status, name, meaning, remedy)


ACCEPTED_ALL = _accepted("True", "Accepted", "The CRD is as the definition says.")
ACCEPTED_WITH_WARNINGS = _accepted(
    "True",
    "AcceptedWithWarnings",
    "The same, but `crdkeeper lint` warns about the definition, or another object owns the CRD.",
    "Change what the message names, or let the annotation lint.crdkeeper.dev/ignore in spec.metadata say why "
    "it is right.",
)
INVALID = _accepted(
    "False",
    "Invalid",
    "The definition cannot become a CRD, or the API server refuses the CRD.",
    "Change the definition as the message says.",
)
NOT_OURS = _accepted(
    "False",
    "NotOurs",
    "A CRD of this name exists that the definition did not make.",
    'Set the annotation crdkeeper.dev/adopt: "true" on the definition. If the CRD has an owner, first '
    "stop the program that maintains it and remove metadata.ownerReferences from the CRD. Or delete "
    "the CRD, which deletes all of its objects.",
)
CRD_TERMINATING = _accepted(
    "False",
    "CRDTerminating",
    "A CRD of this name is being deleted. The definition makes its own when it is gone.",
    "If it takes long, see what the CRD's condition Terminating waits for.",
)
RIGHT_MISSING_TO_APPLY = _accepted(
    "False",
    "RightMissing",
    "The composer lacks a right to read or write the CRD or the definition, or to read the "
    "VersionConversion.",
    "Apply manifests/composer, or grant the rule in the message.",
)
REFUSED = _accepted(
    "False",
    "Refused",
    "The API server, or an admission webhook or policy, refuses the CRD.",
    "Change what the message names.",
)
TOO_LARGE = _accepted(
    "False",
    "TooLarge",
    "The CRD is larger than the API server or etcd takes.",
    "Shorten the schemas, or remove versions. Or raise the limit of etcd, --max-request-bytes.",
)
FAILED = _accepted(
    "False",
    "Failed",
    "The API server failed to write the CRD or the definition. The composer tries again.",
    "Wait a moment. If it lasts, fix what the message names.",
)
OVERWRITTEN = _accepted(
    "False",
    "Overwritten",
    "Others change in the CRD what the definition sets. The composer puts it back after pauses of up to two "
    "minutes.",
    "Stop the program that the message names, or let it change the definition instead.",
)
_UNREAD = "The API server failed to return what the definition depends on. The composer tries again."
NOT_READ = _accepted("Unknown", "NotRead", _UNREAD, "If it lasts, fix what the message names.")
BREAKING_CHANGES = _accepted(
    "False",
    "BreakingChanges",
    "The change would break existing composites or their clients, so the CRD stays as it is.",
    "Change the definition as the message says, or set spec.breakingChanges to Allow.",
)
NOT_COMPARABLE = _accepted(
    "False",
    "NotComparable",
    "The CRD cannot be compared with what it would become, so it stays as it is.",
    "Set spec.breakingChanges to Allow.",
)
NOT_PREDICTED = _accepted(
    "False",
    "NotPredicted",
    "What the change does to some composites cannot be predicted, so the CRD stays as it is.",
    "Check the composites in the message, then set spec.breakingChanges to Allow.",
)
COMPOSITES_UNKNOWN = _accepted(
    "False",
    "CompositesUnknown",
    "The change may hurt composites, which the composer may not list, so the CRD stays as it is.",
    "Grant the rule in the message. The composer continues within seconds.",
)
COMPOSITES_NOT_LISTED = _accepted(
    "False",
    "CompositesNotListed",
    "The change may hurt composites, which the API server cannot list for now, so the CRD stays as it is.",
    "Fix what the message names. The composer tries again.",
)
REHEARSING = _accepted(
    "Unknown",
    "Rehearsing",
    "The change is tried on the composites that exist.",
    "Wait a moment. If an attempt failed, fix what the message names.",
)
VERSION_STORED = _accepted(
    "False",
    "VersionStored",
    "A version that is no longer in the definition is still in the CRD's status.storedVersions.",
    "Put the version back, with served: false if nobody uses it, until StorageCurrent is True.",
)
VERSION_IN_USE = _accepted(
    "False",
    "VersionInUse",
    "Clients or composites may use a version that the definition no longer has or serves.",
    "Set deprecated: true first, let composites use a Composition for another version, then set served: "
    "false, and remove the version last.",
)
CONVERSION_MISSING = _accepted(
    "False",
    "ConversionMissing",
    "Served versions differ, and nothing converts between them: fields would be lost.",
    "Create the VersionConversion that the message proposes, or let the versions have the same fields.",
)
CONVERSION_INCOMPLETE = _accepted(
    "False",
    "ConversionIncomplete",
    "The VersionConversion does not convert between the versions of the definition, as far as is known.",
    "Change its rules, or what else the message names.",
)
CONVERSION_PENDING = _accepted(
    "Unknown",
    "ConversionPending",
    "The CRD has the new versions, but serves them only when the VersionConversion is ready.",
    "See the conditions of the VersionConversion.",
)

WATCHING = _established(
    "True", "WatchingCompositeResource", "The API server serves the API, and the composer watches composites."
)
ESTABLISHING = _established(
    "Unknown", "Establishing", "The API server does not serve the API yet.", "Wait a moment."
)
ESTABLISHED_NOT_READ = _established("Unknown", "NotRead", _UNREAD, "See the condition Accepted.")
NO_CRD = _established("False", "NoCRD", "There is no CRD of this definition.", "See the condition Accepted.")
TERMINATING = _established(
    "False",
    "TerminatingCompositeResource",
    "The definition is being deleted, or its CRD is.",
    "The message says what that waits for.",
)
RIGHT_MISSING = _established(
    "False",
    "RightMissing",
    "The composer may not list or watch the composites, so it does not know how many there are.",
    "Grant the rule in the message. The composer continues within seconds.",
)
NOT_LISTED = _established(
    "False",
    "NotListed",
    "The API server cannot list the composites, for example because a conversion webhook fails.",
    "Fix what the message names. The composer tries again.",
)
_TAKEN = "Another CRD of the API group has {}, so the API is not served under it."
_RELEASE = "Change the name in spec.names if it can be changed, or delete the other CRD."
NAME_CONFLICTS: Final[Mapping[str, Reason]] = {
    name: _established("False", name, _TAKEN.format(what), _RELEASE)
    for name, what in (
        ("PluralConflict", "the plural"),
        ("SingularConflict", "the singular"),
        ("ShortNamesConflict", "one of the short names"),
        ("KindConflict", "the kind"),
        ("ListKindConflict", "the list kind"),
    )
}

OFFERED_BY_ENFORCED = _offered("True", "Enforced", "All composites use the Composition that is enforced.")
OFFERED_BY_DEFAULT = _offered("True", "Default", "Composites that choose none use the default Composition.")
OFFERED_BY_ONLY = _offered("True", "OnlyOne", "There is one Composition for composites.")
OFFERED_BY_CHOICE = _offered(
    "True", "SeveralCompositions", "There are several Compositions: each composite has to choose one."
)
NO_COMPOSITION = _offered(
    "False", "NoComposition", "No Composition is for composites of this kind.", "Create one."
)
COMPOSITION_MISSING = _offered(
    "False",
    "CompositionMissing",
    "The enforced or default Composition does not exist.",
    "Create it, or name another one.",
)
COMPOSITION_MISMATCH = _offered(
    "False",
    "CompositionMismatch",
    "The enforced or default Composition is for another kind, or for a version that is not served.",
    "Name another one, or serve the version.",
)
COMPOSITION_UNUSABLE = _offered(
    "False",
    "CompositionUnusable",
    "The Compositions that composites would use have no CompositionRevision.",
    "See their conditions Valid and Ready.",
)
RIGHT_MISSING_TO_COMPOSE = _offered(
    "False",
    "RightMissing",
    "A CompositionRevision exists, but no composite can be composed: the composer may not get or patch the "
    "composites, or not patch their status.",
    "Grant the rule in the message. The composer continues within 15 seconds.",
)
SOME_NOT_COMPOSED = _offered(
    "True",
    "SomeNotComposed",
    "New composites have a Composition, but the API server, or an admission webhook or policy, does not let "
    "the composer write the status or the finalizer of some composites, which cannot say so themselves.",
    "Change what the message names.",
)
COMPOSITES_NOT_COMPOSED = _offered(
    "False",
    "CompositesNotComposed",
    "The API server, or an admission webhook or policy, does not let the composer write the status or the "
    "finalizer of any composite, which cannot say so themselves.",
    "Change what the message names. If it is the status, its required fields may be the cause.",
)
COMPOSITIONS_UNKNOWN = _offered(
    "Unknown",
    "CompositionsUnknown",
    "The composer cannot list Compositions or CompositionRevisions.",
    "It tries again. If the message has a rule, grant it; otherwise, see the composer's log for the reason.",
)

CURRENT = _storage("True", "Current", "All composites are stored in the referenceable version.")
MIGRATING = _storage(
    "False", "Migrating", "A StorageMigration moves composites to the referenceable version."
)
MIGRATION_PENDING = _storage(
    "False",
    "MigrationPending",
    "A StorageMigration is created once the conditions Accepted and Established are True.",
    "See these conditions.",
)
MIGRATION_FAILING = _storage(
    "False",
    "MigrationFailing",
    "The StorageMigration cannot move all composites.",
    "See the StorageMigration's conditions and status.quarantine.",
)
MIGRATIONS_UNAVAILABLE = _storage(
    "False",
    "MigrationsUnavailable",
    "StorageMigrations are not installed, or the composer could not create one.",
    "Install the operator with its manifests, fix what the message names, or run `crdkeeper migrate`.",
)
STORAGE_UNKNOWN = _storage(
    "Unknown",
    "NotEstablished",
    "There is no CRD of this definition yet.",
    "See the condition Accepted.",
)

REASONS: Final[tuple[Reason, ...]] = (
    ACCEPTED_ALL,
    ACCEPTED_WITH_WARNINGS,
    INVALID,
    NOT_OURS,
    CRD_TERMINATING,
    RIGHT_MISSING_TO_APPLY,
    REFUSED,
    TOO_LARGE,
    FAILED,
    OVERWRITTEN,
    NOT_READ,
    BREAKING_CHANGES,
    NOT_COMPARABLE,
    NOT_PREDICTED,
    COMPOSITES_UNKNOWN,
    COMPOSITES_NOT_LISTED,
    REHEARSING,
    VERSION_STORED,
    VERSION_IN_USE,
    CONVERSION_MISSING,
    CONVERSION_INCOMPLETE,
    CONVERSION_PENDING,
    WATCHING,
    ESTABLISHING,
    ESTABLISHED_NOT_READ,
    NO_CRD,
    TERMINATING,
    RIGHT_MISSING,
    NOT_LISTED,
    *NAME_CONFLICTS.values(),
    OFFERED_BY_ENFORCED,
    OFFERED_BY_DEFAULT,
    OFFERED_BY_ONLY,
    OFFERED_BY_CHOICE,
    NO_COMPOSITION,
    COMPOSITION_MISSING,
    COMPOSITION_MISMATCH,
    COMPOSITION_UNUSABLE,
    RIGHT_MISSING_TO_COMPOSE,
    SOME_NOT_COMPOSED,
    COMPOSITES_NOT_COMPOSED,
    COMPOSITIONS_UNKNOWN,
    CURRENT,
    MIGRATING,
    MIGRATION_PENDING,
    MIGRATION_FAILING,
    MIGRATIONS_UNAVAILABLE,
    STORAGE_UNKNOWN,
)
"""Those of Ready are those of Accepted and Established. The first that is not True decides."""

PASSING: Final = frozenset(
    (
        CRD_TERMINATING,
        FAILED,
        NOT_READ,
        COMPOSITES_NOT_LISTED,
        NO_CRD,
        ESTABLISHED_NOT_READ,
        ESTABLISHING,
        NOT_LISTED,
    )
)
"""The composer continues by itself: reconciling, not stalled."""
