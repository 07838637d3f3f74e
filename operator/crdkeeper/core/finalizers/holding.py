"""An object in deletion that its finalizers hold, and its last sign of life."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

MOST_FINALIZERS: Final = 100
"""Of one object: real ones have a few, and a tenant can give one a hundred thousand."""


@dataclass(frozen=True, slots=True)
class Held:
    """An object that is being deleted and has finalizers."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    since: datetime
    """When its deletion was requested."""
    finalizers: tuple[str, ...]
    """The first MOST_FINALIZERS of them; others count only when these are gone. Empty where only the place of
    one matters."""
    writer: str
    """The manager with the newest time in managedFields; empty if there is none."""
    written: datetime | None
    """That time."""
    watched_since: datetime | None = None
    """Since when each change has been noticed, whatever it was; None if nobody compares."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def written_since(self) -> bool:
        """Whether anybody has written it after its deletion was requested."""
        return self.written is not None and self.written > self.since


def held(metadata: Mapping[str, Any], now: datetime) -> Held | None:
    """What holds an object, by its metadata; None if nothing does, or if it is not being deleted.

    Whoever writes an object may set the times in managedFields. One that is not past counts as now, so that
    it can keep a finalizer, but never release one.
    """
    since, finalizers = metadata.get("deletionTimestamp"), metadata.get("finalizers")
    if not since or not finalizers:
        return None
    writer, written = "", None
    for entry in metadata.get("managedFields") or ():
        if not entry.get("time"):
            continue
        at = _past(entry["time"], now)
        if written is None or at >= written:
            writer, written = entry.get("manager") or "", at
    return Held(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        since=_past(since, now),
        finalizers=tuple(finalizers[:MOST_FINALIZERS]),
        writer=writer,
        written=written,
    )


def _past(text: str, now: datetime) -> datetime:
    try:
        return min(datetime.fromisoformat(text), now)
    except ValueError:  # Go prints years that Python has no date for
        return now
