"""How long a command follows someone else's run of a migration."""

from datetime import datetime

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.migration.pace import backoff

_HOPELESS = frozenset((("Permitted", "Forbidden"), ("Resolved", "ResourceNotFound")))
"""Waits of somebody else's run, by condition and reason, that only a person can end: a command reports that
and exits, as it does for its own run (`Hold.lasting`)."""
_ENDED_SECONDS = 120.0
"""A process that has trouble stores something at each attempt, and these are up to 60 seconds apart."""
_LONGEST_SECONDS = 3600.0


def given_up(migration: StorageMigration, limit: int | None) -> bool:
    """Whether not to wait for what holds up someone else's run; `limit` is that of retry rounds."""
    status = migration.status
    waiting = status.progress.quarantined and status.quarantine.next_retry_time is not None
    if waiting and limit is not None and status.quarantine.rounds >= limit:
        return True
    return any(each.status == "False" and (each.type, each.reason) in _HOPELESS for each in status.conditions)


def nothing_due(migration: StorageMigration, now: datetime) -> bool:
    """Whether its run has nothing to do now, and so nothing to store: the status says so."""
    suspended = find_condition(migration.status.conditions, "Suspended")
    if migration.spec.suspend and suspended is not None and suspended.status == "True":
        return True
    retry_at = migration.status.quarantine.next_retry_time
    return retry_at is not None and retry_at > now


def silence(times: int) -> float:
    """Seconds without news after which another process is taken for dead, after so many times before.

    They double: one that lives, but stores nothing for as long, follows in its turn, and what delays one
    (such as another migrator) delays the other. So both do not take turns all the time.
    """
    return backoff(times, _ENDED_SECONDS, _LONGEST_SECONDS)
