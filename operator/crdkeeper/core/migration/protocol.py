"""The migration protocol: the next action, from the spec, the recorded status and an observation.

All that a run knows is in the status, so this is also how a run resumes: after a kill, the same status leads
to the same action. Each action says why; `operations.migration` only executes it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from crdkeeper.api.meta import OPERATOR
from crdkeeper.api.storagemigration import (
    MigrationTarget,
    StorageMigrationSpec,
    StorageMigrationStatus,
)
from crdkeeper.core.migration.observation import Observation
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.migration.settle import settling
from crdkeeper.core.text import count

STEPS = ("Resolved", "Permitted", "Settled", "Rewritten", "Verified", "Trimmed")
"""The conditions of the steps in order. Succeeded and Ready summarize them; Suspended is independent."""

SweepType = Literal["Rewrite", "Verify", "Plan"]


@dataclass(frozen=True, slots=True)
class Pin:
    """Record the target and start at the first step; `restart` if evidence for another target is dropped."""

    target: MigrationTarget
    restart: bool
    message: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing can be done now. `condition` names the delayed step; observe again after `seconds`."""

    condition: str
    reason: str
    message: str
    seconds: float
    failing: bool = False
    """Whether a person should know: Succeeded becomes False instead of Unknown."""
    lasting: bool = False
    """Whether only a person can end it."""


@dataclass(frozen=True, slots=True)
class Separate:
    """Get the resourceVersion that separates before from after."""

    message: str


@dataclass(frozen=True, slots=True)
class SweepAll:
    """Process all objects, starting at the recorded continue token if there is one."""

    type: SweepType
    fresh: bool
    """Whether to start a new pass instead of resuming the recorded one."""


@dataclass(frozen=True, slots=True)
class RetryQuarantined:
    """Retry the refused objects one by one; status names all of them."""


@dataclass(frozen=True, slots=True)
class Trim:
    """Reduce status.storedVersions of the CRD to the storage version."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end, for this target."""

    succeeded: bool
    reason: str
    message: str


Action = Pin | Hold | Separate | SweepAll | RetryQuarantined | Trim | Finish

_POLL_SECONDS = 10.0
"""How often to check for what only others can change; events shorten the wait."""
_PASSING = 2
"""Failed attempts in a row that no person needs to know of."""


def decide(
    spec: StorageMigrationSpec,
    status: StorageMigrationStatus,
    seen: Observation,
    *,
    renewed_at: datetime | None,
    changed_at: datetime | None,
    all_named: bool,
    other: str,
    now: datetime,
) -> Action:
    """The next action.

    `renewed_at` and `changed_at` are as for `settling`; `all_named` says whether all refused objects are
    known by name, so that they can be retried without a pass over the others. `other` says who else is
    migrating the resource (empty: nobody); then nothing is written and nothing counts as evidence.
    """
    action = _next(
        spec,
        status,
        seen,
        renewed_at=renewed_at,
        changed_at=changed_at,
        all_named=all_named,
        now=now,
    )
    held_up = _writing_step(action) if other else ""
    return Hold(held_up, "AnotherMigrator", other, _POLL_SECONDS) if held_up else action


def _writing_step(action: Action) -> str:
    """The condition of the step that writes or starts to count; empty for all other actions."""
    match action:
        case Separate():
            return "Settled"
        case SweepAll("Rewrite") | RetryQuarantined():
            return "Rewritten"
        case SweepAll("Verify"):
            return "Verified"
        case Trim():
            return "Trimmed"
    return ""


