"""What happens to a migration, as `record` takes it: the only way in which a status changes.

The actions `Pin`, `Hold` and `Finish` of the protocol are among them: once decided, they have happened.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from crdkeeper.api.storagemigration import RefusedObject
from crdkeeper.core.migration.counts import Baseline, SweepTally
from crdkeeper.core.migration.protocol import Finish, Hold, Pin, SweepType


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A process takes the migration up, for the first time or again."""


@dataclass(frozen=True, slots=True)
class EvidenceLost:
    """What was proved does not hold any more, though the target is the same."""


@dataclass(frozen=True, slots=True)
class Separated:
    """Settled: what is written above `resource_version` is stored at the storage version."""

    resource_version: str
    message: str
    others_seen: bool = True
    """Whether another migrator at work would be seen."""


@dataclass(frozen=True, slots=True)
class SweepBegan:
    """A pass is at work; `fresh` if it is a new one rather than the recorded one going on."""

    type: SweepType
    fresh: bool
    others_seen: bool = True
    """As of `Separated`."""


@dataclass(frozen=True, slots=True)
class SweepCounted:
    """A pass has come this far: `tally` since `before`, and `scanned` objects lie behind `token`."""

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
    """The continue token is worth nothing any more."""


@dataclass(frozen=True, slots=True)
class SweepEnded:
    """A pass has gone through all objects."""


@dataclass(frozen=True, slots=True)
class RetryBegan:
    """A round of retries over the refused objects alone."""


@dataclass(frozen=True, slots=True)
class RetryBroken:
    """Something that is no object's fault has ended a round of retries."""


@dataclass(frozen=True, slots=True)
class RetryEnded:
    """A round of retries is through; `still` are the objects that were refused again."""

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
    | SweepBegan
    | SweepCounted
    | ListExpired
    | SweepEnded
    | RetryBegan
    | RetryBroken
    | RetryEnded
    | Trimmed
    | Finish
)
