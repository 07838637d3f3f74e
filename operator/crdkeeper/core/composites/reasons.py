"""The conditions of a composite with their reasons, which docs/composites.md lists."""

from typing import Final

from crdkeeper.api.meta import READY, ConditionStatus
from crdkeeper.core.diagnosis.verdict import Reason

SYNCED: Final = "Synced"
RESPONSIVE: Final = "Responsive"
"""Present only after it was False once."""


def _synced(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(SYNCED, status, name, meaning, remedy, healthy=status == "True")


def _responsive(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(RESPONSIVE, status, name, meaning, remedy, healthy=status == "True")


def _ready(status: ConditionStatus, name: str, meaning: str, remedy: str = "") -> Reason:
    return Reason(READY, status, name, meaning, remedy, healthy=status == "True")


RECONCILED: Final = _synced(
    "True", "ReconcileSuccess", "All objects that can be rendered now are as the Composition says."
)
IN_PROGRESS: Final = _synced(
    "False",
    "ReconcilePending",
    "Objects are still to be applied or removed. The composer is at it, or continues within seconds.",
)
PAUSED: Final = _synced(
    "False",
    "ReconcilePaused",
    'The composite has the annotation crdkeeper.dev/paused: "true". Nothing changes, also if it is deleted.',
    "Remove the annotation.",
)
NO_REVISION: Final = _synced(
    "False",
    "NoRevision",
    "No CompositionRevision can be chosen for the composite. What it has composed stays.",
    "Choose a Composition as the message says.",
)
REVISION_UNUSABLE: Final = _synced(
    "False",
    "RevisionUnusable",
    "The CompositionRevision cannot be compiled or used. What the composite has composed stays.",
    "Change the Composition as the message says.",
)
RENDERING_FAILED: Final = _synced(
    "False",
    "RenderingFailed",
    "An expression has no value for this composite. The objects of that resource stay as they are.",
    "Change the composite or the Composition as the message says.",
)
STATUS_FAILED: Final = _synced(
    "False",
    "StatusFailed",
    "A field of the status has no value for this composite, or one that the API server would refuse. The "
    "field keeps its value; the objects are as the Composition says.",
    "Change the composite or spec.status of the Composition as the message says.",
)
NOT_OURS: Final = _synced(
    "False",
    "NotOurs",
    "An object exists already, and is not the composite's.",
    "Delete the object, give the template another name, or name the resource in the annotation "
    "crdkeeper.dev/adopt of the composite. The composer continues within a minute.",
)
CONFLICT: Final = _synced(
    "False",
    "Conflict",
    "Another client owns a field that the Composition sets newly.",
    "Remove the field from the template, let the other client give it up, or set conflicts: Force.",
)
RIGHT_MISSING: Final = _synced(
    "False",
    "RightMissing",
    "The composer, or the ServiceAccount of the Composition, lacks a right on the objects.",
    "Grant the rule in the message. The composer continues within a minute.",
)
SERVICE_ACCOUNT_MISSING: Final = _synced(
    "False",
    "ServiceAccountMissing",
    "The ServiceAccount of the Composition does not exist. What the composite has composed stays.",
    "Create it. The composer continues by itself.",
)
KIND_MISSING: Final = _synced(
    "False",
    "KindMissing",
    "The API server does not serve the kind of a resource, which holds up only those that refer to it.",
    "Install what serves the kind. The composer continues by itself.",
)
REFUSED: Final = _synced(
    "False",
    "Refused",
    "The API server, or an admission webhook or policy, refuses an object.",
    "Change what the message names. If a field cannot change, delete the object: it is created again.",
)
FAILED: Final = _synced(
    "False",
    "Failed",
    "A request to the API server failed. The composer tries again.",
    "If it lasts, fix what the message names.",
)
TOO_MANY: Final = _synced(
    "False",
    "TooManyObjects",
    "The composite has more objects than its status can list, with those that have to go first.",
    "Remove objects in a first change, and add others in a second one.",
)
SLOWED_DOWN: Final = _synced(
    "False",
    "SlowedDown",
    "An object had to be written again and again. It stays as it is for up to two minutes.",
    "See the condition Responsive.",
)
AVAILABLE: Final = _ready("True", "Available", "All objects are ready.")
CREATING: Final = _ready(
    "False",
    "Creating",
    "Some objects are not ready yet, or wait for others. status.crdkeeper.resources has them.",
)
NOT_SYNCED: Final = _ready(
    "False", "NotSynced", "The objects are not as the Composition says.", "See the condition Synced."
)
DELETING: Final = _ready(
    "False", "Deleting", "The objects are being deleted in order. The message says what that waits for."
)
QUIET: Final = _responsive("True", "Quiet", "What was written again and again is quiet.")
OVERWRITTEN: Final = _responsive(
    "False",
    "Overwritten",
    "Others change in an object what the Composition sets. It is put back after pauses of up to two minutes.",
    "Stop the program that the message names, or remove the field from the template.",
)
VANISHING: Final = _responsive(
    "False",
    "Vanishing",
    "An object is deleted again and again. The composer creates it after pauses of up to two minutes.",
    "Stop what deletes it, such as a ttlSecondsAfterFinished, or remove the resource from the Composition.",
)
CHANGING: Final = _responsive(
    "False",
    "Changing",
    "The composite changes all the time, or what its expressions read. Its objects follow after pauses of up "
    "to half a minute.",
    "Stop the program that the message names, or let the expressions read what changes less often.",
)

REASONS: Final[tuple[Reason, ...]] = (
    RECONCILED,
    IN_PROGRESS,
    PAUSED,
    NO_REVISION,
    REVISION_UNUSABLE,
    RENDERING_FAILED,
    STATUS_FAILED,
    NOT_OURS,
    CONFLICT,
    RIGHT_MISSING,
    SERVICE_ACCOUNT_MISSING,
    KIND_MISSING,
    REFUSED,
    FAILED,
    TOO_MANY,
    SLOWED_DOWN,
    AVAILABLE,
    CREATING,
    NOT_SYNCED,
    DELETING,
    QUIET,
    OVERWRITTEN,
    VANISHING,
    CHANGING,
)
"""All of them, in the order of the documentation."""

PASSING: Final = frozenset((IN_PROGRESS, SERVICE_ACCOUNT_MISSING, KIND_MISSING, FAILED, SLOWED_DOWN))
"""The composer continues by itself: reconciling, not stalled."""
