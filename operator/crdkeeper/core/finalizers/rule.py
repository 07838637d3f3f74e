"""When a finalizer is released: the decision on one object.

Nothing in a cluster says which process serves a finalizer. The name of a manager in managedFields is whatever
its client chose, and an upgrade may change it. So a write by anybody is a sign of life, and the time starts
over with it. One that only removes something leaves no time, and is seen only by whoever watches the object:
so whoever has just begun to watch does it for a while first. A finalizer that is released too late costs
patience, one that is released too early what its controller would have cleaned up.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from crdkeeper.apiserver.golang import durations
from crdkeeper.core.finalizers.holding import Held

WATCH: Final = timedelta(minutes=10)
"""How long an object is watched before its finalizers are released, unless their time is shorter."""
_TRUNCATED: Final = timedelta(seconds=1)
"""The API server truncates times to whole seconds."""
_OF_KUBERNETES: Final = frozenset(
    ("foregroundDeletion", "orphan", "kubernetes", "customresourcecleanup.apiextensions.k8s.io")
)
_OURS: Final = "crdkeeper.dev"


class Release(Enum):
    """Whether a finalizer is released from an object."""

    WAITING = "waiting"
    """The object has not been in deletion, or not been watched, for long enough."""
    WRITTEN = "written"
    """Somebody has written it since its deletion was requested, and otherwise it waits."""
    DUE = "due"


@dataclass(frozen=True, slots=True)
class ReleaseDecision:
    """Whether a finalizer is released, and since or from when."""

    release: Release
    due: datetime


def decide(object_: Held, after: timedelta, now: datetime) -> ReleaseDecision:
    """Whether the time for a finalizer of an object is over."""
    due = max(object_.since, object_.written or object_.since) + after + _TRUNCATED
    if object_.watched_since is not None:
        due = max(due, object_.watched_since + min(after, WATCH))
    if now >= due:
        return ReleaseDecision(Release.DUE, due)
    return ReleaseDecision(Release.WRITTEN if object_.written_since else Release.WAITING, due)


def why_never(name: str) -> str:
    """Why this finalizer is never released, whoever names it; empty if it may be."""
    domain = name.partition("/")[0]
    if name in _OF_KUBERNETES:
        return f"Kubernetes itself serves the finalizer {name}"
    if domain == _OURS or domain.endswith(f".{_OURS}"):
        return f"crdkeeper itself serves the finalizer {name}"
    return ""


def parse_after(text: str) -> timedelta:
    """A duration such as `24h`. Raises ValueError: it must be at least a second, and at most ten years."""
    nanoseconds = durations.parse(text)
    if nanoseconds is None:
        raise ValueError(f"{text!r} is not a duration such as 24h or 90m")
    after = timedelta(seconds=nanoseconds // 10**9)
    if not timedelta(seconds=1) <= after <= timedelta(days=3650):
        raise ValueError(f"{text!r} is not between a second and ten years")
    return after
