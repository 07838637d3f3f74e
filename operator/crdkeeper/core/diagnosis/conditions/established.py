"""Established: whether the API server serves the resource.

The server's condition and its reasons (establishing_controller.go, naming_controller.go), plus one case that
it does not report: an established CRD of which no version is served.
"""

from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.facts import SeenDefinition
from crdkeeper.core.diagnosis.verdict import Reason, Verdict

TYPE = "Established"

ESTABLISHED = Reason(TYPE, "True", "Established", "The API server serves the resource.")
NO_VERSION_SERVED = Reason(
    TYPE,
    "True",
    "NoVersionServed",
    "The CRD is established, but none of its versions is served: no client can read or write its objects.",
    "Set served: true on a version in spec.versions.",
    healthy=False,
)
NOT_ACCEPTED = Reason(
    TYPE,
    "False",
    "NotAccepted",
    "The API server does not serve the resource, because another CRD uses one of its names.",
    "See the condition NamesAccepted.",
    healthy=False,
)
INSTALLING = Reason(
    TYPE,
    "False",
    "Installing",
    "The names are accepted; the API servers get a few seconds to load the CRD.",
    "Wait. If it persists for minutes, check the kube-apiserver log.",
    healthy=False,
)
INVALID_CA_BUNDLE = Reason(
    TYPE,
    "False",
    "InvalidCABundle",
    "spec.conversion.webhook.clientConfig.caBundle holds no valid certificate, so the CRD is not served.",
    "Set it to base64-encoded PEM certificates, or let your certificate tool inject them.",
    healthy=False,
)
NOT_ESTABLISHED = Reason(
    TYPE,
    "False",
    "NotEstablished",
    "The API server does not serve the resource, for a reason unknown to crdkeeper.",
    "Read the message: it quotes the API server.",
    healthy=False,
)
NOT_YET_PROCESSED = Reason(
    TYPE,
    "Unknown",
    "NotYetProcessed",
    "The API server's controllers have not processed the CRD yet.",
    "Wait a moment. If it persists, check the kube-apiserver log.",
    healthy=False,
)

_BY_SERVER_REASON = {each.name: each for each in (NOT_ACCEPTED, INSTALLING, INVALID_CA_BUNDLE)}


def judge(seen: SeenDefinition) -> Verdict:
    found = seen.condition(TYPE)
    definition = seen.definition
    if found is None or found.status == "Unknown":
        return Verdict(NOT_YET_PROCESSED, f"{NOT_YET_PROCESSED.meaning} {NOT_YET_PROCESSED.remedy}")
    if found.status == "True":
        served = [each.name for each in definition.versions if each.served]
        if served:
            versions = ", ".join(served)
            return Verdict(ESTABLISHED, f"{definition.name} is served at {versions}.")
        return Verdict(NO_VERSION_SERVED, f"{NO_VERSION_SERVED.meaning} {NO_VERSION_SERVED.remedy}")
    reason = _BY_SERVER_REASON.get(found.reason, NOT_ESTABLISHED)
    if reason is NOT_ESTABLISHED:
        return Verdict(reason, f"Not served: {found.reason}: {found.message}")
    return Verdict(reason, f"{reason.meaning} {reason.remedy}")


CONDITION = ConditionType(
    TYPE,
    lambda facts: judge(facts.seen),
    reasons=(
        ESTABLISHED,
        NO_VERSION_SERVED,
        NOT_ACCEPTED,
        INSTALLING,
        INVALID_CA_BUNDLE,
        NOT_ESTABLISHED,
        NOT_YET_PROCESSED,
    ),
)
