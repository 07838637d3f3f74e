"""Terminating: what blocks the deletion of a CRD.

The API server first deletes a CRD's objects, each of which waits for its finalizers, and then removes its own
finalizer from the CRD (crd_finalizer.go). At most it reports `could not confirm zero CustomResources
remaining`; this condition names the objects and their finalizers.
"""

from dataclasses import dataclass

from crdkeeper.api.meta import format_time
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.deletion import CLEANUP, Blockers, Deletion, FinalizerUse
from crdkeeper.core.diagnosis.probes import PERMIT, Failure, ProbeTrouble, not_permitted
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import count

_TYPE = "Terminating"
NOT_TERMINATING = Reason(_TYPE, "False", "NotTerminating", "The CRD is not being deleted.")
PENDING = Reason(
    _TYPE,
    "True",
    "Pending",
    "The CRD is being deleted. Its objects have not been checked yet.",
    healthy=False,
)
OBJECTS_HAVE_FINALIZERS = Reason(
    _TYPE,
    "True",
    "ObjectsHaveFinalizers",
    "Objects of the kind wait for the finalizers in the message, and the CRD waits for the objects.",
    "Check that the controller of each finalizer is running, and let it finish. Only if it is gone for good "
    "and everything it would clean up has been cleaned up, release its finalizer, and no other one: "
    "`crdkeeper finalizers PLURAL.GROUP --release NAME` does it, or a DefinitionPolicy that names it in "
    "spec.finalizers. Leave the CRD's own finalizer: without it the objects stay in etcd, and come back with "
    "the next CRD of this name.",
    healthy=False,
)
OBJECTS_LEFT = Reason(
    _TYPE,
    "True",
    "ObjectsLeft",
    "Objects without finalizers remain: the API server is still deleting them, or cannot delete them.",
    "Wait. If the number does not fall, look for an admission webhook or policy that refuses DELETE.",
    healthy=False,
)
OBJECTS_UNREADABLE = Reason(
    _TYPE,
    "True",
    "ObjectsUnreadable",
    "The objects cannot be read, so the API server cannot delete them either. Often, a conversion "
    "webhook was removed before the CRD.",
    "If the conversion webhook is gone for good, set spec.conversion to the strategy None: the deletion goes "
    "on.",
    healthy=False,
)
DEFINITION_HAS_FINALIZERS = Reason(
    _TYPE,
    "True",
    "DefinitionHasFinalizers",
    "No object is left, but the CRD waits for its own finalizers.",
    "Check that the controller of each finalizer is running. Remove a finalizer only if its controller "
    "is gone for good.",
    healthy=False,
)
CLEANING_UP = Reason(
    _TYPE,
    "True",
    "CleaningUp",
    "No object is left; the API server has yet to remove its own finalizer from the CRD.",
    "Wait: it retries every few seconds, or up to 17 minutes later if it failed before.",
    healthy=False,
)
NOT_PERMITTED = Reason(
    _TYPE,
    "True",
    "NotPermitted",
    "The CRD is being deleted, and crdkeeper is not allowed to list its objects to see what blocks it.",
    PERMIT,
    healthy=False,
)
NOT_ASKED = Reason(
    _TYPE,
    "True",
    "APIServerUnavailable",
    "The CRD is being deleted; the API server did not list its objects.",
    "Nothing: crdkeeper tries again.",
    healthy=False,
)


@dataclass(frozen=True, slots=True)
class TerminatingFacts:
    """All facts that Terminating depends on."""

    definition: DefinitionFacts
    deletion: Deletion | None
    """None if the CRD is not being deleted."""
    blockers: Blockers | None
    """None until the first probe."""


def judge(facts: TerminatingFacts) -> Verdict:
    """The condition."""
    if facts.deletion is None:
        return Verdict(NOT_TERMINATING, "The CRD is not being deleted.")
    reason, said = _judge_blockers(facts.definition, facts.deletion, facts.blockers)
    since = f"Being deleted since {format_time(facts.deletion.since)}."
    return Verdict(reason, " ".join(filter(None, (since, said, reason.remedy))))


def _judge_blockers(
    definition: DefinitionFacts, deletion: Deletion, blockers: Blockers | None
) -> tuple[Reason, str]:
    others = [each for each in deletion.finalizers if each != CLEANUP]
    also = f" The CRD itself also has the finalizers {', '.join(others)}." if others else ""
    if CLEANUP not in deletion.finalizers:
        # Its objects are gone, or are left behind: either way nobody deletes them any more.
        return (
            DEFINITION_HAS_FINALIZERS,
            f"The CRD has the finalizers {', '.join(others) or 'none left'}.",
        )
    if blockers is None:
        return PENDING, f"Its objects have not been checked yet.{also}"
    at_least = "" if blockers.complete else "at least "
    left = f"{at_least}{count(blockers.objects, 'object')} left"
    if blockers.finalizers:
        held = "; ".join(map(_held, blockers.finalizers))
        rest = blockers.finalizers_total - len(blockers.finalizers)
        more = f"; and {rest} more finalizers" if rest > 0 else ""
        return OBJECTS_HAVE_FINALIZERS, f"{left[0].upper()}{left[1:]}: {held}{more}.{also}"
    if blockers.failure is not None:
        return _unseen(definition, deletion, blockers.failure, also)
    if blockers.objects:
        return OBJECTS_LEFT, f"{left[0].upper()}{left[1:]}, such as {', '.join(blockers.examples)}.{also}"
    if others:
        return DEFINITION_HAS_FINALIZERS, f"No object is left.{also}"
    api_server = f' The API server says: "{deletion.message}".' if deletion.message else ""
    return CLEANING_UP, f"No object is left, but the CRD still has the finalizer {CLEANUP}.{api_server}"


def _unseen(
    definition: DefinitionFacts, deletion: Deletion, failure: Failure, also: str
) -> tuple[Reason, str]:
    if failure.trouble is ProbeTrouble.FORBIDDEN:
        return NOT_PERMITTED, not_permitted(definition, failure) + also
    said = f"Its objects cannot be listed: {essence(failure.message)}.{also}"
    return (OBJECTS_UNREADABLE if failure.trouble is ProbeTrouble.FAILED else NOT_ASKED), said


def _held(use: FinalizerUse) -> str:
    more = ", …" if use.objects > len(use.examples) else ""
    return f"{use.name} on {count(use.objects, 'object')} ({', '.join(use.examples)}{more})"


CONDITION = ConditionType(
    _TYPE,
    lambda facts: judge(TerminatingFacts(facts.seen.definition, facts.seen.deletion, facts.live.blockers)),
    reasons=(
        NOT_TERMINATING,
        PENDING,
        OBJECTS_HAVE_FINALIZERS,
        OBJECTS_LEFT,
        OBJECTS_UNREADABLE,
        DEFINITION_HAS_FINALIZERS,
        CLEANING_UP,
        NOT_PERMITTED,
        NOT_ASKED,
    ),
    fact="blockers",
)