def _next(
    spec: StorageMigrationSpec,
    status: StorageMigrationStatus,
    seen: Observation,
    *,
    renewed_at: datetime | None,
    changed_at: datetime | None,
    all_named: bool,
    now: datetime,
) -> Action:
    if seen.target is None and seen.missing_rights:
        return _forbidden(spec, seen)  # what may not be read is not known to be gone
    if ended := _ended(status, seen):
        return ended
    if spec.suspend:
        return Hold(
            "Suspended", "Suspended", "Suspended by spec.suspend. Set it to false to resume.", _POLL_SECONDS
        )
    target = seen.target
    if target is None:
        return Hold(
            "Resolved",
            "ResourceNotFound",
            f"The resource {spec.resource} is not served; waiting for its CRD to be established. "
            f"Check the spelling of spec.resource.",
            _POLL_SECONDS,
            lasting=True,
        )
    if status.target is None or not status.target.same_as(target):
        return _pin(status.target, target)
    if spec.mode == "Execute" and spec.verify != "Full" and not status.restarts and _already_current(status):
        return Finish(True, "AlreadyCurrent", f"storedVersions lists only {target.storage_version}.")
    if seen.missing_rights:
        return _forbidden(spec, seen)
    if spec.mode == "Plan":
        return _plan(status)
    if status.settled_resource_version is None:
        state = settling(
            seen,
            settle_seconds=spec.settle_seconds,
            require_leases=spec.api_server_leases == "Require",
            changed_at=changed_at,
            renewed_at=renewed_at,
            now=now,
        )
        if state.wait:
            return Hold("Settled", state.reason, state.message, min(state.wait, 2.0))
        return Separate(state.message)
    return _rewrite(spec, status, seen, all_named=all_named, now=now)


def step_at_work(spec: StorageMigrationSpec, status: StorageMigrationStatus) -> str:
    """The condition of the step in progress or next, which any problem delays.

    Never a completed step: nothing would correct its condition later.
    """
    sweep = status.sweep
    if status.target is None:
        return "Resolved"
    if status.settled_resource_version is None and spec.mode == "Execute":
        return "Settled"
    if sweep is None or sweep.type == "Plan" or status.progress.quarantined:
        return "Rewritten"
    if sweep.type == "Rewrite":
        return "Verified" if sweep.done else "Rewritten"
    return "Trimmed" if sweep.done else "Verified"


def after_trouble(
    spec: StorageMigrationSpec,
    status: StorageMigrationStatus,
    reason: str,
    message: str,
    *,
    times: int,
    lasting: bool,
) -> Hold:
    """The wait after a failed attempt, the last one of so many in a row.

    `lasting` is whether it will not pass by itself; only several attempts show that: an API server does not
    know at once a right that was just granted.
    """
    seconds, again = backoff(times - 1, 1.0, 60.0), times > _PASSING
    return Hold(
        step_at_work(spec, status),
        reason,
        f"{message.rstrip('.')}. Trying again in {seconds:.0f} s.",
        seconds,
        failing=again,
        lasting=lasting and again,
    )


def _forbidden(spec: StorageMigrationSpec, seen: Observation) -> Hold:
    remedy = (
        "Grant these with a ClusterRole labelled rbac.crdkeeper.dev/aggregate-to-rewriter=true "
        "(docs/operating.md)."
        if spec.managed_by == OPERATOR
        else "Grant these to the account that runs the migration."
    )
    return Hold(
        "Permitted",
        "Forbidden",
        f"Not permitted: {'; '.join(seen.missing_rights)}. {remedy}",
        _POLL_SECONDS,
        failing=True,
        lasting=True,
    )


def _ended(status: StorageMigrationStatus, seen: Observation) -> Finish | None:
    definition = seen.definition
    if status.target is not None and status.target.uid is not None and definition is None:
        return Finish(
            False, "DefinitionDeleted", "The CRD and its objects were deleted: nothing is left to do."
        )
    if definition is not None and definition.terminating:
        return Finish(
            False,
            "DefinitionTerminating",
            "The CRD and its objects are being deleted: crdkeeper leaves them alone.",
        )
    return None


