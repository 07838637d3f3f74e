"""The one step of a retirement that is due, what holds it, and the condition Ready that follows.

A step that somebody has taken back is not repeated before the retirement's spec changes: whoever keeps the
CRD elsewhere would put it back again, without end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crdkeeper.api.meta import find_condition
from crdkeeper.api.versionretirement import (
    DEPRECATED,
    MIGRATED,
    NOT_SERVED,
    REMOVED,
    STEPS,
    UNUSED,
    RevertedStep,
    Step,
    VersionRetirement,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.retirement.changes import version_managers
from crdkeeper.core.retirement.evidence import Obstacle
from crdkeeper.core.retirement.facts import RATIO, RECOUNT, RetirementFacts, State, TakenEvidence
from crdkeeper.core.retirement.holds import MADE_ELSEWHERE
from crdkeeper.core.retirement.migrations import at_work, wanted_name
from crdkeeper.core.retirement.owners import reminder
from crdkeeper.core.retirement.progress import counting, never_there, progress
from crdkeeper.core.text import visible

_FRESH = timedelta(minutes=5)
"""How long ago evidence may be complete on which a version stops being served, or is removed."""
_RETRY = timedelta(minutes=1)
"""How long after a count that was not complete objects are counted again; as long as it took, at least."""
_MANAGERS_SHOWN = 5
_PASSING = frozenset(("DefinitionNotFound", "QuietPeriod", "Migrating", "MigrationFailing"))
"""Reasons with which Ready is False although nobody needs to do anything yet."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to report, and what to do."""

    steps: Mapping[str, State]
    ready: State
    due: Step | None = None
    """The step whose change is due; None if there is nothing to change now."""
    act: bool = False
    """Whether to make that change."""
    count: bool = False
    """Whether to gather evidence again before anything else."""
    holds: tuple[Obstacle, ...] = ()
    """What holds steps that are not done."""
    quiet_since: datetime | None = None
    quiet_until: datetime | None = None
    settled_at: datetime | None = None
    """When the last writes at the version have ended; None if that is not waited for."""
    recount_time: datetime | None = None
    """When objects are counted again, if a change of the CRD has made the count worthless."""
    reverted: RevertedStep | None = None

    @property
    def stalled(self) -> bool:
        """Whether only a person can help."""
        return self.ready.status == "False" and self.ready.reason not in _PASSING


def decide(owner: VersionRetirement, facts: RetirementFacts) -> Decision:
    """The decision from all that was gathered."""
    definition, resource = facts.definition, owner.spec.resource
    if definition is None:
        state = State("False", "DefinitionNotFound", f"There is no CustomResourceDefinition {resource}.")
        return Decision(_all(state), state)
    if definition.terminating:
        state = State("Unknown", "DefinitionTerminating", f"{resource} is being deleted.")
        return Decision(_all(state), state)
    if owner.status.definition_uid not in ("", definition.uid):
        owner = _forgetful(owner)
    absent = never_there(owner, definition)
    if absent is not None:
        return Decision(_all(absent), absent)
    found = progress(owner, facts, definition)
    steps, quiet_since = found.steps, found.quiet_since
    reverted = _reverted(owner, facts, steps)
    if reverted is not None and reverted is not owner.status.reverted and not steps[NOT_SERVED].done:
        quiet_since = facts.now if steps[DEPRECATED].done else None
    first = next((each for each in STEPS if not steps[each].done), None)
    decision = Decision(
        steps,
        steps[REMOVED],
        count=_needs_count(facts, steps, first),
        quiet_since=quiet_since,
        quiet_until=found.quiet_until,
        settled_at=found.settled_at,
        recount_time=facts.recount_time if first is not None else None,
        reverted=reverted,
    )
    if first is None:
        return decision
    holds = (*_own_holds(owner, definition), *facts.holds)
    return _concluded(replace(decision, holds=holds), owner, facts, definition, first)


