"""The conditions of a Composition with their reasons, which docs/composites.md lists."""

from typing import Final

from crdkeeper.api.meta import READY, ConditionStatus
from crdkeeper.core.diagnosis.verdict import Reason

VALID: Final = "Valid"


def _valid(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(VALID, status, name, meaning, remedy, healthy=status == "True")


def _ready(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(READY, status, name, meaning, remedy, healthy=status == "True")


VALID_ALL = _valid("True", "Valid", "All templates and expressions fit the schemas of their kinds.")
KIND_MISSING = _valid(
    "True",
    "KindMissing",
    "The API server does not serve the kinds of some resources, which are not checked. Ready is False.",
    "Install what serves these kinds. The composer continues by itself.",
)
INVALID = _valid(
    "False",
    "Invalid",
    "The Composition has errors. Composites keep the newest CompositionRevision.",
    "Change the Composition as the message says; `crdkeeper compose render` names the lines.",
)
DEFINITION_MISSING = _valid(
    "Unknown",
    "DefinitionMissing",
    "No CompositeResourceDefinition serves the version and kind in spec.compositeTypeRef.",
    "Create one, or serve the version. The composer continues by itself.",
)
NOT_READ = _valid(
    "Unknown",
    "NotRead",
    "The API server failed to return the Composition, or the schemas to check it by. The composer tries "
    "again.",
    "If it lasts, fix what the message names.",
)
CURRENT = _ready("True", "Current", "The newest CompositionRevision has the content of the Composition.")
REVISIONS_KEPT = _ready(
    "True",
    "RevisionsKept",
    "The same, but CompositionRevisions beyond revisionHistoryLimit cannot be deleted.",
    "Fix what the message names. The composer tries again after a minute, or later if it takes long "
    "to list the composites.",
)
REVISION_FAILED = _ready(
    "False",
    "RevisionFailed",
    "The CompositionRevision cannot be created. The composer tries again.",
    "Fix what the message names.",
)

REASONS: Final[tuple[Reason, ...]] = (
    VALID_ALL,
    KIND_MISSING,
    INVALID,
    DEFINITION_MISSING,
    NOT_READ,
    CURRENT,
    REVISIONS_KEPT,
    REVISION_FAILED,
)
"""Ready also has those of Valid that are not True, and KindMissing."""

PASSING: Final = frozenset((KIND_MISSING, DEFINITION_MISSING, NOT_READ))
"""The composer continues by itself: reconciling, not stalled."""
