"""SubresourcesReady: do scale and status work as kubectl, autoscalers and controllers expect?"""

from dataclasses import dataclass

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.probes import PERMIT, ProbeTrouble, not_permitted
from crdkeeper.core.diagnosis.subresourcefacts import (
    DeclaredSubresources,
    Flaw,
    ScaleProbe,
    SubresourceProblem,
)
from crdkeeper.core.diagnosis.verdict import Reason, Verdict

_TYPE = "SubresourcesReady"
NONE_DECLARED = Reason(_TYPE, "True", "NoneDeclared", "No served version has a status or scale subresource.")
DECLARED = Reason(
    _TYPE,
    "True",
    "Declared",
    "The schemas declare the fields that the subresources need, with the right types.",
)
READ = Reason(
    _TYPE, "True", "ScaleRead", "The fields are declared, and /scale of an object was read at each version."
)
SELECTOR_MISSING = Reason(
    _TYPE,
    "True",
    "SelectorMissing",
    "A scale subresource has no labelSelectorPath: kubectl scale works, but a HorizontalPodAutoscaler does "
    "not.",
    "To allow autoscaling, add labelSelectorPath and let the controller write the pods' selector there.",
)
STATUS_NOT_DECLARED = Reason(
    _TYPE,
    "True",
    "StatusNotDeclared",
    "There is a status subresource, but the schema does not declare status: everything written to it is "
    "pruned.",
    "Declare status in the schema, or remove the subresource if nothing writes to it.",
)
PENDING = Reason(_TYPE, "Unknown", "Pending", "No object's /scale has been read yet.")
NOT_PERMITTED = Reason(
    _TYPE,
    "Unknown",
    "NotPermitted",
    "The fields are declared, but crdkeeper is not allowed to read /scale.",
    PERMIT,
)
NOT_ASKED = Reason(
    _TYPE,
    "Unknown",
    "APIServerUnavailable",
    "The fields are declared, but the API server did not answer, was too busy, or does not serve the kind.",
    "Nothing: crdkeeper tries again.",
)
PATH_NOT_DECLARED = Reason(
    _TYPE,
    "False",
    "ScalePathNotDeclared",
    "A path of the scale subresource names a field that the schema does not declare, so it is always pruned.",
    "Add the field to the schema, or correct the path.",
    healthy=False,
)
PATH_WRONG_TYPE = Reason(
    _TYPE,
    "False",
    "ScalePathWrongType",
    "A path of the scale subresource points to a field of the wrong type, so objects with a value "
    "there are refused.",
    "Make the replicas an integer and the selector a string (a serialized label selector, no object).",
    healthy=False,
)
SCALE_FAILS = Reason(
    _TYPE,
    "False",
    "ScaleFails",
    "The /scale of an object cannot be read.",
    "Give the replicas field a default where it may be missing, and fix objects with a value of a wrong "
    "type.",
    healthy=False,
)
CONDITIONS_MALFORMED = Reason(
    _TYPE,
    "False",
    "ConditionsMalformed",
    "status.conditions is not a list of objects with the strings `type` and `status`: kubectl wait and other "
    "tools cannot read it.",
    "Declare status.conditions as metav1.Condition does.",
    healthy=False,
)
_BY_FLAW = {
    Flaw.PATH_NOT_DECLARED: PATH_NOT_DECLARED,
    Flaw.PATH_WRONG_TYPE: PATH_WRONG_TYPE,
    Flaw.CONDITIONS_MALFORMED: CONDITIONS_MALFORMED,
}


@dataclass(frozen=True, slots=True)
class SubresourceFacts:
    """All that SubresourcesReady depends on."""

    definition: DefinitionFacts
    declared: DeclaredSubresources
    probe: ScaleProbe | None
    """None before the first probe, and where no version has a scale subresource."""


def judge(facts: SubresourceFacts) -> Verdict:
    """The condition. What the schema lacks comes before what one object shows."""
    declared, probe = facts.declared, facts.probe
    if declared.problems:
        return _verdict(_BY_FLAW[declared.problems[0].flaw], _listed(declared.problems))
    if not declared.scaled:
        return _judge_sound(declared, None)
    if probe is None:
        return _verdict(PENDING, "The paths of /scale are declared; no object's /scale has been read yet.")
    failed = [(each, each.failure) for each in probe.reads if each.failure is not None]
    for read, failure in failed:
        if failure.trouble is ProbeTrouble.FAILED:
            said = essence(failure.message)
            return _verdict(
                SCALE_FAILS, f"/scale of {read.example} cannot be read at {read.version}: {said}."
            )
    failure_ = probe.failure or (failed[0][1] if failed else None)
    if failure_ is not None and failure_.trouble is ProbeTrouble.FORBIDDEN:
        return _verdict(NOT_PERMITTED, not_permitted(facts.definition, failure_))
    if failure_ is not None:
        return _verdict(NOT_ASKED, f"{facts.definition.name} could not be read: {essence(failure_.message)}.")
    return _judge_sound(declared, probe)


def _judge_sound(declared: DeclaredSubresources, probe: ScaleProbe | None) -> Verdict:
    reason, said = DECLARED, "The fields of the subresources are declared in the right types."
    if not declared.scaled and not declared.status:
        reason, said = NONE_DECLARED, "No served version has a subresource."
    elif probe is not None and probe.reads:
        versions = ", ".join(each.version for each in probe.reads)
        reason, said = READ, f"/scale of {probe.reads[0].example} was read at {versions}."
    elif probe is not None:
        said += " There is no object whose /scale could be read."
    if declared.statusless:
        reason = STATUS_NOT_DECLARED
        said += f" The schema has no status at {', '.join(declared.statusless)}."
    if declared.unselected:
        reason = SELECTOR_MISSING
        said += f" There is no labelSelectorPath at {', '.join(declared.unselected)}."
    return _verdict(reason, said)


def _verdict(reason: Reason, said: str) -> Verdict:
    return Verdict(reason, f"{said} {reason.remedy}".rstrip())


def _listed(problems: tuple[SubresourceProblem, ...]) -> str:
    shown = "; ".join(f"{each.path}: {each.detail}" for each in problems[:5])
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return f"{shown}{more}."


CONDITION = ConditionType(
    _TYPE,
    lambda facts: judge(
        SubresourceFacts(facts.seen.definition, facts.assessment.subresources, facts.live.scale)
    ),
    reasons=(
        NONE_DECLARED,
        DECLARED,
        READ,
        SELECTOR_MISSING,
        STATUS_NOT_DECLARED,
        PENDING,
        NOT_PERMITTED,
        NOT_ASKED,
        PATH_NOT_DECLARED,
        PATH_WRONG_TYPE,
        SCALE_FAILS,
        CONDITIONS_MALFORMED,
    ),
    assessed=True,
    fact="scale",
)
