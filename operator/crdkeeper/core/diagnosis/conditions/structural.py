"""NonStructuralSchema: what keeps a schema from being structural, with the server's own type and polarity.

True is bad. The server's condition (nonstructuralschema_controller.go) is one flat string, present only while
there are violations; here each has its field path and message. CRDs with violations cannot be created any
more, but those from before Kubernetes 1.22 are still served.
"""

from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.structure import Structure
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import count

TYPE = "NonStructuralSchema"
_REMEDY = "Until this is fixed, nothing is pruned or defaulted. `crdkeeper lint` finds the lines."

STRUCTURAL = Reason(TYPE, "False", "Structural", "All schemas are structural.")
VIOLATIONS = Reason(
    TYPE,
    "True",
    "Violations",
    "Schemas are not structural, or unknown fields are preserved: objects of the kind are neither pruned nor "
    "defaulted, and the API server would refuse to create the CRD again.",
    "Apply the CRD of a current release: since Kubernetes 1.22 only structural schemas can be created. For "
    "a CRD of your own, fix each field that the message names, and set spec.preserveUnknownFields: false; "
    "`crdkeeper lint` and `crdkeeper upgrade-manifest` help.",
    healthy=False,
)
STRUCTURAL_ERROR = Reason(
    TYPE,
    "True",
    "StructuralError",
    "A schema uses a keyword that a structural schema cannot have, such as $ref or definitions.",
    "Apply the CRD of a current release, or rewrite the schema without the keyword that the message names.",
    healthy=False,
)
NOT_DECIDED = Reason(
    TYPE,
    "Unknown",
    "NotDecided",
    "The schemas are nested too deeply to be checked.",
    "See the condition of this type in the CRD's own status, which is authoritative.",
)


def judge(found: Structure) -> Verdict:
    if not found.decided:
        return Verdict(NOT_DECIDED, f"{NOT_DECIDED.meaning} {NOT_DECIDED.remedy}")
    listed = [*found.shown]
    if found.violations > len(found.shown):
        listed.append(f"and {found.violations - len(found.shown):,} more")
    words = "; ".join([*([found.error] if found.error else []), *listed])
    if found.error:
        return Verdict(STRUCTURAL_ERROR, f"{words}. {STRUCTURAL_ERROR.remedy}")
    if found.violations:
        return Verdict(VIOLATIONS, f"{count(found.violations, 'violation')}: {words}. {_REMEDY}")
    return Verdict(STRUCTURAL, STRUCTURAL.meaning)


CONDITION = ConditionType(
    TYPE,
    lambda facts: judge(facts.assessment.structure),
    reasons=(
        STRUCTURAL,
        VIOLATIONS,
        STRUCTURAL_ERROR,
        NOT_DECIDED,
    ),
    assessed=True,
)
