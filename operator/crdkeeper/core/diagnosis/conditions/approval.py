"""KubernetesAPIApprovalPolicyConformant: the annotation that groups of the Kubernetes project require.

The server's condition and reasons (apiapproval_controller.go); it sets it on *.k8s.io and *.kubernetes.io.
The CRD works without it, and only the API's author can have it approved, so Ready remains True. That the CRD
could not be created again is a finding of severity Refused.
"""

from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.facts import APPROVAL, SeenDefinition
from crdkeeper.core.diagnosis.verdict import Reason, Verdict

TYPE = APPROVAL
ANNOTATION = "api-approved.kubernetes.io"
_REMEDY = (
    f"Set the annotation {ANNOTATION} to the URL of the pull request that approved the API, or to a text "
    'that begins with "unapproved". An API that is not the Kubernetes project\'s belongs in another group.'
)

NOT_APPLICABLE = Reason(
    TYPE, "True", "NotApplicable", "The API group does not belong to the Kubernetes project."
)
APPROVED = Reason(TYPE, "True", "ApprovedAnnotation", "The annotation links to the approval of the API.")
UNAPPROVED = Reason(
    TYPE,
    "False",
    "UnapprovedAnnotation",
    "The annotation says that the Kubernetes project has not approved the API. The API works regardless.",
)
MISSING = Reason(
    TYPE,
    "False",
    "MissingAnnotation",
    "The group belongs to the Kubernetes project, and the CRD has no approval annotation: the API "
    "server would refuse to create it again.",
    _REMEDY,
)
INVALID = Reason(
    TYPE,
    "False",
    "InvalidAnnotation",
    'The annotation is neither a URL nor a text that begins with "unapproved": the API server would refuse '
    "to create the CRD again.",
    _REMEDY,
)
NOT_YET_PROCESSED = Reason(
    TYPE,
    "Unknown",
    "NotYetProcessed",
    "The API server's controllers have not processed the annotation yet.",
    "Wait a moment. If it persists, check the kube-apiserver log.",
)

_BY_SERVER_REASON = {each.name: each for each in (APPROVED, UNAPPROVED, MISSING, INVALID)}
_PROTECTED = ("k8s.io", "kubernetes.io")


def judge(seen: SeenDefinition) -> Verdict:
    group = seen.definition.group
    if not any(group == each or group.endswith(f".{each}") for each in _PROTECTED):
        return Verdict(NOT_APPLICABLE, f"{group} does not need approval.")
    found = seen.condition(TYPE)
    reason = _BY_SERVER_REASON.get(found.reason, NOT_YET_PROCESSED) if found else NOT_YET_PROCESSED
    words = f" The API server says: {found.message}" if found and found.message else ""
    return Verdict(reason, f"{reason.meaning} {reason.remedy}".rstrip() + words)


CONDITION = ConditionType(
    TYPE,
    lambda facts: judge(facts.seen),
    reasons=(
        NOT_APPLICABLE,
        APPROVED,
        UNAPPROVED,
        MISSING,
        INVALID,
        NOT_YET_PROCESSED,
    ),
)
