"""How long certificates are valid, when they are renewed, and how long others need to see a change."""

from dataclasses import dataclass
from datetime import datetime, timedelta

_DAY = timedelta(days=1)
_SLACK_PART = 10
_RENEWED_PART = 3
"""The part of the lifetime left at renewal: early enough for a cluster that is down for weeks."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long things take. The defaults suit a cluster, not a test."""

    authority: timedelta = 3650 * _DAY
    """Lifetime of a CA."""
    serving: timedelta = 90 * _DAY
    """Lifetime of a serving certificate, unless its CA ends earlier."""
    skew: timedelta = timedelta(hours=1)
    """How far other clocks may be behind ours; at most a tenth of a lifetime."""
    settle: timedelta = timedelta(seconds=60)
    """How long API servers need at most to see a CRD's change: they watch CRDs."""
    spread: timedelta = timedelta(minutes=10)
    """How long replicas need at most to serve a new certificate: kubelets sync Secrets within minutes."""
    look: timedelta = timedelta(seconds=60)
    """How often to check whether someone else has changed the Secrets."""


def validity(now: datetime, lifetime: timedelta, skew: timedelta) -> tuple[datetime, datetime]:
    """The start and the end of a new certificate's validity."""
    return now - min(skew, lifetime / _SLACK_PART), now + lifetime


def renewed_at(not_before: datetime, not_after: datetime) -> datetime:
    """When it is time for the next one."""
    return not_after - (not_after - not_before) / _RENEWED_PART
