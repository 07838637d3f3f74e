"""ScalingReady: do HorizontalPodAutoscalers and PodDisruptionBudgets work with the objects?

Tenants write both, and must not make the report of a CRD unhealthy, which all of them share: no reason
affects Ready.
"""

from dataclasses import dataclass

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.probes import ProbeTrouble
from crdkeeper.core.diagnosis.scaling import Scaling, ScalingFault, unscalable
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import count

_TYPE = "ScalingReady"
NOT_USED = Reason(
    _TYPE,
    "True",
    "NotUsed",
    "No HorizontalPodAutoscaler scales an object of the kind, and no PodDisruptionBudget fails because of "
    "one.",
)
WORKING = Reason(
    _TYPE,
    "True",
    "Working",
    "HorizontalPodAutoscalers can scale the objects that they name, and no PodDisruptionBudget fails because"
    " of one.",
)
PENDING = Reason(_TYPE, "Unknown", "Pending", "HorizontalPodAutoscalers have not been listed yet.")
NOT_PERMITTED = Reason(
    _TYPE,
    "Unknown",
    "NotPermitted",
    "crdkeeper is not allowed to list HorizontalPodAutoscalers, PodDisruptionBudgets or pods, or to read "
    "/scale.",
    "Apply manifests/samples/scaling-reader-role.yaml, which lets it list all three in all namespaces. For "
    "/scale, manifests/samples/reader-role.yaml is an example. crdkeeper tries again within 5 minutes.",
)
NOT_ASKED = Reason(
    _TYPE,
    "Unknown",
    "APIServerUnavailable",
    "HorizontalPodAutoscalers, PodDisruptionBudgets or pods could not be listed, or the API server could not "
    "read an object for its /scale.",
    "Nothing: crdkeeper tries again.",
)
NO_SCALE = Reason(
    _TYPE,
    "False",
    "ScaleMissing",
    "A HorizontalPodAutoscaler names an object whose kind it cannot scale. It looks for /scale at the "
    "version that the API server prefers, whatever version it names.",
    "The author of the CRD can add the scale subresource to all served versions. Otherwise, let the "
    "autoscaler name what the object's controller creates, such as a Deployment, or delete it.",
)
TARGET_MISSING = Reason(
    _TYPE,
    "False",
    "TargetMissing",
    "A HorizontalPodAutoscaler names an object that does not exist.",
    "Correct spec.scaleTargetRef of the autoscaler, or delete it.",
)
SCALE_FAILS = Reason(
    _TYPE,
    "False",
    "ScaleFails",
    "The /scale of an object that a HorizontalPodAutoscaler names cannot be read, because the object lacks "
    "the replicas field or has a value of the wrong type.",
    "Fix the object. If it lacks the replicas field, set it; the author of the CRD can give it a default.",
)
SELECTOR_MISSING = Reason(
    _TYPE,
    "False",
    "SelectorMissing",
    "A HorizontalPodAutoscaler needs the pods' selector in /scale, and the object has none.",
    "If the CRD has a labelSelectorPath, the object's controller must write the selector there: check that "
    "it runs, and that its writes to status arrive (condition StatusWritersReady). Otherwise its author can "
    "add both.",
)
SELECTOR_INVALID = Reason(
    _TYPE,
    "False",
    "SelectorInvalid",
    "The selector in /scale of an object cannot be parsed as a label selector.",
    "The author of the controller must write a serialized label selector, such as app=web,tier in (a,b).",
)
NO_PODS_SELECTED = Reason(
    _TYPE,
    "False",
    "NoPodsSelected",
    "/scale of an object counts pods, but its selector selects none of its namespace.",
    "The author of the controller must write the labels that it gives to the pods.",
)
AMBIGUOUS = Reason(
    _TYPE,
    "False",
    "AmbiguousSelector",
    "Several HorizontalPodAutoscalers would scale for the same pods, so that none does.",
    "Delete all but one, or have the objects' controller write selectors that do not overlap.",
)
SCALE_REFUSED = Reason(
    _TYPE,
    "False",
    "ScaleRefused",
    "A HorizontalPodAutoscaler cannot write spec.replicas of an object.",
    "Compare minReplicas and maxReplicas with the limits of the CRD's schema, and look for an admission "
    "webhook or policy that refuses the change.",
)
REPLICAS_OVERWRITTEN = Reason(
    _TYPE,
    "False",
    "ReplicasOverwritten",
    "For ten minutes, spec.replicas of an object has not been what a HorizontalPodAutoscaler wants.",
    "Find who else writes it (kubectl get --show-managed-fields), such as a GitOps tool, and take the field "
    "out of its manifest.",
)
REPLICAS_NOT_FOLLOWED = Reason(
    _TYPE,
    "False",
    "ReplicasNotFollowed",
    "For ten minutes, status.replicas of an object that a HorizontalPodAutoscaler scales has not become "
    "spec.replicas.",
    "Check that the object's controller is running and can create pods, and that its writes to status "
    "arrive.",
)
BUDGET_FAILS = Reason(
    _TYPE,
    "False",
    "BudgetFails",
    "A PodDisruptionBudget allows no evictions, because the expected number of pods cannot be read from "
    "/scale of the object that controls them.",
    "If the kind has no scale subresource, give the budget an integer minAvailable, which needs none. If "
    "ownerReferences name a version that is not served, have the pods created again by a current controller.",
)
PODS_MISSING = Reason(
    _TYPE,
    "False",
    "PodsMissing",
    "For ten minutes, a PodDisruptionBudget has allowed no evictions, and selected fewer pods than "
    "spec.replicas of the objects that control them says.",
    "Check that the objects' controller is running and can create pods, and that the budget's selector "
    "selects all pods of an object. Otherwise give the budget an integer minAvailable, which does not depend "
    "on spec.replicas.",
)
_BY_FAULT = {
    ScalingFault.NO_SCALE: NO_SCALE,
    ScalingFault.TARGET_MISSING: TARGET_MISSING,
    ScalingFault.SCALE_FAILS: SCALE_FAILS,
    ScalingFault.NO_SELECTOR: SELECTOR_MISSING,
    ScalingFault.BAD_SELECTOR: SELECTOR_INVALID,
    ScalingFault.NO_PODS: NO_PODS_SELECTED,
    ScalingFault.AMBIGUOUS: AMBIGUOUS,
    ScalingFault.REFUSED: SCALE_REFUSED,
    ScalingFault.OVERWRITTEN: REPLICAS_OVERWRITTEN,
    ScalingFault.NOT_FOLLOWED: REPLICAS_NOT_FOLLOWED,
    ScalingFault.BUDGET_FAILS: BUDGET_FAILS,
    ScalingFault.PODS_MISSING: PODS_MISSING,
}
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ScalingFacts:
    """All facts that ScalingReady depends on."""

    definition: DefinitionFacts
    declared: DeclaredSubresources
    found: Scaling | None
    """None before the first probe."""


