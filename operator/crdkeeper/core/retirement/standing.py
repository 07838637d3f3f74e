"""The status of a VersionRetirement: its steps as conditions, Ready, and bounded lists of the evidence."""

from dataclasses import dataclass
from datetime import datetime

from crdkeeper.api.meta import READY, set_condition, summarize
from crdkeeper.api.texts import bounded
from crdkeeper.api.versionretirement import (
    REMOVED,
    SHOWN,
    STEPS,
    RetirementHold,
    VersionEvidence,
    VersionOwner,
    VersionReader,
    VersionRetirement,
    VersionWriter,
)
from crdkeeper.core.retirement.due import due_change
from crdkeeper.core.retirement.evidence import Evidence
from crdkeeper.core.retirement.facts import RetirementFacts, State
from crdkeeper.core.retirement.migrations import at_work
from crdkeeper.core.retirement.quiet import counting
from crdkeeper.core.retirement.steps import Decision


@dataclass(frozen=True, slots=True)
class Announced:
    """A change of a condition that an Event tells."""

    state: State
    warning: bool


def report(owner: VersionRetirement, facts: RetirementFacts, decision: Decision) -> list[Announced]:
    """Put the decision into the status of `owner`. Returns what deserves an Event."""
    status, generation, now = owner.status, owner.metadata.generation, facts.now
    news: list[Announced] = []
    for step in STEPS:
        state = decision.steps[step]
        changed = _put(owner, step, state, now) and state.done and not decision.steps[REMOVED].done
        # A version that is not served is unused for the same reason.
        if changed and all(state.reason != each.state.reason for each in news):
            news.append(Announced(state, warning=False))
    told = _put(owner, READY, decision.ready, now)
    if told and decision.ready.status != "Unknown":
        news.append(Announced(decision.ready, warning=decision.stalled))
    summarize(status.conditions, stalled=decision.stalled, now=now)
    status.observed_generation = generation
    definition = facts.definition
    status.definition_uid = definition.uid if definition is not None else ""
    status.quiet_since_time = decision.quiet_since
    status.reverted = decision.reverted
    status.due = None
    if decision.due is not None and facts.crd is not None:
        state = decision.steps[decision.due]
        status.due = due_change(owner, facts.crd, decision.due, state, facts.migrations)
    status.hold_count = len(decision.holds)
    status.holds = [
        RetirementHold(step=each.step, reason=each.reason, name=each.name, message=each.message)
        for each in decision.holds[:SHOWN]
    ]
    running = at_work(facts.migrations)
    status.migration = running.metadata.name if running is not None else ""
    taken = facts.current
    if taken is not None:
        status.evidence = shown(taken.evidence, taken.taken, status.evidence)
    return news


def _put(owner: VersionRetirement, type_: str, state: State, now: datetime) -> bool:
    return set_condition(
        owner.status.conditions,
        type_,
        state.status,
        state.reason,
        bounded(state.message),
        generation=owner.metadata.generation,
        now=now,
    )


def shown(evidence: Evidence, taken: datetime, before: VersionEvidence) -> VersionEvidence:
    """The evidence as status shows it, with the API servers that have answered `before`."""
    readers = _readers(evidence, before)
    return VersionEvidence(
        taken_time=taken,
        complete=evidence.complete,
        failure=evidence.failure,
        counted=evidence.counted,
        objects=evidence.objects,
        newest_time=evidence.newest,
        writers=[
            VersionWriter(
                manager=each.manager,
                operation=each.operation,
                subresource=each.subresource,
                namespace=each.namespace,
                objects=each.objects,
                last_time=each.last,
            )
            for each in evidence.writers[:SHOWN]
        ],
        writer_count=evidence.writer_count,
        readers=readers,
        reader_count=len(readers),
        owners=[
            VersionOwner(tool=each.tool, manager=each.manager, detail=each.detail)
            for each in evidence.owners[:SHOWN]
        ],
        owner_count=len(evidence.owners),
        warnings=list(evidence.warnings[:SHOWN]),
        unknown=list(evidence.unknown[:SHOWN]),
    )


def _readers(evidence: Evidence, before: VersionEvidence) -> list[VersionReader]:
    """The API servers that have answered, the latest first: each look is answered by one of them."""
    now = [
        VersionReader(
            server=each.server, what=each.what, requests=sum(each.counts.values()), since=each.since
        )
        for each in evidence.readers
    ]
    answered = {counting(each) for each in now}
    return [*now, *(each for each in before.readers if counting(each) not in answered)][:SHOWN]