def _pin(old: MigrationTarget | None, new: MigrationTarget) -> Pin:
    stored = new.storage_version or "the server's storage version"
    if old is None:
        return Pin(new, False, f"The storage version is {stored}.")
    what = "was re-created" if old.uid != new.uid else "changed"
    return Pin(
        new,
        True,
        f"The definition {what} during the run ({_differences(old, new)}): all evidence was discarded and "
        f"the run started over.",
    )


def _differences(old: MigrationTarget, new: MigrationTarget) -> str:
    known = (
        ("generation", old.generation, new.generation),
        ("storage version", old.storage_version, new.storage_version),
        ("storageVersionHash", old.storage_version_hash, new.storage_version_hash),
    )
    found = [f"{name} {before} to {after}" for name, before, after in known if before != after]
    if old.storage_version == new.storage_version and new.storage_version is not None:
        found.append(f"storage version still {new.storage_version}")
    return ", ".join(found)


def _already_current(status: StorageMigrationStatus) -> bool:
    # Only before any work: once started, a run proves what it set out to prove, whoever trims meanwhile.
    target = status.target
    return (
        target is not None
        and target.uid is not None
        and target.stored_versions == [target.storage_version]
        and status.settled_resource_version is None
    )


def _plan(status: StorageMigrationStatus) -> Action:
    if status.sweep is None or not status.sweep.done:
        return SweepAll("Plan", fresh=status.sweep is None)
    refused, scanned = status.progress.quarantined, status.sweep.scanned
    if refused:
        return Finish(
            False,
            "WouldBeRefused",
            f"{refused:,} of {count(scanned, 'object')} would be refused; status.quarantine lists them. "
            f"Nothing was written. Fix the causes, then migrate.",
        )
    return Finish(
        True, "PlanClean", f"{count(scanned, 'object')} would be accepted, none refused. Nothing was written."
    )


def _rewrite(
    spec: StorageMigrationSpec,
    status: StorageMigrationStatus,
    seen: Observation,
    *,
    all_named: bool,
    now: datetime,
) -> Action:
    sweep, quarantine, refused = status.sweep, status.quarantine, status.progress.quarantined
    if sweep is None:
        return SweepAll("Rewrite", fresh=True)
    if not sweep.done:
        return SweepAll(sweep.type, fresh=False)
    if refused:
        due = quarantine.next_retry_time
        if spec.retry.limit is not None and quarantine.rounds >= spec.retry.limit:
            go_on = "raise spec.retry.limit" if spec.managed_by == OPERATOR else "run the migration again"
            return Finish(
                False,
                "RetriesExhausted",
                f"{count(refused, 'object')} still refused after {count(quarantine.rounds, 'retry round')}; "
                f"status.quarantine lists them. Nothing was trimmed. Fix the causes and {go_on} to continue.",
            )
        if due is not None and due > now:
            return Hold(
                "Rewritten",
                "ObjectsRefused",
                _refused_message(status, due),
                min(_POLL_SECONDS, (due - now).total_seconds()),
                failing=True,
            )
        return RetryQuarantined() if all_named else SweepAll("Rewrite", fresh=True)
    if sweep.type == "Rewrite" or (sweep.unexpected and spec.verify == "Remaining"):
        return SweepAll("Verify", fresh=True)
    if spec.trim and seen.definition is not None and seen.definition.outdated_versions:
        return Trim()
    total = status.sweep.scanned if status.sweep else 0
    return Finish(True, "Migrated", f"{count(total, 'object')} proved to be stored at the storage version.")


def _refused_message(status: StorageMigrationStatus, due: datetime) -> str:
    first = next(iter(status.quarantine.objects), None)
    example = ""
    if first is not None:
        by = f" by {first.denied_by}" if first.denied_by else ""
        at = f"{first.namespace}/{first.name}" if first.namespace else first.name
        example = f" First: {at}, {first.code} {first.reason}{by}: {first.message}"
    return (
        f"{count(status.progress.quarantined, 'object')} refused, all others done. Nothing is trimmed until "
        f"all are written. Next attempt at {due:%H:%M:%S} UTC.{example}"
    )
