"""How long to wait until every API server stores at the new version.

An API server learns of a CRD's change through its watch, and requests that started before continue at the old
version until they end. No API shows when that is over, so evidence starts to count only after

* each API server was seen alive twice after the change: its identity Lease has a resourceVersion above the
  CRD's (both count revisions of one etcd, so no clocks are compared), and later a higher one. A server that
  was frozen during the change, and would store one more object at the old version when it wakes, cannot have
  renewed its Lease; and
* `settleSeconds` have passed since the change, and since all were seen alive: a server that wakes serves
  requests before its watch has caught up, and each of these may take as long as any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from crdkeeper.core.migration.observation import ApiServerLease, Observation
from crdkeeper.core.text import count


@dataclass(frozen=True, slots=True)
class Settling:
    """The remaining `wait` in seconds, at least; 0 means settled."""

    wait: float
    reason: str
    message: str


def settling(
    seen: Observation,
    *,
    settle_seconds: int,
    require_leases: bool,
    changed_at: datetime | None,
    renewed_at: datetime | None,
    now: datetime,
) -> Settling:
    """Decide whether all writes are at the new version by now.

    `changed_at` is a time no earlier than the change of the storage version (None: just now), and
    `renewed_at` when the `RollCall` was complete (None: it is not).
    """
    silent = stale_leases(seen, now) if require_leases else ()
    if silent:
        names = ", ".join(each.name for each in silent[:3])
        return Settling(
            2.0,
            "APIServerNotSeen",
            f"Waiting for {count(len(silent), 'API server')} to renew an identity Lease in kube-system after "
            f"the storage version changed: {names}. A frozen one could store the old version when "
            f"it resumes. If an API server is gone for good, delete its Lease, or wait until "
            f"{max(each.expires_at for each in silent):%H:%M:%S} UTC when it expires.",
        )
    since = changed_at or now
    if require_leases and seen.leases:
        if renewed_at is None:
            return _second_renewal(settle_seconds)
        since = max(since, renewed_at)
    settled_at = since + timedelta(seconds=settle_seconds)
    left = (settled_at - now).total_seconds()
    if left > 0:
        return Settling(
            left,
            "Settling",
            f"Waiting another {left:.0f} s, so that no API server still writes the old storage version "
            f"(settleSeconds: {settle_seconds}).",
        )
    if not require_leases:
        proof = "API server Leases were not checked, as requested"
    elif seen.leases is None:
        proof = "reading API server Leases is not permitted, so a frozen server would go unnoticed"
    elif not seen.leases:
        proof = "the cluster publishes no API server Leases, so a frozen server would go unnoticed"
    else:
        proof = f"{count(len(seen.leases), 'API server')} of {len(seen.leases)} seen alive after the change"
    return Settling(0.0, "Settled", f"{settle_seconds} s have passed since the change, and {proof}.")


def _second_renewal(settle_seconds: int) -> Settling:
    return Settling(
        max(1.0, settle_seconds),
        "Settling",
        "Each API server has renewed its Lease once since the change. Waiting for its next renewal, about "
        f"ten seconds, and then for settleSeconds ({settle_seconds}).",
    )


def stale_leases(seen: Observation, now: datetime, above: int = 0) -> Sequence[ApiServerLease]:
    """The Leases not renewed since the CRD's last change nor `above` a revision, except expired ones.

    When a resource without a CRD changed is not known: then any renewal is one after the change, and the next
    one must follow.
    """
    if not seen.leases:
        return ()
    floor = max(above, int(seen.definition.resource_version) if seen.definition is not None else 0)
    return tuple(
        each for each in seen.leases if int(each.resource_version) <= floor and each.expires_at > now
    )


@dataclass(slots=True)
class RollCall:
    """Sees each API server alive twice after a change of the CRD; starts over with the next change.

    Once is not enough: a server may renew its Lease right after the change and freeze before it has seen it.
    Renewals are seconds apart, which is plenty for a running server to catch up.
    """

    complete_at: datetime | None = None
    _first: int = field(default=0, init=False)
    """The newest Lease when each had been renewed once."""

    def look(self, seen: Observation, now: datetime) -> None:
        """Process another observation."""
        if self.complete_at is not None or not seen.leases or stale_leases(seen, now, self._first):
            return
        if self._first:
            self.complete_at = now
        else:
            self._first = max(int(each.resource_version) for each in seen.leases)