def unmade(decision: Decision, why: State) -> Decision:
    """The decision if its change could not be made."""
    return replace(decision, ready=why, act=False)


def _all(state: State) -> Mapping[str, State]:
    return dict.fromkeys(STEPS, replace(state, status="Unknown"))


def _forgetful(owner: VersionRetirement) -> VersionRetirement:
    """The retirement without what it knew of another CRD of that name."""
    empty = type(owner.status)(observed_generation=owner.status.observed_generation)
    forgetful: VersionRetirement = owner.model_copy(update={"status": empty})
    return forgetful


def _reverted(
    owner: VersionRetirement, facts: RetirementFacts, steps: Mapping[str, State]
) -> RevertedStep | None:
    known, generation = owner.status.reverted, owner.metadata.generation
    if known is not None and known.generation == generation and not steps[known.step].done:
        return known
    lost: Sequence[Step] = [
        each for each in (REMOVED, NOT_SERVED, DEPRECATED) if not steps[each].done and _was_done(owner, each)
    ]
    if not lost or facts.crd is None:
        return None
    managers = ", ".join(map(visible, version_managers(facts.crd)[:_MANAGERS_SHOWN]))
    return RevertedStep(step=lost[0], generation=generation, managers=managers, time=facts.now)


def _was_done(owner: VersionRetirement, step: str) -> bool:
    before = find_condition(owner.status.conditions, step)
    return before is not None and before.status == "True"


def _own_holds(owner: VersionRetirement, definition: DefinitionFacts) -> Sequence[Obstacle]:
    version, name = owner.spec.version, definition.name
    held: list[Obstacle] = []
    if definition.served_versions == (version,):
        # Whoever is warned has nothing to go to.
        said = f"{version} is the only served version of {name}. Serve another one."
        held.append(Obstacle(DEPRECATED, "LastServedVersion", name, said))
    if version == definition.storage_version:
        # Clients may go to another version before objects are stored at it.
        said = f"{version} is the storage version of {name}. Set storage: true for another version."
        held.append(Obstacle(NOT_SERVED, "StorageVersion", name, said))
    return held


def _needs_count(facts: RetirementFacts, steps: Mapping[str, State], first: Step | None) -> bool:
    if first is None:
        return False
    taken = facts.current
    if taken is None:
        return facts.recount_time is None or facts.now >= facts.recount_time
    if not taken.evidence.complete:
        return _age(facts, taken) > max(_RETRY, taken.took)
    if steps[first].reason == "Counting":
        return True
    if first == MIGRATED and _waits_for(facts):
        return False  # the end of the migration has objects counted again
    return _age(facts, taken) > max(RECOUNT, RATIO * taken.took)


def _age(facts: RetirementFacts, taken: TakenEvidence) -> timedelta:
    """How long ago the evidence was complete: however long that takes, there must be time to use it."""
    return facts.now - taken.taken - taken.took


def _stale(facts: RetirementFacts, step: Step) -> bool:
    """Whether the evidence is too old for a step after which clients, or objects, may fail."""
    taken = facts.current
    return taken is not None and step in (NOT_SERVED, REMOVED) and _age(facts, taken) > _FRESH


