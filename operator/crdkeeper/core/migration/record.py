"""The only way to change a migration's status: an occurrence in, the new status and announcements out.

The status is what users see and what a restarted run resumes from, so each occurrence must update both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import assert_never

from crdkeeper.api.meta import READY, ConditionStatus, set_condition, summarize
from crdkeeper.api.storagemigration import (
    MigrationProgress,
    MigrationQuarantine,
    MigrationSweep,
    StorageMigration,
    StorageMigrationSpec,
    StorageMigrationStatus,
)
from crdkeeper.api.texts import bounded
from crdkeeper.core.migration.counts import OldEntry, add_retry, add_tally, stand_still
from crdkeeper.core.migration.occurrences import (
    EvidenceLost,
    ListExpired,
    Occurrence,
    RetryBegan,
    RetryBroken,
    RetryEnded,
    RetryStopped,
    RunBegan,
    Separated,
    SweepBegan,
    SweepCounted,
    SweepEnded,
    SweepQueued,
    Trimmed,
)
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.migration.protocol import STEPS, Finish, Hold, Pin
from crdkeeper.core.text import count


@dataclass(frozen=True, slots=True)
class Announcement:
    """A condition whose status or reason changed, which deserves an Event."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """The effect of an occurrence."""

    status: StorageMigrationStatus
    announcements: Sequence[Announcement]


def record(migration: StorageMigration, occurrence: Occurrence, now: datetime) -> Recorded:
    """The status after the occurrence, and what to announce. Does not change `migration`."""
    page = _Page(migration.spec, migration.metadata.generation, now, migration.status.model_copy(deep=True))
    page.take(occurrence)
    return Recorded(page.status, page.announcements)


@dataclass(slots=True)
class _Page:
    """The status while one occurrence is written to it."""

    spec: StorageMigrationSpec
    generation: int
    now: datetime
    status: StorageMigrationStatus
    announcements: list[Announcement] = field(default_factory=list)

    def take(self, occurrence: Occurrence) -> None:
        if not self.spec.suspend and any(each.type == "Suspended" for each in self.status.conditions):
            self._set("Suspended", "False", "Resumed", "Not suspended.")
        match occurrence:
            case RunBegan():
                self._run_began()
            case Pin():
                self._pinned(occurrence)
            case Hold():
                self._held(occurrence)
            case EvidenceLost():
                self._drop_evidence()
            case Separated():
                self._permitted(occurrence.unseen)
                self.status.settled_resource_version = occurrence.resource_version
                self._set("Settled", "True", "Settled", occurrence.message)
            case SweepQueued(type_):
                self._set(_AT_WORK[type_][0], "Unknown", "Queued", _QUEUED)
                self._running("Queued", _QUEUED)
            case SweepBegan():
                self._sweep_began(occurrence)
            case SweepCounted(tally, before, token, scanned, rate, concurrency):
                add_tally(self.status, tally, before, rate=rate, concurrency=concurrency)
                self._checkpoint(token, scanned)
                self._old_entry(tally.old_entry)
            case ListExpired():
                self._checkpoint(None, 0)
            case SweepEnded():
                self._sweep_ended()
            case RetryBegan():
                self.status.quarantine.rounds += 1
            case RetryBroken():
                self._retry_later()
            case RetryStopped():
                self.status.quarantine.rounds -= 1
            case RetryEnded():
                self._retry_ended(occurrence)
            case Trimmed(removed, kept):
                names = ", ".join(removed)
                message = (
                    f"Removed {names} from status.storedVersions of the CRD, which now lists only {kept}."
                )
                self._set("Trimmed", "True", "Trimmed", message)
            case Finish():
                self._finished(occurrence)
            case _:
                assert_never(occurrence)

    def _set(
        self, type_: str, status: ConditionStatus, reason: str, message: str, *, warning: bool = False
    ) -> None:
        conditions, message = self.status.conditions, bounded(message)
        if set_condition(
            conditions, type_, status, reason, message, generation=self.generation, now=self.now
        ):
            self.announcements.append(Announcement(type_, status, reason, message, warning))
        if type_ == "Succeeded":
            # Ready repeats this for tools that know no other summary; one Event is enough for both.
            set_condition(
                conditions, READY, status, reason, message, generation=self.generation, now=self.now
            )
            ended = self.status.completion_time is not None
            stalled = status == "False" and (ended or reason == "Forbidden")
            summarize(conditions, stalled=stalled, now=self.now)

    def _withdraw(self, type_: str) -> None:
        self.status.conditions[:] = [each for each in self.status.conditions if each.type != type_]

    def _running(self, reason: str, message: str) -> None:
        self._set("Succeeded", "Unknown", reason, message)

    def _run_began(self) -> None:
        # All conditions exist from the start. Unknown is not news.
        news = len(self.announcements)
        present = {each.type for each in self.status.conditions}
        for step in (*STEPS, "Succeeded"):
            if step not in present:
                self._set(step, "Unknown", "Pending", "Not reached yet.")
        del self.announcements[news:]
        self.status.completion_time = None
        if self.spec.mode == "Plan":
            # A plan should be fresh, and it has written nothing that could be kept.
            self.status.sweep = None
            self.status.progress, self.status.quarantine = MigrationProgress(), MigrationQuarantine()
        self.status.observed_generation = self.generation

    def _pinned(self, pin: Pin) -> None:
        self.status.target = pin.target
        self.status.start_time = self.status.start_time or self.now
        if pin.restart:
            self._drop_evidence()
        reason = "TargetChanged" if pin.restart else "Pinned"
        self._set("Resolved", "True", reason, pin.message, warning=pin.restart)
        self._running(reason, pin.message)

    def _drop_evidence(self) -> None:
        status = self.status
        status.settled_resource_version = None
        status.sweep = None
        status.progress, status.quarantine = MigrationProgress(), MigrationQuarantine()
        status.restarts += 1
        for step in STEPS[1:]:
            self._set(step, "Unknown", "Pending", "Not reached yet.")

    def _held(self, hold: Hold) -> None:
        suspended = hold.condition == "Suspended"
        self._set(
            hold.condition,
            "True" if suspended else "False",
            hold.reason,
            hold.message,
            warning=hold.failing,
        )
        self._set("Succeeded", "False" if hold.failing else "Unknown", hold.reason, hold.message)
        stand_still(self.status.progress)

    def _permitted(self, unseen: Sequence[str]) -> None:
        message = "All required permissions are granted."
        if unseen:
            lists = " and ".join(f"list storageversionmigrations.{group}" for group in unseen)
            message += f" It is not known whether another migrator is running: {lists} is not permitted."
        self._set("Permitted", "True", "Allowed", message)

    def _sweep_began(self, began: SweepBegan) -> None:
        status = self.status
        if began.fresh:
            self._withdraw("ManagedFieldsCurrent")
            status.sweep = MigrationSweep(type=began.type, rewritten_before=status.progress.rewritten)
            if began.type == "Rewrite" and status.progress.quarantined:
                # A pass over objects that were refused before is a retry round.
                status.quarantine.rounds += 1
                status.progress.quarantined = status.progress.gone = 0
                status.quarantine.objects = []
        if began.type == "Plan":
            for step in ("Settled", "Rewritten", "Verified", "Trimmed"):
                self._set(step, "False", "PlanOnly", "Mode Plan writes nothing.")
        self._permitted(began.unseen)
        condition, reason, message = _AT_WORK[began.type]
        self._set(condition, "Unknown", reason, message)
        self._running(reason, message)

    def _old_entry(self, found: OldEntry | None) -> None:
        if found is None:
            return
        version = found.version
        when = (
            f"Nothing needs to be done while {version} is served. Before it is removed from spec.versions,"
            if found.served
            else f"{version} is not served any more. Before it is removed from spec.versions,"
        )
        self._set(
            "ManagedFieldsCurrent",
            "False",
            "OldVersionNamed",
            f"metadata.managedFields still names {version}, for example of {found.object} (manager "
            f"{found.manager}). {when} migrate with managedFields: Retarget and verify: Full (in `crdkeeper "
            f"migrate`: --managed-fields retarget --verify full), or server-side apply to such objects "
            f"fails.",
            warning=not found.served,
        )

    def _checkpoint(self, token: str | None, scanned: int) -> None:
        if self.status.sweep is not None:
            self.status.sweep.continue_token, self.status.sweep.scanned = token, scanned

    def _sweep_ended(self) -> None:
        sweep = self.status.sweep
        if sweep is None:
            return
        sweep.done, sweep.continue_token = True, None
        stand_still(self.status.progress)
        if sweep.type == "Plan":
            return
        if self.status.progress.quarantined:
            self._retry_later()
            return
        self._all_written()
        if sweep.type == "Verify":
            self._verified(sweep)

    def _verified(self, sweep: MigrationSweep) -> None:
        passed = f"A second pass over {count(sweep.scanned, 'object')}"
        found = count(sweep.unexpected, "object")
        if not sweep.unexpected:
            self._set("Verified", "True", "NothingLeft", f"{passed} found none left.")
        elif self.spec.verify == "Full":
            # In a full pass, the write itself is the proof for its object. A third pass would not find less:
            # if a webhook changes each object on every write, no object ever remains unchanged.
            self._set("Verified", "True", "AllPatched", f"{passed} patched all of them and rewrote {found}.")
        else:
            message = f"The second pass found and rewrote {found}."
            self._set("Verified", "False", "FoundMore", message)

    def _retry_later(self) -> None:
        quarantine, retry = self.status.quarantine, self.spec.retry
        seconds = backoff(quarantine.rounds, retry.backoff_seconds, retry.max_backoff_seconds)
        quarantine.next_retry_time = self.now + timedelta(seconds=seconds)

    def _retry_ended(self, ended: RetryEnded) -> None:
        add_retry(self.status, ended.still, ended.tally)
        if ended.still:
            self._retry_later()
            return
        # The last refused object was written: only verification remains.
        self.status.sweep = MigrationSweep(type="Rewrite", scanned=self.status.progress.total, done=True)
        self._all_written()

    def _all_written(self) -> None:
        progress = self.status.progress
        self.status.quarantine = MigrationQuarantine(rounds=self.status.quarantine.rounds)
        self._set(
            "Rewritten",
            "True",
            "AllWritten",
            f"{count(progress.rewritten, 'object')} rewritten, {progress.current:,} already current, "
            f"{progress.gone:,} deleted in the meantime.",
        )

    def _finished(self, finish: Finish) -> None:
        status = self.status
        if finish.succeeded:
            self._not_trimmed(finish.reason)
            status.progress.percent = 100
        if finish.reason.startswith("Definition"):
            self._set("Resolved", "False", finish.reason, finish.message, warning=True)
        status.observed_generation = self.generation
        status.completion_time = self.now
        outcome: ConditionStatus = "True" if finish.succeeded else "False"
        self._set("Succeeded", outcome, finish.reason, finish.message, warning=not finish.succeeded)

    def _not_trimmed(self, reason: str) -> None:
        """Explain, for a success, why there was nothing to trim, unless we have trimmed."""
        target = self.status.target
        if reason == "Migrated" and not self.spec.trim:
            self._set(
                "Trimmed", "False", "NotRequested", "spec.trim is false: storedVersions was not changed."
            )
        elif reason == "Migrated" and target is not None and target.uid is None:
            self._set("Trimmed", "False", "NotApplicable", "Only a CRD has storedVersions to trim.")
        elif reason in ("Migrated", "AlreadyCurrent"):
            for step in STEPS if reason == "AlreadyCurrent" else ("Trimmed",):
                if not any(each.type == step and each.status == "True" for each in self.status.conditions):
                    self._set(
                        step, "True", "AlreadyCurrent", "storedVersions lists only the storage version."
                    )


_AT_WORK = {
    "Rewrite": ("Rewritten", "Rewriting", "Objects are being rewritten."),
    "Verify": ("Verified", "Verifying", "A second pass looks for objects that are not proved current."),
    "Plan": ("Succeeded", "Planning", "Every write is tried as a server-side dry run."),
}
"""Condition, its reason and message while a pass runs."""
_QUEUED = "Waits until another migration has written its objects."
