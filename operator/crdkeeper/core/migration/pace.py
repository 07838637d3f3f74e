"""How fast to write: requests in flight by latency and throttling, and budgets per second.

The API server's capacity is unknown and changes. Like TCP Vegas and Netflix's concurrency-limits, `Pace`
compares recent latency to that of a server without a queue: while the two are close, it allows more requests;
when requests queue up, fewer. So it uses an idle server fully, and leaves room on a busy one.
"""

from dataclasses import dataclass, field
from math import sqrt

_TOLERANCE = 5.0
"""The limit falls when latency exceeds this multiple of the unqueued latency.

With a single request at a time the server is idle while the client works. With more, etcd writes several
changes at once: on two cores the write rate grew by a quarter from 8 requests in flight, which a multiple of
3 allowed, to 16. Further requests only queue.
"""
_WINDOW = 32
"""Answers per adjustment."""
_PROBE_EVERY = 64
"""Windows between two measurements of the unqueued latency: some seconds at full speed."""
_PROBE_CONCURRENCY = 2
"""Few enough not to queue. A measurement at a fraction of the limit would grow with the queue."""
_WARM_UP = 8
"""First answers, which include the setup of connections."""


@dataclass(slots=True)
class Pace:
    """Adapts the number of requests in flight between 1 and `maximum`."""

    maximum: int
    limit: float = 4.0
    _unqueued: float = field(default=0.0, init=False)
    _sum: float = field(default=0.0, init=False)
    _count: int = field(default=0, init=False)
    _ignore: int = field(default=_WARM_UP, init=False)
    _peak: float = field(default=0.0, init=False)
    """At least the requests in flight: they were sent at the limits of the last few windows."""
    _windows: int = field(default=0, init=False)
    _probing: bool = field(default=False, init=False)

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight now."""
        limit = min(self.limit, _PROBE_CONCURRENCY) if self._probing else self.limit
        return max(1, min(self.maximum, int(limit)))

    def answered(self, latency: float) -> None:
        """An answer arrived after `latency` seconds."""
        if self._ignore:
            self._ignore -= 1
            return
        self._sum += latency
        self._count += 1
        if self._count < min(_WINDOW, 4 * self.concurrency):
            return
        recent = self._sum / self._count
        self._sum, self._count = 0.0, 0
        if self._probing:
            self._unqueued, self._probing, self._windows = recent, False, 0
            return
        self._unqueued = min(recent, self._unqueued or recent)
        gradient = max(0.5, min(1.0, _TOLERANCE * self._unqueued / recent))
        self._peak = max(self.limit, 0.8 * self._peak)
        self.limit = max(1.0, min(float(self.maximum), self.limit * gradient + sqrt(self.limit)))
        self._windows += 1
        if self._windows == _PROBE_EVERY:
            # Requests now in flight have queued: the measurement would take their latency for that of the
            # server.
            self._probing, self._ignore = True, int(max(self._peak, self.limit))

    def throttled(self) -> None:
        """The server answered 429, or failed: halve the limit."""
        self.limit = max(1.0, self.limit / 2)
        self._sum, self._count = 0.0, 0


@dataclass(slots=True)
class Budget:
    """Units per second, with bursts of at most one second's worth. Times are seconds of a monotonic clock."""

    per_second: float
    _free_at: float = field(default=0.0, init=False)

    def reserve(self, units: float, now: float) -> float:
        """Take `units`. Returns how many seconds to wait before using them."""
        start = max(self._free_at, now - 1.0)
        self._free_at = start + units / self.per_second
        return max(0.0, self._free_at - now)


def backoff(round_: int, first: float, longest: float) -> float:
    """Seconds before round `round_` (0, 1, …): doubling from `first`, at most `longest`."""
    return min(longest, first * 2.0 ** min(round_, 32))
