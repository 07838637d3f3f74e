"""The status of a composite: its objects, whether each is ready, and the conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from crdkeeper.api.composite import ComposedResource, CompositeState
from crdkeeper.api.meta import (
    READY,
    RECONCILING,
    STALLED,
    Condition,
    find_condition,
    set_condition,
    summarize,
)
from crdkeeper.api.texts import bounded
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.kstatus import health
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.composites.plan import CompositePlan, FoundObjects
from crdkeeper.core.composition.injected import STATUS_FIELDS
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.rendered import (
    ObjectReadiness,
    ReadinessState,
    RenderedResource,
    Rendering,
    ResourceState,
)
from crdkeeper.core.templates.statusgap import StatusGap, StatusGapKind
from crdkeeper.core.text import count, visible

_OURS: Final = (reasons.SYNCED, READY, reasons.RESPONSIVE, RECONCILING, STALLED)
_SHOWN: Final = 3
_MESSAGE_BYTES: Final = 300
"""Of one object: the status has to fit into etcd with a thousand of them."""
_WAITS: Final = {ResourceState.WAITING: "waits for ", ResourceState.PENDING: "includeWhen waits for "}


@dataclass(frozen=True, slots=True)
class PassOutcome:
    """What is known of a composite at the end of a pass."""

    revision: str = ""
    """The name of the revision by which the objects are; empty if there is none."""
    plan: CompositePlan | None = None
    """The last one; None if nothing could be planned."""
    found: FoundObjects = field(default_factory=FoundObjects)
    rendering: Rendering | None = None
    """None in a deletion, or if nothing could be rendered."""
    fields: Mapping[str, Any] | None = None
    """The mapped fields of the status; None leaves those that there are."""
    gaps: Sequence[StatusGap] = ()
    """The mapped fields that have no value, or one that the API server would refuse."""
    obstacle: Verdict | None = None
    """Why nothing could be planned or done."""
    flapping: Verdict | None = None
    """What has to be written again and again."""


def status_of(
    value: Mapping[str, Any], composite: Composite, outcome: PassOutcome, manager: str, now: datetime
) -> dict[str, Any]:
    """The status as it has to be applied: without the fields that others have set."""
    live = value.get("status")
    before = live if isinstance(live, Mapping) else {}
    fields = outcome.fields if outcome.fields is not None else _own_fields(value, before, manager)
    state, resources = _state(before, outcome)
    synced = _synced(composite, outcome)
    ready = _ready(composite, outcome, synced, resources)
    conditions = _conditions(before, composite, (synced, ready), outcome.flapping, now)
    return {
        **{name: each for name, each in fields.items() if name not in STATUS_FIELDS},
        "observedGeneration": composite.generation,
        "conditions": [each.to_object() for each in conditions],
        "crdkeeper": state,
    }


def with_inventory(
    value: Mapping[str, Any], composite: Composite, outcome: PassOutcome, manager: str, now: datetime
) -> dict[str, Any] | None:
    """The status with what is about to be applied; None if it lists all of that already.

    It names another revision only with conditions that are about that one: whoever waits until a composite
    is ready by a revision must not be told so by what was true of the one before.
    """
    live = value.get("status")
    before = live if isinstance(live, Mapping) else {}
    given = before.get("crdkeeper")
    known = given if isinstance(given, Mapping) else {}
    listed = {_key(each) for each in known.get("resources") or () if isinstance(each, Mapping)}
    state, _ = _state(before, outcome)
    if listed >= {_key(each) for each in state["resources"]}:
        return None
    if known.get("revision") != outcome.revision:
        return status_of(value, composite, outcome, manager, now)
    ours = {name: before[name] for name in ("observedGeneration",) if name in before}
    if conditions := _own_conditions(value):
        ours["conditions"] = conditions
    return {**_own_fields(value, before, manager), **ours, "crdkeeper": state}


def _key(listed: Mapping[str, Any]) -> object:
    at = listed.get("object")
    of = at if isinstance(at, Mapping) else {}
    return listed.get("name"), *(of.get(each) for each in ("apiVersion", "kind", "namespace", "name"))


def changes(status: Mapping[str, Any], value: Mapping[str, Any], manager: str) -> bool:
    """Whether applying this status would change that of the composite, or give up a field of it."""
    live = {**(value.get("status") or {}), "conditions": _own_conditions(value)}
    if any(live.get(name) != each for name, each in status.items()):
        return True
    return any(key.startswith("f:") and key[2:] not in status for key in _owned(value, manager))


def conditions_of(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions in the status, as far as they are objects."""
    conditions = (value.get("status") or {}).get("conditions") or ()
    return [each for each in conditions if isinstance(each, Mapping)]


