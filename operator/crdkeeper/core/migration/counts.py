"""The counts of objects in a migration's status, to which several processes may have contributed.

A pass counts from zero. The counts stored when it started, or resumed after a restart, are added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crdkeeper.api.storagemigration import (
    QUARANTINE_SHOWN,
    MigrationProgress,
    RefusedObject,
    StorageMigrationStatus,
)


@dataclass(frozen=True, slots=True)
class OldEntry:
    """An entry of an object's managedFields that names a version about to be removed."""

    object: str
    manager: str
    version: str
    served: bool
    """Whether that version is still served, so that nobody is about to remove it."""


@dataclass(slots=True)
class SweepTally:
    """What a pass has counted since it started or resumed.

    `refused` names only the first ones, `refused_count` counts all; `total` is how many objects there are to
    process, as of the latest page.
    """

    scanned: int = 0
    rewritten: int = 0
    current: int = 0
    gone: int = 0
    unexpected: int = 0
    total: int = 0
    refused_count: int = 0
    refused: Sequence[RefusedObject] = ()
    old_entry: OldEntry | None = None
    """The first that was found, if any were looked for."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was stored when a pass started or resumed."""

    scanned: int
    unexpected: int
    progress: MigrationProgress
    refused: Mapping[tuple[str, str], RefusedObject]

    @classmethod
    def of(cls, status: StorageMigrationStatus) -> "Baseline":
        """Take the baseline from the current status."""
        sweep = status.sweep
        return cls(
            scanned=sweep.scanned if sweep else 0,
            unexpected=sweep.unexpected if sweep else 0,
            progress=status.progress.model_copy(),
            refused={key(each): each for each in status.quarantine.objects},
        )

    @classmethod
    def of_shared(cls, status: StorageMigrationStatus) -> "Baseline":
        """Take the baseline of a pass whose counts are kept elsewhere, from its beginning."""
        before = status.sweep.rewritten_before if status.sweep else 0
        return cls(scanned=0, unexpected=0, progress=MigrationProgress(rewritten=before), refused={})

    def with_refused(self, refused: Sequence[RefusedObject]) -> list[RefusedObject]:
        """The refused objects from before and of the pass, each once."""
        return [*self.refused.values(), *(each for each in refused if key(each) not in self.refused)]


def key(refused: RefusedObject) -> tuple[str, str]:
    """Identifies a refused object among those of its resource."""
    return (refused.namespace, refused.name)


def add_tally(
    status: StorageMigrationStatus, tally: SweepTally, before: Baseline, *, rate: float, concurrency: int
) -> None:
    """Put a pass's counts into the status, in place. Does nothing if the status has no pass."""
    sweep, progress = status.sweep, status.progress
    if sweep is None:
        return
    scanned = before.scanned + tally.scanned
    sweep.unexpected = before.unexpected + tally.unexpected
    progress.rewritten = before.progress.rewritten + tally.rewritten
    progress.gone = before.progress.gone + tally.gone
    again = sum(key(each) in before.refused for each in tally.refused)
    progress.quarantined = before.progress.quarantined + tally.refused_count - again
    progress.total = max(scanned, before.scanned + tally.total)
    if sweep.type == "Rewrite":
        # By difference: what a killed run rewrote after its last checkpoint is found current.
        progress.current = max(0, scanned - progress.rewritten - progress.gone - progress.quarantined)
    if sweep.type != "Verify":
        # 100 is reserved for the end, when all is verified and trimmed.
        progress.percent = min(99, 100 * scanned // max(1, progress.total))
    left = progress.total - scanned
    progress.objects_per_second, progress.concurrency = round(rate), concurrency
    progress.remaining = format_duration(left / rate) if rate and left > 0 else ""
    status.quarantine.objects = before.with_refused(tally.refused)[:QUARANTINE_SHOWN]


def add_retry(status: StorageMigrationStatus, still: Sequence[RefusedObject], tally: SweepTally) -> None:
    """Put the counts of a retry round, over only the refused objects, into the status, in place."""
    progress = status.progress
    progress.rewritten += tally.rewritten
    progress.gone += tally.gone
    progress.quarantined = len(still)
    progress.current += tally.current
    # A pass that was interrupted and resumed may have written some of these meanwhile, and counted them.
    progress.current = min(progress.current, max(0, progress.total - progress.rewritten))
    status.quarantine.objects = list(still[:QUARANTINE_SHOWN])


def stand_still(progress: MigrationProgress) -> None:
    """Nothing is being written; in place."""
    progress.objects_per_second, progress.concurrency, progress.remaining = 0, 0, ""


def format_duration(seconds: float) -> str:
    """Format seconds for people: 45s, 2m10s, 3h05m."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
