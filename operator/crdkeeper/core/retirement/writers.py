"""Who writes a version: a census of managedFields by manager and namespace, in bounded memory.

A tenant can write any manager and any time into managedFields. A time in the future counts as now: it may be
that of a write right now, by an API server whose clock is wrong. A forged one keeps a version in use, as each
write at it would, and never takes one away.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.apiserver.golang.times import moment
from crdkeeper.core.diagnosis.census import EntryCount, object_name
from crdkeeper.core.retirement.evidence import SHOWN, Writer

MOST_WRITERS: Final = 2000
"""Writers that are counted separately: a client may invent a manager's name for every request."""
_SKEW: Final = timedelta(minutes=5)
"""API servers write the times, and their clocks differ: a time so little ahead is taken as it is."""
_TIME_CHARACTERS: Final = len("2026-11-23T12:00:00Z")
"""Go prints years before 0 and after 9999 longer than that."""


_Key = tuple[str, str, str, str]


@dataclass(slots=True)
class WriterTally:
    """Counts objects one by one. `now` tells the API server's time, which goes on meanwhile."""

    group: str
    version: str
    now: Callable[[], datetime]
    counted: int = 0
    objects: int = 0
    """Objects with an entry that names the version."""
    _newest: str = ""
    _counts: dict[_Key, EntryCount] = field(default_factory=dict)
    _ahead: dict[_Key, str] = field(default_factory=dict)
    """Of writers with an entry whose time is in the future: that time, and whose entry it is."""
    _dropped: int = 0

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Count objects by their metadata, right after they were listed."""
        wanted, now = f"{self.group}/{self.version}", self.now()
        # All are in RFC 3339, to the second and in UTC: they compare like their times.
        known, latest = _text(now), _text(now + _SKEW)
        for each in items:
            self.counted += 1
            found = [
                entry
                for entry in each["metadata"].get("managedFields") or ()
                if entry.get("apiVersion") == wanted
            ]
            self.objects += bool(found)
            for entry in found:
                key = (
                    entry.get("manager", ""),
                    entry.get("operation", ""),
                    entry.get("subresource", ""),
                    each["metadata"].get("namespace") or "",
                )
                time = entry.get("time") or ""
                ahead = time > latest or len(time) > _TIME_CHARACTERS
                self._count(each["metadata"], key, known if ahead else time)
                if ahead:
                    self._ahead[key] = f"{time} of {object_name(each['metadata'])}"

    def _count(self, metadata: Mapping[str, Any], key: _Key, time: str) -> None:
        self._newest = max(self._newest, time)
        count = self._counts.get(key)
        if count is None:
            if len(self._counts) >= MOST_WRITERS:
                self._forget()
            count = self._counts[key] = EntryCount()
        count.add(metadata, time)

    def _forget(self) -> None:
        """Forget the older half: whoever still writes is among the newer ones."""
        newer = sorted(self._counts.items(), key=lambda item: item[1].last, reverse=True)
        self._counts = dict(newer[: MOST_WRITERS // 2])
        self._ahead = {key: said for key, said in self._ahead.items() if key in self._counts}
        self._dropped += len(newer) - len(self._counts)

    @property
    def newest(self) -> datetime | None:
        """The time of the newest write by anybody."""
        return moment(self._newest) if self._newest else None

    @property
    def writer_count(self) -> int:
        """All writers; those that were forgotten may be counted again."""
        return len(self._counts) + self._dropped

    def writers(self) -> tuple[Writer, ...]:
        """At most SHOWN, the newest first."""
        newer = sorted(
            self._counts.items(), key=lambda item: (item[1].last, item[1].objects, item[0]), reverse=True
        )
        return tuple(_writer(key, count, self._ahead.get(key, "")) for key, count in newer[:SHOWN])


def _text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _writer(key: _Key, count: EntryCount, ahead: str) -> Writer:
    manager, operation, subresource, namespace = key
    return Writer(
        manager=bounded(manager, LINE_BYTES),
        operation=operation,
        subresource=bounded(subresource, LINE_BYTES),
        namespace=namespace,
        objects=count.objects,
        last=count.newest,
        examples=tuple(count.examples),
        ahead=bounded(ahead, LINE_BYTES),
    )
