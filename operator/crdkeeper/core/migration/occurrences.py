"""What happens to a migration, as input of `record`: the only way in which a status changes.

They include the actions `Pin`, `Hold` and `Finish` of the protocol: once decided, they have happened.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from crdkeeper.api.storagemigration import RefusedObject
from crdkeeper.core.migration.counts import Baseline, SweepTally
from crdkeeper.core.migration.protocol import Finish, Hold, Pin, SweepType


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A process starts to run the migration, for the first time or again."""


@dataclass(frozen=True, slots=True)
class EvidenceLost:
    """What was proved is no longer valid, though the target is the same."""


@dataclass(frozen=True, slots=True)
class Separated:
    """Settled: what is written above `resource_version` is stored at the storage version."""

    resource_version: str
    message: str
    unseen: Sequence[str] = ()
    """The groups of StorageVersionMigrations that may not be listed, so that another migrator is not seen."""


@dataclass(frozen=True, slots=True)
class SweepQueued:
    """A pass is due, but as many migrations are at work as may be at the same time."""

    type: SweepType


@dataclass(frozen=True, slots=True)
class SweepBegan:
    """A pass runs; `fresh` if it is a new one, not the recorded one resumed."""

    type: SweepType
    fresh: bool
    unseen: Sequence[str] = ()
    """See `Separated`."""


@dataclass(frozen=True, slots=True)
class SweepCounted:
    """A pass has made progress: `tally` since `before`, with `scanned` objects before `token`."""

    tally: SweepTally
    before: Baseline
    token: str | None
    scanned: int
    rate: float
    """Objects per second."""
    concurrency: int
    """Requests in flight."""


@dataclass(frozen=True, slots=True)
class ListExpired:
    """The continue token is no longer valid."""


@dataclass(frozen=True, slots=True)
class SweepEnded:
    """A pass has processed all objects."""


@dataclass(frozen=True, slots=True)
class RetryBegan:
    """A retry round over only the refused objects starts."""


@dataclass(frozen=True, slots=True)
class RetryBroken:
    """A cause that concerns no single object has ended a retry round."""


@dataclass(frozen=True, slots=True)
class RetryStopped:
    """A retry round stops because what it depends on has changed: it does not count, and is due at once."""


@dataclass(frozen=True, slots=True)
class RetryEnded:
    """A retry round is complete; `still` are the objects that were refused again."""

    still: Sequence[RefusedObject]
    tally: SweepTally


@dataclass(frozen=True, slots=True)
class Trimmed:
    """status.storedVersions of the CRD was reduced."""

    removed: Sequence[str]
    kept: str


Occurrence = (
    RunBegan
    | Pin
    | Hold
    | EvidenceLost
    | Separated
    | SweepQueued
    | SweepBegan
    | SweepCounted
    | ListExpired
    | SweepEnded
    | RetryBegan
    | RetryBroken
    | RetryStopped
    | RetryEnded
    | Trimmed
    | Finish
)