def _concluded(
    decision: Decision,
    owner: VersionRetirement,
    facts: RetirementFacts,
    definition: DefinitionFacts,
    first: Step,
) -> Decision:
    """The decision with Ready, the change that is due, and whether to make it; `first` is not done yet."""
    state, mode, reverted = decision.steps[first], owner.spec.mode, decision.reverted
    said = described(owner, definition, first, state)
    held = [each for each in decision.holds if holds_up(each, first)]
    waits = first == UNUSED or (first == MIGRATED and (_waits_for(facts) or state.reason in _NOT_TO_MIGRATE))
    due: Step | None = None if held or waits else first
    act = False
    if mode == "Plan" and facts.current is None:
        ready = counting(facts)
    elif mode == "Plan":
        ready = State("True", "PlanOnly", f"{said} Nothing is changed, because mode is Plan.")
    elif owner.spec.suspend:
        ready = State("Unknown", "Suspended", f"{said} The retirement is suspended.")
    elif reverted is not None:
        ready = _taken_back(owner, reverted)
    elif held and first != UNUSED:
        more = f" (and {len(held) - 1} more: see status.holds)" if len(held) > 1 else ""
        ready = State("False", held[0].reason, f"{first} is held: {held[0].message}{more}")
    elif waits:
        ready = replace(state, status="False") if state.reason == "NotKnown" else state
    elif mode == "Guide":
        told = reminder(facts.crd) if facts.crd is not None and first != MIGRATED else ""
        ready = State("False", "ChangeDue", f"{said} {told}".rstrip())
    elif first == MIGRATED and wanted_name(owner, definition, facts.migrations) is None:
        in_vain = "Migrations have succeeded, but somebody writes it again."
        ready = State("False", "MigratedInVain", f"{state.message} {in_vain}")
    elif first != MIGRATED and facts.missing:
        ready = State("False", "NotPermitted", not_permitted(definition.name, facts))
    else:
        ready = State("Unknown", _DOING[first], said)
        decision = replace(decision, count=decision.count or _stale(facts, first))
        act = not decision.count and facts.current is not None
    return replace(decision, ready=ready, due=due, act=act)


def holds_up(hold: Obstacle, step: Step) -> bool:
    """Whether a step, or one before it, is held: whoever makes the CRD does not migrate its objects."""
    if step == MIGRATED and hold.reason == MADE_ELSEWHERE:
        return False
    return STEPS.index(hold.step) <= STEPS.index(step)


def _waits_for(facts: RetirementFacts) -> bool:
    return at_work(facts.migrations) is not None


def _taken_back(owner: VersionRetirement, reverted: RevertedStep) -> State:
    by = f" Managers of spec.versions, the latest first: {reverted.managers}." if reverted.managers else ""
    again = (
        "It is not repeated until the retirement's spec changes: change the CRD where it comes from, then "
        "set spec.suspend to true and to false again."
    )
    if not owner.metadata.uid:  # a command's, which has no object in the cluster
        again = "Change the CRD where it comes from, then run `crdkeeper retire` again."
    return State("False", "Reverted", f"Somebody has taken back {reverted.step}.{by} {again}")


_NOT_TO_MIGRATE = frozenset(("MigrationFailed", "NotKnown", "Counting", "Settling"))
_DOING: Mapping[Step, str] = {
    DEPRECATED: "Deprecating",
    NOT_SERVED: "StoppingToServe",
    MIGRATED: "StartingMigration",
    REMOVED: "Removing",
}


def described(owner: VersionRetirement, definition: DefinitionFacts, step: str, state: State) -> str:
    """The change by which that step is taken, as one or two sentences."""
    version, name = owner.spec.version, definition.name
    if step == DEPRECATED:
        return f"Set deprecated: true for {version} in spec.versions of {name}."
    if step == NOT_SERVED:
        return f"Set served: false for {version} in spec.versions of {name}."
    if step == REMOVED:
        return f"Remove {version} from spec.versions of {name}."
    if step == MIGRATED:
        return (
            f"{state.message} Run `crdkeeper migrate {name} --managed-fields retarget --verify full`, or "
            "create the StorageMigration whose manifest is given."
        )
    return state.message


def not_permitted(name: str, facts: RetirementFacts) -> str:
    """Which rights the operator lacks to take all steps, and how to grant them."""
    return (
        f"The operator is not allowed to retire versions of {name}. "
        f"Not permitted: {'; '.join(facts.missing)}. "
        'Grant it by a ClusterRole that has the label rbac.crdkeeper.dev/aggregate-to-retirer: "true"; '
        f"manifests/samples/retirer-role.yaml is one to start from. What is missing: {facts.rules}."
    )
