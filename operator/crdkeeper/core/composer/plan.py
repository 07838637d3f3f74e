"""The next step for a CompositeResourceDefinition: apply the CRD, leave it as it is, or give it up.

Pure: the controller gathers `Gathered`, carries out the `Plan`, and looks again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import GROUP
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.fence import is_fenced, is_partly_fenced, takes_composites
from crdkeeper.core.composer.holding import Waiting, holds_crd, waits
from crdkeeper.core.composer.offering import SeenComposition
from crdkeeper.core.composer.update import UpdateFacts
from crdkeeper.core.composer.updaterefusal import held_versions, refused, still_stored
from crdkeeper.core.composer.wording import sentences
from crdkeeper.core.composition.acceptance import Acceptance
from crdkeeper.core.composition.definition import OWNER
from crdkeeper.core.diagnosis.nameconflicts import NameConflict
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.text import count

FINALIZER: Final = f"{GROUP}/composites"
ADOPT: Final = f"{GROUP}/adopt"
"""The annotation of a definition that takes over a CRD which exists."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is known of a definition."""

    definition: CompositeResourceDefinition
    judged: Acceptance
    live: Mapping[str, Any] | None
    """The CRD of its name."""
    composites: int | None
    """How many there are; None if that cannot be said."""
    settled: bool = False
    """Whether the CRD's fence had stood long enough before they were counted."""
    first: tuple[str, ...] = ()
    """The first of them, as namespace/name."""
    hidden: Verdict | None = None
    """Why they cannot be counted or watched; never None if there is no count."""
    waiting: Waiting = field(default_factory=Waiting)
    """Those that are being deleted and wait for their finalizers."""
    conflicts: tuple[NameConflict, ...] = ()
    """The names of the CRD that belong to others."""
    compositions: tuple[SeenComposition, ...] | Verdict = ()
    """All Compositions, or why they cannot be listed."""
    denied: Verdict | None = None
    """Which rights the composer lacks to compose the composites."""
    facts: UpdateFacts = field(default_factory=UpdateFacts)
    """What applying the CRD would do, and what has to be done around it."""


class ComposerStep(Enum):
    """What to do next."""

    ADD_FINALIZER = "add the finalizer"
    APPLY = "apply the CRD"
    NOTHING = "leave the CRD as it is"
    CLAIM_CRD = "claim the CRD"
    """Never planned: it comes before what a deletion does next, and holds up nothing."""
    TRY_DELETION = "delete the CRD, as a dry run shows"
    """Never planned: it comes before the first thing that would be lost if nobody may delete the CRD."""
    DELETE_COMPOSITES = "delete the composites"
    FENCE = "let the API refuse new composites"
    SETTLE = "wait until no request from before that is under way"
    UNFENCE = "let the API take composites again"
    DELETE_CRD = "delete the CRD"
    RELEASE_CRD = "leave the CRD to nobody"
    REMOVE_FINALIZER = "remove the finalizer"


@dataclass(frozen=True, slots=True)
class Plan:
    """The next step."""

    step: ComposerStep
    refusal: Verdict | None = None
    """Why it is no other step; of a deletion, what a person has to do."""
    held: tuple[str, ...] = ()
    """Versions that are applied, but not served yet."""


def plan(gathered: Gathered) -> Plan:
    """The next step."""
    metadata = gathered.definition.metadata
    if metadata.deletion_timestamp is not None:
        return _deletion(gathered)
    refusal, held = _refusal(gathered), FINALIZER in metadata.finalizers
    made = gathered.judged.crd
    if gathered.live is not None and may_open(gathered.live) and not (made and is_partly_fenced(made)):
        # Of a deletion that has ended: of another definition of this name, or of one in a backup.
        return Plan(ComposerStep.UNFENCE, refusal)
    if refusal is not None:
        # A definition that lost its finalizer would leave its CRD behind, whatever spec.deletion says.
        lost = not held and gathered.live is not None and is_controlled(gathered.live, metadata.uid)
        return Plan(ComposerStep.ADD_FINALIZER if lost else ComposerStep.NOTHING, refusal)
    if not held:
        # Before the CRD exists, whose deletion the finalizer waits for.
        return Plan(ComposerStep.ADD_FINALIZER)
    return Plan(ComposerStep.APPLY, held=held_versions(gathered.definition, gathered.live, gathered.facts))


def takes(definition: CompositeResourceDefinition, live: Mapping[str, Any]) -> bool:
    """Whether the definition may replace a CRD.

    A CRD with an owner is not adopted: garbage collection deletes it, and all of its objects, with the owner.
    """
    adopts = definition.metadata.annotations.get(ADOPT) == "true" and not owner_of(live)
    return adopts or is_controlled(live, definition.metadata.uid)


def owner_of(live: Mapping[str, Any]) -> str:
    """The kind and name of an object with which garbage collection deletes a CRD; empty if there is none."""
    owners = (live.get("metadata") or {}).get("ownerReferences") or ()
    return next((bounded(f"{each['kind']} {each['name']}", LINE_BYTES) for each in owners), "")


def is_controlled(live: Mapping[str, Any], uid: str | None) -> bool:
    """Whether a CRD belongs to the definition of that uid."""
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    return uid is not None and annotations.get(OWNER) == uid


def may_open(live: Mapping[str, Any]) -> bool:
    """Whether an API refuses new composites, and the composer can let it take them again.

    It may not write a CRD without the annotation of a definition. One in deletion takes none anyway.
    """
    metadata = live["metadata"]
    made = OWNER in (metadata.get("annotations") or {})
    return made and "deletionTimestamp" not in metadata and is_partly_fenced(live)


