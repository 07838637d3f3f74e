"""Where each step of a retirement stands: one condition per step, from the CRD and the evidence alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from crdkeeper.api.meta import CLI, OPERATOR, find_condition, format_time
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import (
    DEPRECATED,
    MIGRATED,
    NOT_SERVED,
    REMOVED,
    UNUSED,
    VersionRetirement,
)
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.core.retirement.facts import RetirementFacts, State
from crdkeeper.core.retirement.migrations import at_work, failed
from crdkeeper.core.retirement.quiet import Use, last_use, period_of
from crdkeeper.core.text import count, visible

_THERE = "InDefinition"
_REMOVED = "Removed"
"""Reasons of Removed: by one of them a status shows that the CRD has had the version."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The steps, by condition, and the quiet period."""

    steps: Mapping[str, State]
    quiet_since: datetime | None
    quiet_until: datetime | None = None
    """When the quiet period ends if nobody uses the version; None if it is not running."""
    settled_at: datetime | None = None
    """When all API servers have ended their writes at the version; None if that is not waited for."""


def progress(owner: VersionRetirement, facts: RetirementFacts, definition: DefinitionFacts) -> Progress:
    """Where each step stands; `definition` is the CRD of `facts`, and is not one that `never_there` names."""
    version, crd = owner.spec.version, definition.name
    found = next((each for each in definition.versions if each.name == version), None)
    since = owner.status.quiet_since_time
    if found is None:
        return Progress(_without(owner, definition), since)
    steps = {DEPRECATED: _deprecated(facts, version, crd)}
    ends = settled_at = None
    if not found.served:
        steps[UNUSED] = State("True", "NotServed", f"Nobody can use {version}: it is not served.")
        steps[NOT_SERVED] = State("True", "NotServed", f"{version} of {crd} is not served.")
        steps[MIGRATED] = _migrated(owner, facts, definition)
        if steps[MIGRATED].reason == "Settling":
            settled_at = _settled_at(owner, facts)
    else:
        if steps[DEPRECATED].done:
            use = _use(owner, facts)
            since = max(filter(None, (since or facts.now, use.last)))
            ends = since + period_of(owner.spec.quiet_period)
            steps[UNUSED] = _unused(owner, facts, use, since, ends)
        else:
            since = None
            steps[UNUSED] = _waits(DEPRECATED)
        steps[NOT_SERVED] = State("False", "Served", f"{version} of {crd} is served.")
        steps[MIGRATED] = _waits(NOT_SERVED)
    steps[REMOVED] = State("False", _THERE, f"{crd} still has {version} in spec.versions.")
    return Progress(steps, since, ends, settled_at)


def never_there(owner: VersionRetirement, definition: DefinitionFacts) -> State | None:
    """Why the CRD's lack of the version proves nothing; None if it has it, or had it when we looked before.

    A mistyped version is not in the CRD either, and must not look like one that is removed.
    """
    version = owner.spec.version
    if any(each.name == version for each in definition.versions):
        return None
    seen = find_condition(owner.status.conditions, REMOVED)
    same = owner.status.definition_uid == definition.uid
    if same and seen is not None and seen.reason in (_THERE, _REMOVED):
        return None
    others = ", ".join(each.name for each in definition.versions)
    return State(
        "False",
        "VersionNotFound",
        f"{definition.name} does not have {version}, and did not have it when this retirement first looked: "
        f"its versions are {others}. If {version} is mistyped, or was removed before, delete the retirement.",
    )


def _without(owner: VersionRetirement, definition: DefinitionFacts) -> Mapping[str, State]:
    state = State("True", _REMOVED, f"{definition.name} no longer has {owner.spec.version}.")
    return dict.fromkeys((DEPRECATED, UNUSED, NOT_SERVED, MIGRATED, REMOVED), state)


def _waits(step: str) -> State:
    return State("Unknown", "Waiting", f"Waits for {step}.")


def _deprecated(facts: RetirementFacts, version: str, crd: str) -> State:
    versions = facts.crd["spec"]["versions"] if facts.crd is not None else ()
    entry = next(each for each in versions if each["name"] == version)
    if entry.get("deprecated"):
        return State("True", "Deprecated", f"The API server warns everybody who uses {version} of {crd}.")
    if not entry["served"]:
        return State("True", "NotServed", f"Nobody needs a warning: {version} is not served.")
    return State("False", "NotDeprecated", f"{version} of {crd} is not deprecated.")


def _use(owner: VersionRetirement, facts: RetirementFacts) -> Use:
    taken = facts.current
    if taken is None or facts.crd is None:
        return Use(None)
    webhook = (facts.crd["spec"].get("conversion") or {}).get("strategy") == "Webhook"
    # The objects are counted at this version: these requests are ours.
    ours = webhook or definition_facts(facts.crd).endpoint_version == owner.spec.version
    return last_use(taken.evidence, taken.taken, owner.status.evidence, reads_count=not ours)