def _own_conditions(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those of our types, in our order: others may have theirs in the list."""
    own = [each for each in conditions_of(value) if each.get("type") in _OURS]
    return sorted(own, key=lambda each: _OURS.index(each["type"]))


def _owned(value: Mapping[str, Any], manager: str) -> Mapping[str, Any]:
    """The fields of the status that were applied by the composer, as managedFields have them."""
    for each in value["metadata"].get("managedFields") or ():
        if each.get("manager") == manager and each.get("subresource") == "status":
            return (each.get("fieldsV1") or {}).get("f:status") or {}
    return {}


def _own_fields(value: Mapping[str, Any], before: Mapping[str, Any], manager: str) -> dict[str, Any]:
    """The mapped fields that were applied by the composer."""
    owned = _owned(value, manager)
    return {name: part for name, part in before.items() if f"f:{name}" in owned and name not in STATUS_FIELDS}


def _state(
    before: Mapping[str, Any], outcome: PassOutcome
) -> tuple[dict[str, Any], Sequence[ComposedResource]]:
    if outcome.plan is None:
        given = before.get("crdkeeper")
        return (dict(given) if isinstance(given, Mapping) else {}), ()
    readiness = readiness_of(outcome.rendering)
    entries = outcome.plan.inventory
    resources = [_resource(each, outcome.found, readiness, outcome.plan) for each in entries]
    state = CompositeState(revision=outcome.revision or None, resources=resources)
    return state.to_object(), resources


def readiness_of(rendering: Rendering | None) -> dict[Identity, ObjectReadiness]:
    """What readyWhen says of objects, as far as it is set."""
    resources: Sequence[RenderedResource] = rendering.resources if rendering is not None else ()
    return {
        each.identity: each.readiness
        for resource in resources
        for each in resource.objects
        if each.readiness is not None
    }


def _resource(
    entry: Entry, found: FoundObjects, readiness: Mapping[Identity, ObjectReadiness], plan: CompositePlan
) -> ComposedResource:
    live = found.objects.get(entry.identity)
    uid = live["metadata"]["uid"] if live is not None else None
    why = why_not_ready(entry, live, readiness, plan)
    return entry.to_status(uid=uid, ready=not why, message=bounded(visible(why), _MESSAGE_BYTES) or None)


def why_not_ready(
    entry: Entry,
    live: Mapping[str, Any] | None,
    readiness: Mapping[Identity, ObjectReadiness],
    plan: CompositePlan,
) -> str:
    """Why an object is not ready; empty if it is."""
    if live is not None and "deletionTimestamp" in live["metadata"]:
        return _in_deletion(live)
    if entry.identity in plan.held:
        return plan.held[entry.identity]
    if live is None:
        problem = plan.problems.get(entry.resource)
        if problem is None and entry.identity in plan.unserved:
            return "its kind is not served: if it is again, what is left of it is deleted"
        return problem.message if problem is not None else "it does not exist yet"
    judged = readiness.get(entry.identity)
    if judged is not None:
        return "" if judged.state is ReadinessState.READY else judged.why
    return health(live).why


def _in_deletion(live: Mapping[str, Any]) -> str:
    metadata = live["metadata"]
    finalizers = ", ".join(metadata.get("finalizers") or ())
    waits = f", and waits for its finalizers: {finalizers}" if finalizers else ""
    return f"it is being deleted since {metadata['deletionTimestamp']}{waits}"


def _synced(composite: Composite, outcome: PassOutcome) -> Verdict:
    if composite.paused:
        return Verdict(reasons.PAUSED, f"{reasons.PAUSED.meaning} {reasons.PAUSED.remedy}")
    if outcome.obstacle is not None:
        return outcome.obstacle
    problems = outcome.plan.problems if outcome.plan is not None else {}
    if not problems and outcome.plan is not None and (outcome.plan.applies or outcome.plan.removals):
        return Verdict(reasons.IN_PROGRESS, reasons.IN_PROGRESS.meaning)
    if not problems:
        leaving = outcome.plan.leaving if outcome.plan is not None else ()
        more = f" {_left(leaving, outcome.found)}" if leaving and not composite.deleting else ""
        failed = _gaps(outcome, StatusGapKind.FAILED)
        if failed:
            return Verdict(reasons.STATUS_FAILED, f"{failed}{more}")
        waits = _gaps(outcome, StatusGapKind.NOT_YET)
        more += f" Not yet in the status: {waits}" if waits else ""
        return Verdict(reasons.RECONCILED, f"{reasons.RECONCILED.meaning}{more}")
    # What only a person can change comes first.
    name = min(problems, key=lambda each: (problems[each].reason in reasons.PASSING, each))
    verdict = problems[name]
    others = len(problems) - 1
    more = (
        f" {count(others, 'other resource')} also {'has' if others == 1 else 'have'} problems."
        if others
        else ""
    )
    said = (
        verdict.message
        if not name or verdict.message.startswith(f"{name}:")
        else f"{name}: {verdict.message}"
    )
    return Verdict(verdict.reason, f"{said}{more}")


def _gaps(outcome: PassOutcome, kind: StatusGapKind) -> str:
    """The mapped fields of the status that have no value, and why; empty if there are none."""
    said = [
        f"{str(each.path).removeprefix('spec.')}: {each.text}" for each in outcome.gaps if each.kind is kind
    ]
    return _sentences(said) if said else ""


def _ready(
    composite: Composite, outcome: PassOutcome, synced: Verdict, resources: Sequence[ComposedResource]
) -> Verdict:
    if composite.deleting:
        if outcome.plan is None or synced.reason is not reasons.RECONCILED:
            return Verdict(reasons.DELETING, synced.message)
        return Verdict(
            reasons.DELETING, _left(outcome.plan.leaving, outcome.found) or "All objects are gone."
        )
    if synced.reason is not reasons.RECONCILED:
        return Verdict(reasons.NOT_SYNCED, synced.message)
    pending = list(_pending(outcome, resources))
    if not pending:
        return Verdict(reasons.AVAILABLE, reasons.AVAILABLE.meaning)
    return Verdict(reasons.CREATING, _sentences(pending))


def _pending(outcome: PassOutcome, resources: Sequence[ComposedResource]) -> list[str]:
    """What is not ready, in the order of the waves."""
    plan = outcome.plan if outcome.plan is not None else CompositePlan()
    gone = plan.unserved.union(each.identity for each in plan.leaving)
    said = [
        f"{each.name}: {_named(each)}"
        for entry, each in zip(plan.inventory, resources, strict=True)
        if not each.ready and entry.identity not in gone
    ]
    for each in outcome.rendering.resources if outcome.rendering is not None else ():
        if each.state in _WAITS:
            said.append(f"{each.name}: {_WAITS[each.state]}{each.why}")
        elif each.state is ResourceState.READ and each.unready is not None:
            said.append(f"{each.name}: {each.unready}")
    return said


def _named(resource: ComposedResource) -> str:
    """Why it is not ready, with the object, which readyWhen names itself."""
    at = resource.object
    name = f"{at.kind} {at.namespace}/{at.name}" if at.namespace else f"{at.kind} {at.name}"
    message = resource.message or ""
    return message if name in message else f"{name}: {message}"


def _left(leaving: Sequence[Entry], found: FoundObjects) -> str:
    """Which objects have to go, and what they wait for; empty if there are none."""
    if not leaving:
        return ""
    last = max(each.wave for each in leaving)
    said = []
    for each in (each for each in leaving if each.wave == last):
        live = found.objects[each.identity]
        going = "deletionTimestamp" in live["metadata"]
        said.append(f"{each.identity}: {_in_deletion(live) if going else 'it is to be deleted'}")
    return f"{count(len(leaving), 'object')} to remove. {_sentences(said)}"


def _sentences(said: Sequence[str]) -> str:
    more = f" And {len(said) - _SHOWN:,} more." if len(said) > _SHOWN else ""
    return "; ".join(each.rstrip(".") for each in said[:_SHOWN]) + f".{more}"


def _conditions(
    before: Mapping[str, Any],
    composite: Composite,
    verdicts: tuple[Verdict, Verdict],
    flapping: Verdict | None,
    now: datetime,
) -> list[Condition]:
    conditions = _known(before.get("conditions"))
    synced = verdicts[0]
    said = [*verdicts]
    if flapping is not None:
        said.append(flapping)
    elif find_condition(conditions, reasons.RESPONSIVE) is not None:
        said.append(Verdict(reasons.QUIET, reasons.QUIET.meaning))
    for verdict in said:
        set_condition(
            conditions,
            verdict.reason.condition,
            verdict.reason.status,
            verdict.reason.name,
            visible(verdict.message),
            generation=composite.generation,
            now=now,
        )
    stalled = synced.reason is not reasons.RECONCILED and synced.reason not in reasons.PASSING
    summarize(conditions, stalled=stalled, now=now)
    return sorted(conditions, key=lambda each: _OURS.index(each.type))


def _known(listed: Any) -> list[Condition]:
    found = []
    for each in listed if isinstance(listed, list) else ():
        try:
            read = Condition.model_validate(each)
        except ValueError:
            continue
        if read.type in _OURS:
            found.append(read)
    return found
