"""How an action and its result go on record: conditions, counts, checkpoint. All in the status, in place.

The status is what users see and what a restarted run resumes from, so each of these keeps both true.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from crdkeeper.api.meta import READY, ConditionStatus, set_condition, summarize
from crdkeeper.api.storagemigration import (
    QUARANTINE_SHOWN,
    MigrationProgress,
    MigrationQuarantine,
    MigrationSweep,
    RefusedObject,
    StorageMigration,
    StorageMigrationStatus,
)
from crdkeeper.api.texts import bounded
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.migration.protocol import Finish, Hold, Pin
from crdkeeper.core.text import count

STEPS = ("Resolved", "Permitted", "Settled", "Rewritten", "Verified", "Trimmed")
"""The protocol's steps in order; Succeeded and Ready sum them up, and Suspended stands beside them."""


@dataclass(frozen=True, slots=True)
class Change:
    """A condition whose status or reason changed: worth an Event."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    warning: bool = False


@dataclass(slots=True)
class Tally:
    """What a pass has counted since it began or went on.

    `refused` names the first ones only, `refused_count` is all; `total` is how many objects there are to
    deal with, as of the latest page.
    """

    scanned: int = 0
    rewritten: int = 0
    current: int = 0
    gone: int = 0
    unexpected: int = 0
    total: int = 0
    refused_count: int = 0
    refused: Sequence[RefusedObject] = ()


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was on record when a pass began or went on; its tally is added to that."""

    scanned: int
    unexpected: int
    progress: MigrationProgress
    refused: Mapping[tuple[str, str], RefusedObject]

    @classmethod
    def of(cls, status: StorageMigrationStatus) -> "Baseline":
        """Of the status as it is now."""
        sweep = status.sweep
        return cls(
            scanned=sweep.scanned if sweep else 0,
            unexpected=sweep.unexpected if sweep else 0,
            progress=status.progress.model_copy(),
            refused={(each.namespace, each.name): each for each in status.quarantine.objects},
        )