def _deletion(gathered: Gathered) -> Plan:
    definition, live = gathered.definition, gathered.live
    held = FINALIZER in definition.metadata.finalizers
    ours = live is not None and is_controlled(live, definition.metadata.uid)
    if not held:
        # A person has removed the finalizer, and another one holds the definition.
        return Plan(ComposerStep.UNFENCE if live is not None and may_open(live) else ComposerStep.NOTHING)
    if live is None or not ours:
        # Gone, released, or that of a definition made again in between. An API that is closed is opened when
        # this definition is gone: who prevents that must not hold up the deletion of something else.
        return Plan(ComposerStep.REMOVE_FINALIZER)
    if definition.spec.deletion == "Orphan":
        return Plan(ComposerStep.UNFENCE if is_partly_fenced(live) else ComposerStep.RELEASE_CRD)
    if "deletionTimestamp" in live["metadata"]:
        return Plan(ComposerStep.NOTHING)
    if gathered.composites == 0:
        return _last_step(gathered, live)
    if definition.spec.deletion == "Cascade":
        if gathered.composites is None:
            return Plan(ComposerStep.NOTHING, gathered.hidden)
        waiting = gathered.waiting.number == gathered.composites
        return Plan(ComposerStep.NOTHING if waiting else ComposerStep.DELETE_COMPOSITES)
    remedy = "delete them, or set spec.deletion to Cascade or Orphan."
    said = f"{_exist(gathered)}{_names(gathered)}; spec.deletion is Protect: {remedy}"
    fenced = "The API takes no new ones." if is_fenced(live) else ""
    parts = said, waits(gathered.waiting, gathered.composites), fenced
    return Plan(ComposerStep.NOTHING, Verdict(reasons.TERMINATING, " ".join(filter(None, parts))))


def _last_step(gathered: Gathered, live: Mapping[str, Any]) -> Plan:
    """Of the deletion of a definition without composites."""
    if gathered.definition.spec.deletion != "Protect" or not takes_composites(live):
        return Plan(ComposerStep.DELETE_CRD)
    if not is_fenced(live):
        return Plan(ComposerStep.FENCE)
    return Plan(ComposerStep.DELETE_CRD if gathered.settled else ComposerStep.SETTLE)


def keeps_crd(gathered: Gathered, decided: Plan) -> bool:
    """Whether the definition is being deleted, and its CRD stays for now."""
    metadata, live = gathered.definition.metadata, gathered.live
    return (
        metadata.deletion_timestamp is not None
        and decided.step in (ComposerStep.NOTHING, ComposerStep.DELETE_COMPOSITES)
        and live is not None
        and "deletionTimestamp" not in live["metadata"]
        and is_controlled(live, metadata.uid)
    )


def unclaimed(decided: Plan, failure: Verdict) -> Plan:
    """The step, although the CRD could not be claimed before it; what a person has to do comes first."""
    if decided.refusal is None:
        return replace(decided, refusal=failure)
    said = f"{decided.refusal.message.rstrip('.')}. Besides, the composer {failure.message}"
    return replace(decided, refusal=Verdict(decided.refusal.reason, said))


def _refusal(gathered: Gathered) -> Verdict | None:
    definition, judged, live = gathered.definition, gathered.judged, gathered.live
    if live is not None and "deletionTimestamp" not in live["metadata"] and takes(definition, live):
        stored = still_stored(definition, live)
        if stored is not None:
            return stored
    problems = [each for each in judged.problems if each.refused]
    if problems or judged.crd is None:
        said = [f"{each.path}: {each.message} [{each.rule.id}]. {each.rule.remedy}" for each in problems]
        return Verdict(reasons.INVALID, sentences(said, "problem"))
    if live is not None and "deletionTimestamp" in live["metadata"]:
        message = f"A CRD of this name is being deleted; waiting until it is gone. {left(gathered)}"
        return Verdict(reasons.CRD_TERMINATING, message.strip())
    if live is not None and not takes(definition, live):
        if owner := owner_of(live):
            return Verdict(
                reasons.NOT_OURS,
                f"a CRD of this name exists, which {owner} owns. When that "
                "is deleted, the API server deletes the CRD and all of its objects: to adopt the CRD, first "
                "stop the program that maintains it, then remove metadata.ownerReferences from the CRD",
            )
        return Verdict(
            reasons.NOT_OURS,
            f"a CRD of this name exists, and does not belong to this definition; "
            f'the annotation {ADOPT}: "true" on the definition takes it over',
        )
    hidden = gathered.hidden.reason if gathered.hidden is not None else None
    return refused(definition, live, gathered.composites, _exist(gathered), gathered.facts, hidden)


def left(gathered: Gathered) -> str:
    """How many composites are left in a deletion, and who holds them and the CRD; empty if none are."""
    live, composites = gathered.live, gathered.composites
    said = []
    if composites:
        said.append(f"{count(composites, 'composite')} left.")
    elif composites is None and gathered.hidden is not None:
        said.append(f"Composites may be left: {gathered.hidden.message}.")
    said += [waits(gathered.waiting, composites), holds_crd(live) if live is not None else ""]
    return " ".join(filter(None, said))


def _exist(gathered: Gathered) -> str:
    if gathered.composites is not None:
        return count(gathered.composites, "composite")
    why = f": {gathered.hidden.message}" if gathered.hidden is not None else ""
    return f"composites may exist{why}"


def _names(gathered: Gathered) -> str:
    """The first composites, in parentheses."""
    if not gathered.first:
        return ""
    more = (gathered.composites or 0) - len(gathered.first)
    return f" ({', '.join(gathered.first)}{f' and {more:,} more' if more > 0 else ''})"
