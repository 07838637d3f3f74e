"""Who reads a version, as far as an API server's metrics tell: how many requests, by verb, but not whose.

`apiserver_requested_deprecated_apis` knows deprecated versions only, and stays 1 until the API server
restarts. `apiserver_request_total` and `apiserver_longrunning_requests` know every version, and count: what
has grown between two looks was used between them.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from crdkeeper.api.meta import format_time
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.retirement.evidence import Reader
from crdkeeper.core.text import count

_REQUESTS: Final = "apiserver_request_total"
_OPEN: Final = "apiserver_longrunning_requests"
_DEPRECATED: Final = "apiserver_requested_deprecated_apis"
_STARTED: Final = "process_start_time_seconds"
_FAMILIES: Final = tuple(f"{each}{{" for each in (_REQUESTS, _OPEN, _DEPRECATED))
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_WATCH: Final = "WATCH"


@dataclass(slots=True)
class RequestTally:
    """Reads the metrics of one API server line by line, and keeps those of one version of a resource."""

    group: str
    version: str
    resource: str
    server: str = ""
    """The address that the API server advertises."""
    started: datetime | None = None
    deprecated: bool = False
    """Whether the API server says that the version is deprecated, and was requested."""
    _counts: dict[str, int] = field(default_factory=dict)
    _watches: int = 0

    def add(self, line: str) -> None:
        """Count one line; what is no metric that counts is left out."""
        if line.startswith(f"{_STARTED} "):
            self.started = _moment(line.partition(" ")[2])
        elif line.startswith(_FAMILIES) and f'group="{self.group}"' in line:
            name, _, rest = line.partition("{")
            labels, _, value = rest.rpartition("} ")
            found = dict(_LABEL.findall(labels))
            if [found.get(each) for each in ("group", "version", "resource")] == [
                self.group,
                self.version,
                self.resource,
            ]:
                self._add(name, found.get("verb", ""), _number(value))

    def _add(self, name: str, verb: str, number: int) -> None:
        if name == _DEPRECATED:
            self.deprecated = self.deprecated or number > 0
        elif name == _OPEN:
            self._watches += number if verb == _WATCH else 0
        elif number > 0:
            self._counts[verb] = self._counts.get(verb, 0) + number

    def reader(self) -> Reader | None:
        """What was counted, also if it is nothing; None if the API server does not even say since when."""
        requested = self._counts or self._watches or self.deprecated
        if not requested and self.started is None:
            return None
        requests = [f"{number:,} x {verb}" for verb, number in sorted(self._counts.items())]
        opened = [f"{count(self._watches, 'open watch')}"] if self._watches == 1 else []
        opened = [f"{self._watches:,} open watches"] if self._watches > 1 else opened
        what = ", ".join(requests + opened) or ("requests" if requested else "none")
        if self.deprecated:
            what += f"{', some of them' if requests + opened else ''} while it was deprecated"
        since = f" since it started at {format_time(self.started)}" if self.started else ""
        return Reader(
            server=bounded(self.server, LINE_BYTES),
            what=what,
            since=self.started,
            message=f"The API server that answered has counted requests at {self.version}{since}: {what}.",
            counts=dict(self._counts),
        )


def _number(text: str) -> int:
    """A metric's value; 0 for what is no number, such as NaN."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return 0


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(text), UTC)
    except (ValueError, OverflowError, OSError):
        return None