class Recorder:
    """Writes to one migration's status and collects the changes of conditions since they were last taken."""

    def __init__(self, migration: StorageMigration) -> None:
        self.migration = migration
        self._changes: list[Change] = []

    def take_changes(self) -> list[Change]:
        """The changes since the last call."""
        taken, self._changes = self._changes, []
        return taken

    def _set(
        self,
        type_: str,
        status: ConditionStatus,
        reason: str,
        message: str,
        now: datetime,
        *,
        warning: bool = False,
    ) -> None:
        owner, message = self.migration, bounded(message)
        if set_condition(
            owner.status.conditions,
            type_,
            status,
            reason,
            message,
            generation=owner.metadata.generation,
            now=now,
        ):
            self._changes.append(Change(type_, status, reason, message, warning))
        if type_ == "Succeeded":
            # Ready says the same to tools that know no other summary; one Event tells of both.
            conditions, generation = owner.status.conditions, owner.metadata.generation
            set_condition(conditions, READY, status, reason, message, generation=generation, now=now)
            ended = owner.status.completion_time is not None
            summarize(conditions, stalled=status == "False" and (ended or reason == "Forbidden"), now=now)

    def first_sight(self, now: datetime) -> None:
        """All conditions exist from the start, as Unknown."""
        present = {each.type for each in self.migration.status.conditions}
        for step in (*STEPS, "Succeeded"):
            if step not in present:
                self._set(step, "Unknown", "Pending", "Not reached yet.", now)
        self._changes.clear()
        status = self.migration.status
        status.completion_time = None
        if self.migration.spec.mode == "Plan":
            # A plan is worth most when it is fresh, and it has written nothing that could be kept.
            status.sweep, status.progress, status.quarantine = (
                None,
                MigrationProgress(),
                MigrationQuarantine(),
            )
        self.migration.status.observed_generation = self.migration.metadata.generation

    def pinned(self, action: Pin, now: datetime) -> None:
        """Begin with this target; all evidence for another one is dropped."""
        status = self.migration.status
        status.target = action.target
        status.start_time = status.start_time or now
        if action.restart:
            self.evidence_dropped(now)
        reason = "TargetChanged" if action.restart else "Pinned"
        self._set("Resolved", "True", reason, action.message, now, warning=action.restart)
        self._running(reason, action.message, now)

    def evidence_dropped(self, now: datetime) -> None:
        """What was proved does not hold any more: begin again."""
        status = self.migration.status
        status.settled_resource_version = None
        status.sweep = None
        status.progress = MigrationProgress()
        status.quarantine = MigrationQuarantine()
        status.restarts += 1
        for step in STEPS[1:]:
            self._set(step, "Unknown", "Pending", "Not reached yet.", now)

    def _running(self, reason: str, message: str, now: datetime) -> None:
        self._set("Succeeded", "Unknown", reason, message, now)

    def held(self, action: Hold, now: datetime) -> None:
        """Nothing can be done now."""
        suspended = action.condition == "Suspended"
        self._set(
            action.condition,
            "True" if suspended else "False",
            action.reason,
            action.message,
            now,
            warning=action.failing,
        )
        outlook: ConditionStatus = "False" if action.failing else "Unknown"
        self._set("Succeeded", outlook, action.reason, action.message, now)
        progress = self.migration.status.progress
        progress.objects_per_second, progress.concurrency, progress.remaining = 0, 0, ""

    def resumed(self, now: datetime) -> None:
        """No longer suspended, if it was."""
        if any(each.type == "Suspended" for each in self.migration.status.conditions):
            self._set("Suspended", "False", "Resumed", "Not suspended.", now)

    def permitted(self, now: datetime) -> None:
        """All rights that the work needs are there."""
        self._set("Permitted", "True", "Allowed", "All rights that the work needs are granted.", now)

    def separated(self, resource_version: str, message: str, now: datetime) -> None:
        """Settled; what is written above `resource_version` is at the storage version."""
        self.migration.status.settled_resource_version = resource_version
        self._set("Settled", "True", "Settled", message, now)

    def sweep_began(self, sweep: MigrationSweep, now: datetime) -> None:
        """A new pass. One over objects that were refused before counts as a round of retries."""
        status = self.migration.status
        status.sweep = sweep
        if sweep.type == "Rewrite" and status.progress.quarantined:
            self.retry_began()
            status.progress.quarantined = status.progress.gone = 0
            status.quarantine.objects = []
        if sweep.type == "Plan":
            for step in ("Settled", "Rewritten", "Verified", "Trimmed"):
                self._set(step, "False", "PlanOnly", "Mode Plan writes nothing.", now)

    def retry_began(self) -> None:
        """Count a round of retries."""
        self.migration.status.quarantine.rounds += 1

    def sweeping(self, now: datetime) -> None:
        """A pass is at work."""
        sweep = self.migration.status.sweep
        if sweep is None:
            return
        condition, reason, message = {
            "Rewrite": (
                "Rewritten",
                "Rewriting",
                "Objects are being rewritten; status.progress tells how far.",
            ),
            "Verify": (
                "Verified",
                "Verifying",
                "A second pass looks for objects that are not proved current.",
            ),
            "Plan": ("Succeeded", "Planning", "Every write is tried as a server-side dry run."),
        }[sweep.type]
        self._set(condition, "Unknown", reason, message, now)
        self._running(reason, message, now)

    def progressed(self, tally: Tally, before: "Baseline", *, rate: float, concurrency: int) -> None:
        """Put a pass's counts on record; `before` is what was on record when it began or went on."""
        status = self.migration.status
        sweep, progress = status.sweep, status.progress
        if sweep is None:
            return
        scanned = before.scanned + tally.scanned
        sweep.unexpected = before.unexpected + tally.unexpected
        progress.rewritten = before.progress.rewritten + tally.rewritten
        progress.gone = before.progress.gone + tally.gone
        again = sum((each.namespace, each.name) in before.refused for each in tally.refused)
        progress.quarantined = before.progress.quarantined + tally.refused_count - again
        progress.total = max(scanned, before.scanned + tally.total)
        if sweep.type == "Rewrite":
            # By difference: what a killed run rewrote after its last checkpoint is found to be current.
            progress.current = max(0, scanned - progress.rewritten - progress.gone - progress.quarantined)
        if sweep.type != "Verify":
            # 100 is for the end, when all is verified and trimmed.
            progress.percent = min(99, 100 * scanned // max(1, progress.total))
        left = progress.total - scanned
        progress.objects_per_second, progress.concurrency = round(rate), concurrency
        progress.remaining = format_duration(left / rate) if rate and left > 0 else ""
        fresh = [each for each in tally.refused if (each.namespace, each.name) not in before.refused]
        status.quarantine.objects = [*before.refused.values(), *fresh][:QUARANTINE_SHOWN]

    def checkpoint(self, token: str | None, scanned: int) -> None:
        """From where a pass can go on, and how many objects are behind that."""
        if self.migration.status.sweep is not None:
            self.migration.status.sweep.continue_token = token
            self.migration.status.sweep.scanned = scanned

    def list_expired(self) -> None:
        """The continue token is worth nothing any more: this pass begins at the first page again."""
        self.checkpoint(None, 0)

    def sweep_ended(self, retry_first: float, retry_longest: float, now: datetime) -> None:
        """A pass is through. What it refused is tried again after a wait."""
        status = self.migration.status
        sweep, progress = status.sweep, status.progress
        if sweep is None:
            return
        sweep.done, sweep.continue_token = True, None
        progress.objects_per_second, progress.concurrency, progress.remaining = 0, 0, ""
        if sweep.type == "Plan":
            return
        if progress.quarantined:
            self.retry_later(retry_first, retry_longest, now)
            return
        self.cleared(now)
        if sweep.type == "Verify":
            self._verified(sweep, now)

    def _verified(self, sweep: MigrationSweep, now: datetime) -> None:
        passed = f"A second pass over {count(sweep.scanned, 'object')}"
        found = count(sweep.unexpected, "object")
        if not sweep.unexpected:
            self._set("Verified", "True", "NothingLeft", f"{passed} found none left.", now)
        elif self.migration.spec.verify == "Full":
            # Each write of a full pass is the proof for its object. A third pass need not find less: where a
            # webhook changes each object that is written, none ever comes back unchanged.
            self._set("Verified", "True", "AllPatched", f"{passed} patched each, and rewrote {found}.", now)
        else:
            message = f"The second pass found {found} to rewrite, and did so."
            self._set("Verified", "False", "FoundMore", message, now)

    def retry_later(self, first: float, longest: float, now: datetime) -> None:
        """Set the time of the next round of retries."""
        quarantine = self.migration.status.quarantine
        quarantine.next_retry_time = now + timedelta(seconds=backoff(quarantine.rounds, first, longest))

    def retried(self, still: Sequence[RefusedObject], tally: Tally) -> None:
        """A round of retries over the refused objects alone is through."""
        status = self.migration.status
        progress = status.progress
        progress.rewritten += tally.rewritten
        progress.gone += tally.gone
        progress.quarantined = len(still)
        progress.current += tally.current
        # A pass that was interrupted and went on may have written some of these meanwhile, and counted them.
        progress.current = min(progress.current, max(0, progress.total - progress.rewritten))
        status.quarantine.objects = list(still[:QUARANTINE_SHOWN])

    def sweep_repaired(self, now: datetime) -> None:
        """The last refused object was written: what remains is to verify."""
        self.migration.status.sweep = MigrationSweep(
            type="Rewrite", scanned=self.migration.status.progress.total, done=True
        )
        self.cleared(now)

    def cleared(self, now: datetime) -> None:
        """No object is refused any more."""
        status = self.migration.status
        status.quarantine = MigrationQuarantine(rounds=status.quarantine.rounds)
        if status.sweep is not None and status.sweep.type != "Plan":
            progress = status.progress
            self._set(
                "Rewritten",
                "True",
                "AllWritten",
                f"{count(progress.rewritten, 'object')} rewritten, {progress.current:,} shown to be current, "
                f"{progress.gone:,} deleted meanwhile.",
                now,
            )

    def trimmed(self, removed: Sequence[str], kept: str, now: datetime) -> None:
        """status.storedVersions of the CRD was reduced."""
        self._set(
            "Trimmed",
            "True",
            "Trimmed",
            f"Removed {', '.join(removed)} from status.storedVersions of the CRD; it holds {kept} only.",
            now,
        )

    def finished(self, action: Finish, now: datetime) -> None:
        """The end for this target."""
        owner = self.migration
        status, spec = owner.status, owner.spec
        if action.succeeded and action.reason == "Migrated" and not spec.trim:
            self._set(
                "Trimmed", "False", "NotRequested", "spec.trim is false: storedVersions was left alone.", now
            )
        elif action.succeeded and action.reason == "Migrated" and status.target and status.target.uid is None:
            self._set("Trimmed", "False", "NotApplicable", "Only a CRD has storedVersions to trim.", now)
        elif action.succeeded and action.reason in ("Migrated", "AlreadyCurrent"):
            for step in STEPS if action.reason == "AlreadyCurrent" else ("Trimmed",):
                if not any(each.type == step and each.status == "True" for each in status.conditions):
                    self._set(
                        step, "True", "AlreadyCurrent", "storedVersions holds the storage version only.", now
                    )
        if action.reason.startswith("Definition"):
            self._set("Resolved", "False", action.reason, action.message, now, warning=True)
        if action.succeeded:
            status.progress.percent = 100
        status.observed_generation = owner.metadata.generation
        status.completion_time = now
        self._set(
            "Succeeded",
            "True" if action.succeeded else "False",
            action.reason,
            action.message,
            now,
            warning=not action.succeeded,
        )


def format_duration(seconds: float) -> str:
    """Seconds as people read them: 45s, 2m10s, 3h05m."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
