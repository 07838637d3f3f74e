"""SubresourcesReady: do scale and status work as kubectl, autoscalers and controllers expect?

Only the CRD's author can fix its schema, so errors in it do not affect Ready.
"""

from dataclasses import dataclass

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.probes import PERMIT, Failure, ProbeTrouble, not_permitted
from crdkeeper.core.diagnosis.scalefailures import has_wrong_value, lacks_replicas
from crdkeeper.core.diagnosis.subresourcefacts import (
    DeclaredSubresources,
    Flaw,
    ScaleProbe,
    ScaleRead,
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
    _TYPE,
    "True",
    "ScaleRead",
    "The fields are declared, and /scale of an object was read at each version that is not deprecated.",
)
SELECTOR_MISSING = Reason(
    _TYPE,
    "True",
    "SelectorMissing",
    "A scale subresource has no labelSelectorPath: kubectl scale works, but a HorizontalPodAutoscaler does "
    "not.",
    "To allow autoscaling, the author of the CRD can add labelSelectorPath and let the controller write the "
    "pods' selector there.",
)
STATUS_NOT_DECLARED = Reason(
    _TYPE,
    "True",
    "StatusNotDeclared",
    "There is a status subresource, but the schema does not declare status: everything written to it is "
    "pruned.",
    "The author of the CRD can declare status in the schema, or remove the subresource if nothing writes to "
    "it.",
)
REPLICAS_NOT_SET = Reason(
    _TYPE,
    "True",
    "ReplicasNotSet",
    "The fields are declared, but an object does not have the replicas field, which the schema allows: its "
    "/scale cannot be read until the field is set.",
    "To scale that object, set the field in it. The author of the CRD can give the field a default.",
)
CONDITIONS_MALFORMED = Reason(
    _TYPE,
    "True",
    "ConditionsMalformed",
    "The subresources work, but the schema's status.conditions is not a list of objects with the strings "
    "`type` and `status`: kubectl wait and other tools cannot read it.",
    "Report it to the author of the CRD, who can declare status.conditions as metav1.Condition does.",
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
    "The fields are declared, but the API server did not answer, was too busy, could not read the object, or "
    "does not serve the kind.",
    "Nothing: crdkeeper tries again.",
)
PATH_NOT_DECLARED = Reason(
    _TYPE,
    "False",
    "ScalePathNotDeclared",
    "A path of the scale subresource names a field that the schema does not declare, so it is always pruned.",
    "Report it to the author of the CRD, who can add the field to the schema or correct the path.",
)
PATH_WRONG_TYPE = Reason(
    _TYPE,
    "False",
    "ScalePathWrongType",
    "A path of the scale subresource points to a field of the wrong type, so objects with a value "
    "there are refused.",
    "Report it to the author of the CRD, who can make the replicas an integer and the selector a string (a "
    "serialized label selector, no object).",
)
SCALE_FAILS = Reason(
    _TYPE,
    "False",
    "ScaleFails",
    "The /scale of an object cannot be read, though the schema has the fields.",
    "Fix the object: the message names it, and what is wrong with its value.",
    healthy=False,
)
_BY_FLAW = {
    Flaw.PATH_NOT_DECLARED: PATH_NOT_DECLARED,
    Flaw.PATH_WRONG_TYPE: PATH_WRONG_TYPE,
}
"""The reasons for flaws that break a subresource."""


@dataclass(frozen=True, slots=True)
class SubresourceFacts:
    """All facts that SubresourcesReady depends on."""

    definition: DefinitionFacts
    declared: DeclaredSubresources
    probe: ScaleProbe | None
    """None before the first probe, and if there is no version at which /scale is read."""


def judge(facts: SubresourceFacts) -> Verdict:
    """The condition. Errors in the schema come before the state of one object."""
    declared, probe = facts.declared, facts.probe
    broken = next((_BY_FLAW[each.flaw] for each in declared.problems if each.flaw in _BY_FLAW), None)
    if broken is not None:
        return _verdict(broken, _listed(declared.problems))
    if not declared.read:
        return _judge_sound(declared, None)
    if probe is None:
        return _verdict(PENDING, "The paths of /scale are declared; no object's /scale has been read yet.")
    failed = [(each, each.failure) for each in probe.reads if each.failure is not None]
    for read, failure in failed:
        if has_wrong_value(failure):
            return _verdict(SCALE_FAILS, _unread(read, failure))
    # A field that is merely absent is not the object's fault, if the schema does not require it.
    failures = [probe.failure, *(each for _, each in failed if not lacks_replicas(each))]
    failure_ = next((each for each in failures if each is not None), None)
    if failure_ is not None and failure_.trouble is ProbeTrouble.FORBIDDEN:
        return _verdict(NOT_PERMITTED, not_permitted(facts.definition, failure_))
    if failure_ is not None:
        return _verdict(NOT_ASKED, f"{facts.definition.name} could not be read: {essence(failure_.message)}.")
    return _judge_sound(declared, probe)


def _unread(read: ScaleRead, failure: Failure) -> str:
    return f"/scale of {read.example} cannot be read at {read.version}: {essence(failure.message)}."


def _judge_sound(declared: DeclaredSubresources, probe: ScaleProbe | None) -> Verdict:
    """The last that there is to say of the schema gives the reason; all of it is said."""
    reason, said = _judge_reads(declared, probe)
    sentences = [said]
    if declared.statusless:
        # That fields are declared would contradict it.
        sentences = [] if reason is DECLARED else sentences
        reason = STATUS_NOT_DECLARED
        sentences.append(f"The schema has no status at {', '.join(declared.statusless)}.")
    if declared.unselected:
        reason = SELECTOR_MISSING
        sentences.append(f"There is no labelSelectorPath at {', '.join(declared.unselected)}.")
    if declared.problems:
        reason = CONDITIONS_MALFORMED
        sentences.append(_listed(declared.problems))
    return _verdict(reason, " ".join(sentences))


def _judge_reads(declared: DeclaredSubresources, probe: ScaleProbe | None) -> tuple[Reason, str]:
    if not declared.scaled and not declared.status:
        return NONE_DECLARED, "No served version has a subresource."
    declares = "The fields of the subresources are declared in the right types."
    if probe is None:
        return DECLARED, declares
    for read in probe.reads:
        if read.failure is not None:
            return REPLICAS_NOT_SET, _unread(read, read.failure)
    if probe.reads:
        versions = ", ".join(each.version for each in probe.reads)
        return READ, f"/scale of {probe.reads[0].example} was read at {versions}."
    return DECLARED, f"{declares} There is no object whose /scale could be read."


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
        REPLICAS_NOT_SET,
        CONDITIONS_MALFORMED,
        PENDING,
        NOT_PERMITTED,
        NOT_ASKED,
        PATH_NOT_DECLARED,
        PATH_WRONG_TYPE,
        SCALE_FAILS,
    ),
    assessed=True,
    fact="scale",
)