def _unused(
    owner: VersionRetirement, facts: RetirementFacts, use: Use, since: datetime, ends: datetime
) -> State:
    version, taken = owner.spec.version, facts.current
    if unknown := _unknown(facts):
        return unknown
    if taken is not None and taken.taken >= ends:
        return State(
            "True",
            "Quiet",
            f"No use of {version} is known since {format_time(since)}, for {owner.spec.quiet_period}.",
        )
    if facts.now >= ends:
        return State(
            "Unknown", "Counting", f"The quiet period is over; the uses of {version} are counted again."
        )
    last = ""
    if use.last is not None:
        last = f" It was last used at {format_time(use.last)} by {visible(use.by)}."
    return State(
        "False",
        "QuietPeriod",
        f"The quiet period of {owner.spec.quiet_period} ends at {format_time(ends)}, unless somebody uses "
        f"{version} before.{last}",
    )


def _unknown(facts: RetirementFacts) -> State | None:
    """Why the evidence tells nothing yet; None if it does."""
    taken = facts.current
    if taken is None or not (taken.evidence.complete or taken.evidence.failure):
        return counting(facts)
    if not taken.evidence.complete:
        return State("Unknown", "NotKnown", f"Not all objects can be counted: {taken.evidence.failure}")
    return None


def counting(facts: RetirementFacts) -> State:
    """Nothing is known before all objects are counted."""
    again, said = facts.recount_time, "All objects are being counted."
    if again is not None and again > facts.now:
        said = f"The CRD has changed; all objects are counted again at {format_time(again)}."
    return State("Unknown", "Counting", said)


def _migrated(owner: VersionRetirement, facts: RetirementFacts, definition: DefinitionFacts) -> State:
    version = owner.spec.version
    if version == definition.storage_version:
        return State("False", "StorageVersion", f"New objects are stored at {version}.")
    unknown = _unknown(facts)
    named = facts.current.evidence.objects if facts.current is not None else 0
    if version in definition.stored_versions or (unknown is None and named):
        running = at_work(facts.migrations)
        if running is not None:
            return _migrating(running)
        ended = failed(owner, definition, facts.migrations)
        if ended is not None:
            again = "It is tried again" if owner.spec.mode == "Execute" else "Another one is due"
            return State("False", "MigrationFailed", f"{_told(ended)} {again} once you delete it.")
        if version in definition.stored_versions:
            return State("False", "Stored", f"Objects may still be stored at {version}.")
        return State(
            "False",
            "NamedByManagers",
            f"metadata.managedFields of {count(named, 'object')} names {version}: without that version, "
            "every server-side apply to them would fail.",
        )
    return (
        unknown
        or _settling(owner, facts)
        or State(
            "True",
            "Migrated",
            f"No object is stored at {version}, and no entry of metadata.managedFields names it.",
        )
    )


def _settling(owner: VersionRetirement, facts: RetirementFacts) -> State | None:
    """Why objects must be counted once more; None if the count has seen all writes at the version.

    A write may be in flight, or reach an API server that has not seen yet that the version is not served.
    """
    taken, seconds, ends = facts.current, owner.spec.migration.settle_seconds, _settled_at(owner, facts)
    if not seconds or (taken is not None and taken.taken >= ends):
        return None
    version = owner.spec.version
    if facts.now >= ends:
        return State("Unknown", "Counting", f"All writes at {version} have ended; objects are counted again.")
    return State(
        "Unknown",
        "Settling",
        f"Until {format_time(ends)}, writes at {version} may still end: it is not served for less than "
        f"{seconds} s (spec.migration.settleSeconds). Then objects are counted again.",
    )


def _settled_at(owner: VersionRetirement, facts: RetirementFacts) -> datetime:
    seen = find_condition(owner.status.conditions, NOT_SERVED)
    since = seen.last_transition_time if seen is not None and seen.status == "True" else facts.now
    return since + timedelta(seconds=owner.spec.migration.settle_seconds)


def _migrating(migration: StorageMigration) -> State:
    found = find_condition(migration.status.conditions, "Succeeded")
    if migration.spec.suspend:
        return State(
            "False", "MigrationSuspended", f"StorageMigration {migration.metadata.name} is suspended."
        )
    if found is not None and found.status == "False":
        return State("False", "MigrationFailing", f"{_told(migration)}{_elsewhere(migration)}")
    done = f"StorageMigration {migration.metadata.name} is at work: {migration.status.progress.percent} %."
    return State("False", "Migrating", f"{done}{_elsewhere(migration)}")


def _elsewhere(migration: StorageMigration) -> str:
    """What to do about a migration that ends only if whoever runs it does: its status looks the same then."""
    who, resource = migration.spec.managed_by, migration.spec.resource
    if who == OPERATOR:
        return ""
    again = f"run `crdkeeper migrate {resource}` again" if who == CLI else "have that go on with it"
    return (
        f" Not the operator runs it, but {visible(who)}. If that no longer does, {again}, or delete the "
        "StorageMigration."
    )


def _told(migration: StorageMigration) -> str:
    found = find_condition(migration.status.conditions, "Succeeded")
    told = found.message if found is not None else "It has ended without success."
    return f"StorageMigration {migration.metadata.name}: {told}"