def judge(facts: ScalingFacts) -> Verdict:
    """The condition. What does not work counts also if not all could be seen."""
    found = facts.found
    if found is None:
        return _verdict(PENDING, "HorizontalPodAutoscalers have not been listed yet.")
    if found.troubles:
        reason = next(reason for fault, reason in _BY_FAULT.items() if _has(found, fault))
        return _verdict(reason, _listed(found))
    for each in found.unseen:
        if each.failure.trouble is ProbeTrouble.FORBIDDEN:
            said = each.failure.message.rstrip(".")
            return _verdict(NOT_PERMITTED, f"{said}. The missing rule: {each.rule}.")
    for each in found.unseen:
        return _verdict(NOT_ASKED, f"Not all could be read: {essence(each.failure.message)}.")
    besides = f" Not all of those in {found.uncounted} could be counted." if found.uncounted else ""
    if not found.autoscalers:
        why = unscalable(facts.definition, facts.declared)
        none_could = f" None could scale one: {why}." if why else ""
        return _verdict(
            NOT_USED, f"No HorizontalPodAutoscaler names an object of the kind.{besides}{none_could}"
        )
    scaled = count(found.autoscalers, "HorizontalPodAutoscaler")
    some = f", of which {found.checked} were checked" if found.checked < found.autoscalers else ""
    return _verdict(WORKING, f"{scaled} can scale objects of the kind{some}.{besides}")


def _has(found: Scaling, fault: ScalingFault) -> bool:
    return any(each.fault is fault for each in found.troubles)


def _listed(found: Scaling) -> str:
    """The troubles that the reason is about come first."""
    order = list(_BY_FAULT)
    troubles = sorted(found.troubles, key=lambda each: order.index(each.fault))
    more = len(troubles) - _SHOWN
    return "; ".join(each.detail for each in troubles[:_SHOWN]) + (f"; and {more} more." if more > 0 else ".")


def _verdict(reason: Reason, said: str) -> Verdict:
    return Verdict(reason, f"{said} {reason.remedy}".rstrip())


CONDITION = ConditionType(
    _TYPE,
    lambda facts: judge(
        ScalingFacts(facts.seen.definition, facts.assessment.subresources, facts.live.scaling)
    ),
    reasons=(
        NOT_USED,
        WORKING,
        PENDING,
        NOT_PERMITTED,
        NOT_ASKED,
        NO_SCALE,
        TARGET_MISSING,
        SCALE_FAILS,
        SELECTOR_MISSING,
        SELECTOR_INVALID,
        NO_PODS_SELECTED,
        AMBIGUOUS,
        SCALE_REFUSED,
        REPLICAS_OVERWRITTEN,
        REPLICAS_NOT_FOLLOWED,
        BUDGET_FAILS,
        PODS_MISSING,
    ),
    assessed=True,
    fact="scaling",
)
