"""The conditions of a CompositeResourceDefinition, from what is known of it and of its CRD."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import (
    CompositeResourceDefinition,
    CompositeResourceDefinitionStatus,
)
from crdkeeper.api.meta import READY, find_condition, set_condition, summarize
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.losses import recount
from crdkeeper.core.composer.offering import SeenComposition, offered
from crdkeeper.core.composer.plan import ComposerStep, Gathered, Plan, is_controlled, left, owner_of
from crdkeeper.core.composer.storage import storage_current
from crdkeeper.core.composer.updaterefusal import pending
from crdkeeper.core.diagnosis.nameconflicts import describe
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import count, visible

_BY_NAME: Final = {(each.condition, each.name): each for each in reasons.REASONS}


_BEFORE: Final = frozenset((ComposerStep.ADD_FINALIZER, ComposerStep.UNFENCE))
"""Steps that come before the CRD is applied."""


def standing(gathered: Gathered, decided: Plan, now: datetime) -> CompositeResourceDefinitionStatus:
    """The status as it has to be."""
    definition = gathered.definition
    if decided.step in _BEFORE and decided.refusal is None and not _is_deleted(definition):
        # Whether the CRD becomes as this generation says is not known yet.
        status = definition.status.model_copy(deep=True)
        recount(status, gathered)
        return status
    status = _begun(definition)
    recount(status, gathered)
    accepted, established = _accepted(gathered, decided), _established(gathered, decided)
    ready = accepted if accepted.reason.status != "True" else established
    verdicts = {
        reasons.ACCEPTED: accepted,
        reasons.ESTABLISHED: established,
        reasons.OFFERED: offered(definition, gathered.compositions, gathered.denied),
        reasons.STORAGE_CURRENT: _storage_current(gathered),
        READY: ready,
    }
    _set(status, verdicts, now, stalled=_needs_a_person(ready, decided.refusal))
    return status


def standing_unread(
    definition: CompositeResourceDefinition,
    unread: Verdict,
    compositions: Collection[SeenComposition] | Verdict,
    denied: Verdict | None,
    now: datetime,
) -> CompositeResourceDefinitionStatus:
    """The status while the API server does not return the CRD, or what else the next step depends on.

    What was known before stays, except for what can no longer be said.
    """
    status = _begun(definition)
    verdicts = {
        reasons.ACCEPTED: unread,
        reasons.ESTABLISHED: Verdict(reasons.ESTABLISHED_NOT_READ, unread.message),
        reasons.OFFERED: offered(definition, compositions, denied),
        READY: unread,
    }
    if _is_deleted(definition):
        verdicts[reasons.ESTABLISHED] = verdicts[READY] = Verdict(reasons.TERMINATING, unread.message)
        kept = reasons.ACCEPTED
    else:
        kept = reasons.ESTABLISHED
    if find_condition(status.conditions, kept) is not None:
        del verdicts[kept]
    _set(status, verdicts, now, stalled=_needs_a_person(verdicts[READY], unread))
    return status


def _begun(definition: CompositeResourceDefinition) -> CompositeResourceDefinitionStatus:
    status = definition.status.model_copy(deep=True)
    status.observed_generation = definition.metadata.generation
    return status


def _set(
    status: CompositeResourceDefinitionStatus,
    verdicts: Mapping[str, Verdict],
    now: datetime,
    *,
    stalled: bool,
) -> None:
    for type_, each in verdicts.items():
        set_condition(
            status.conditions,
            type_,
            each.reason.status,
            each.reason.name,
            visible(each.message),
            generation=status.observed_generation,
            now=now,
        )
    summarize(status.conditions, stalled=stalled, now=now)


def _needs_a_person(ready: Verdict, refusal: Verdict | None) -> bool:
    if ready.reason is reasons.TERMINATING:
        # What waits for finalizers, or for the API server, may need nobody.
        return refusal is not None and refusal.reason not in reasons.PASSING
    return ready.reason.status == "False" and ready.reason not in reasons.PASSING


def _accepted(gathered: Gathered, decided: Plan) -> Verdict:
    if _is_deleted(gathered.definition):
        # Nothing is judged or applied any more.
        before = _before(gathered.definition, reasons.ACCEPTED)
        if before is not None and before.reason is not reasons.NOT_READ:
            return before
    elif decided.refusal is not None:
        return _said_while_tried_again(gathered, decided.refusal) or decided.refusal
    elif decided.held and gathered.facts.conversion is not None:
        return pending(decided.held, gathered.facts.conversion)
    owner = owner_of(gathered.live) if gathered.live is not None else ""
    if owner:
        return Verdict(
            reasons.ACCEPTED_WITH_WARNINGS,
            f"{owner} owns the CRD: when that is deleted, the API server deletes the CRD and all composites, "
            "whatever spec.deletion says. Remove metadata.ownerReferences from the CRD.",
        )
    advice = gathered.facts.advice
    if advice.number:
        rest = advice.number - 1
        more = f" And {count(rest, 'more warning')}: `crdkeeper lint` lists them." if rest else ""
        return Verdict(reasons.ACCEPTED_WITH_WARNINGS, f"{advice.first}{more}")
    return Verdict(reasons.ACCEPTED_ALL, reasons.ACCEPTED_ALL.meaning)


def _said_while_tried_again(gathered: Gathered, refusal: Verdict) -> Verdict | None:
    """What Accepted says today, if an update that was allowed before is only tried again on composites."""
    definition = gathered.definition
    rehearsal = gathered.facts.rehearsal
    if refusal.reason is not reasons.REHEARSING or not rehearsal.again or rehearsal.failure is not None:
        return None
    found = find_condition(definition.status.conditions, reasons.ACCEPTED)
    if found is None or found.observed_generation != definition.metadata.generation:
        return None
    before = _before(definition, reasons.ACCEPTED)
    return before if before is not None and before.reason is not reasons.NOT_READ else None


def _storage_current(gathered: Gathered) -> Verdict:
    # Nor migrated.
    definition = gathered.definition
    before = _before(definition, reasons.STORAGE_CURRENT) if _is_deleted(definition) else None
    live, facts = gathered.live, gathered.facts
    ours = live if live is not None and is_controlled(live, definition.metadata.uid) else None
    return before or storage_current(ours, facts.migrations, facts.migration_failure)


def _before(definition: CompositeResourceDefinition, type_: str) -> Verdict | None:
    """What a condition says today; None if it says nothing that this version knows."""
    found = find_condition(definition.status.conditions, type_)
    known = _BY_NAME.get((type_, found.reason)) if found is not None else None
    return Verdict(known, found.message) if found is not None and known is not None else None


def _established(gathered: Gathered, decided: Plan) -> Verdict:
    definition, live = gathered.definition, gathered.live
    if _is_deleted(definition):
        return Verdict(reasons.TERMINATING, _deleted(gathered, decided))
    if live is None or not is_controlled(live, definition.metadata.uid):
        return Verdict(reasons.NO_CRD, reasons.NO_CRD.meaning)
    if "deletionTimestamp" in live["metadata"]:
        message = f"The CRD is being deleted, and all composites with it. {left(gathered)}"
        return Verdict(reasons.TERMINATING, message.strip())
    return _served(gathered, live)


def _deleted(gathered: Gathered, decided: Plan) -> str:
    if decided.refusal is not None:
        return decided.refusal.message
    live = gathered.live
    if live is not None and "deletionTimestamp" in live["metadata"]:
        return f"The CRD is being deleted. {left(gathered)}".strip()
    if gathered.composites and gathered.definition.spec.deletion == "Cascade":
        return f"The composites are being deleted. {left(gathered)}"
    if decided.step in (ComposerStep.FENCE, ComposerStep.SETTLE):
        return (
            "There are no composites. The API takes no new ones, and the CRD is deleted in some seconds, "
            "when no earlier request is under way."
        )
    return "The definition is being deleted."


def _served(gathered: Gathered, live: Mapping[str, Any]) -> Verdict:
    """What the CRD's own conditions say, and whether the composer can see the composites."""
    names, established = (_condition(live, each) for each in ("NamesAccepted", "Established"))
    served = (established or {}).get("status") == "True"
    if names is not None and names.get("status") == "False":
        return _name_taken(gathered, names, served=served)
    if names is None or established is None:
        return Verdict(reasons.ESTABLISHING, reasons.ESTABLISHING.meaning)
    if not served:
        return Verdict(reasons.ESTABLISHING, f"{established.get('reason')}: {established.get('message')}")
    if gathered.hidden is not None:
        return gathered.hidden
    return Verdict(reasons.WATCHING, reasons.WATCHING.meaning)


def _name_taken(gathered: Gathered, names: Mapping[str, Any], *, served: bool) -> Verdict:
    reason: Reason = reasons.NAME_CONFLICTS.get(str(names.get("reason")), reasons.ESTABLISHING)
    holders = "; ".join(map(describe, gathered.conflicts))
    said = holders or f"{names.get('reason')}: {names.get('message')}"
    state = "The API is still served under its former names." if served else "The API is not served."
    return Verdict(reason, f"{said}. {state} {reason.remedy}")


def _condition(live: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    conditions = (live.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), None)


def _is_deleted(definition: CompositeResourceDefinition) -> bool:
    return definition.metadata.deletion_timestamp is not None
