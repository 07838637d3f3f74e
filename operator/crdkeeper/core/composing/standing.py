"""The conditions of a CompositeResourceDefinition, from what is known of it and of its CRD."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crdkeeper.api.compositeresourcedefinition import (
    CompositeResourceDefinition,
    CompositeResourceDefinitionStatus,
)
from crdkeeper.api.meta import READY, ConditionStatus, set_condition, summarize
from crdkeeper.core.composing.plan import Gathered, Plan, is_controlled
from crdkeeper.core.text import visible

ACCEPTED = "Accepted"
ESTABLISHED = "Established"


@dataclass(frozen=True, slots=True)
class ConditionState:
    """Status, reason and message of a condition."""

    status: ConditionStatus
    reason: str
    message: str


def standing(gathered: Gathered, decided: Plan, now: datetime) -> CompositeResourceDefinitionStatus:
    """The status as it has to be."""
    definition = gathered.definition
    status = definition.status.model_copy(deep=True)
    status.observed_generation = definition.metadata.generation
    if gathered.composites is not None:
        status.composites = gathered.composites
    accepted, established = _accepted(gathered, decided), _established(gathered, decided)
    verdicts = {
        ACCEPTED: accepted,
        ESTABLISHED: established,
        READY: accepted if accepted.status != "True" else established,
    }
    for type_, each in verdicts.items():
        set_condition(
            status.conditions,
            type_,
            each.status,
            each.reason,
            visible(each.message),
            generation=definition.metadata.generation,
            now=now,
        )
    summarize(status.conditions, stalled=accepted.status == "False", now=now)
    return status


def _accepted(gathered: Gathered, decided: Plan) -> ConditionState:
    if decided.refusal is not None and not _is_deleted(gathered.definition):
        return ConditionState("False", decided.refusal.reason, decided.refusal.message)
    warnings = [f"{each.path}: {each.message}" for each in gathered.judged.problems if not each.refused]
    if warnings:
        more = f"; and {len(warnings) - 1:,} more" if len(warnings) > 1 else ""
        return ConditionState("True", "AcceptedWithWarnings", f"{warnings[0]}{more}")
    return ConditionState("True", "Accepted", "The CRD is made of this definition.")


def _established(gathered: Gathered, decided: Plan) -> ConditionState:
    definition, live = gathered.definition, gathered.live
    if _is_deleted(definition):
        message = (
            decided.refusal.message if decided.refusal is not None else "The definition is being deleted."
        )
        return ConditionState("False", "TerminatingCompositeResource", message)
    if live is None or not is_controlled(live, definition.metadata.uid):
        return ConditionState("False", "NoDefinition", "There is no CRD of this definition.")
    for type_ in ("NamesAccepted", "Established"):
        found = _condition(live, type_)
        if found is None:
            return ConditionState(
                "Unknown", "Establishing", "The API server has not said yet whether it serves the API."
            )
        if found.get("status") != "True":
            return ConditionState(
                "False", found.get("reason") or "NotEstablished", str(found.get("message") or "")
            )
    return ConditionState("True", "WatchingCompositeResource", "The API server serves the API.")


def _condition(live: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    conditions = (live.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), None)


def _is_deleted(definition: CompositeResourceDefinition) -> bool:
    return definition.metadata.deletion_timestamp is not None
