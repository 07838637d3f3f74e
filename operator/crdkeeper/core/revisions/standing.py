"""The status of a Composition, from what its compilation and its revisions show."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from crdkeeper.api.composition import Composition, CompositionStatus
from crdkeeper.api.meta import READY, ConditionStatus, find_condition, set_condition, summarize
from crdkeeper.core.composer.wording import sentences
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions import reasons
from crdkeeper.core.templates.compiled import CompilationResult
from crdkeeper.core.templates.problem import TemplateProblem
from crdkeeper.core.text import visible

_KEPT: Final = "Older ones that no composite uses cannot be deleted:"


@dataclass(frozen=True, slots=True)
class CompositionFacts:
    """What is known of a Composition."""

    valid: Verdict
    revision: str
    """The name of the newest CompositionRevision; empty if there is none."""
    number: int
    failure: str = ""
    """Why the revision that it needs cannot be created."""
    passing: bool = False
    """Whether that may succeed without anybody's help."""
    kept: str = ""
    """Why older revisions that nobody needs cannot be deleted."""


def judged(result: CompilationResult, missing: Collection[tuple[str, str]]) -> Verdict:
    """The condition Valid of a Composition that was compiled; `missing` are kinds that are not served."""
    if result.problems:
        said = [_sentence(each) for each in result.problems]
        return Verdict(reasons.INVALID, sentences(said, "error"))
    if missing:
        said = [f"{kind} of {api_version} is not served." for api_version, kind in sorted(missing)]
        return Verdict(reasons.KIND_MISSING, f"{sentences(said, 'kind')} {reasons.KIND_MISSING.remedy}")
    return Verdict(reasons.VALID_ALL, reasons.VALID_ALL.meaning)


def standing(composition: Composition, facts: CompositionFacts, now: datetime) -> CompositionStatus:
    """The status as it has to be."""
    status = composition.status.model_copy(deep=True)
    status.observed_generation = composition.metadata.generation
    # Whatever somebody deletes, the number stays: no other content gets it, and composites that ran by the
    # last one take only a newer one.
    status.revision = max(facts.number, status.revision)
    ready, reason = _ready(facts)
    for type_, outcome, each in (
        (reasons.VALID, facts.valid.reason.status, facts.valid),
        (READY, ready, reason),
    ):
        set_condition(
            status.conditions,
            type_,
            outcome,
            each.reason.name,
            visible(each.message),
            generation=status.observed_generation,
            now=now,
        )
    passing = facts.passing if reason.reason is reasons.REVISION_FAILED else reason.reason in reasons.PASSING
    stalled = ready == "False" and not passing
    summarize(status.conditions, stalled=stalled, now=now)
    return status


def kept_before(composition: Composition) -> str:
    """What the status says of why revisions cannot be deleted; empty if it does not say so."""
    ready = find_condition(composition.status.conditions, READY)
    if ready is None or ready.reason != reasons.REVISIONS_KEPT.name:
        return ""
    return ready.message.partition(f"{_KEPT} ")[2]


def _ready(facts: CompositionFacts) -> tuple[ConditionStatus, Verdict]:
    valid = facts.valid
    if valid.reason.status == "Unknown":
        return "Unknown", valid
    if valid.reason is not reasons.VALID_ALL:
        return "False", valid
    if facts.failure:
        return "False", Verdict(reasons.REVISION_FAILED, facts.failure)
    said = f"CompositionRevision {facts.revision} has the content of the Composition."
    if facts.kept:
        message = f"{said} {_KEPT} {facts.kept}"
        return "True", Verdict(reasons.REVISIONS_KEPT, message)
    return "True", Verdict(reasons.CURRENT, said)


def _sentence(problem: TemplateProblem) -> str:
    return f"{problem}. {problem.hint}".strip()
