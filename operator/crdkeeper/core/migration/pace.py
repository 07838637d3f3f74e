"""How fast to write: requests in flight by latency and throttling, and budgets per second.

The API server's capacity is not known and changes. Like the gradient limiters of TCP Vegas and Netflix's
concurrency-limits, `Pace` compares recent latency to the lowest seen: while it stays near, more requests
may fly; when they queue up, fewer. Its own requests set the latency, so an idle server is used in full and
a busy one is left room.
"""

from dataclasses import dataclass, field
from math import sqrt

_TOLERANCE = 4.0
"""Latency may rise to this multiple of the lowest before the limit falls.

One request at a time leaves the server idle while the client thinks; at about four times that latency the
write ceiling is reached and any further request only queues.
"""
_WINDOW = 32
"""Answers per adjustment."""


@dataclass(slots=True)
class Pace:
    """Adapts the number of requests in flight between 1 and `maximum`."""

    maximum: int
    limit: float = 4.0
    _lowest: float = field(default=0.0, init=False)
    _sum: float = field(default=0.0, init=False)
    _count: int = field(default=0, init=False)

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight now."""
        return max(1, min(self.maximum, int(self.limit)))

    def answered(self, latency: float) -> None:
        """An answer arrived after `latency` seconds."""
        self._sum += latency
        self._count += 1
        if self._count < min(_WINDOW, 4 * self.concurrency):
            return
        recent = self._sum / self._count
        self._sum, self._count = 0.0, 0
        # The floor drifts up by a hundredth per window, so that a server that became slower for good
        # (or one lucky first answer) does not hold the limit down for ever.
        self._lowest = min(recent, self._lowest * 1.01) if self._lowest else recent
        gradient = max(0.5, min(1.0, _TOLERANCE * self._lowest / recent))
        self.limit = max(1.0, min(float(self.maximum), self.limit * gradient + sqrt(self.limit)))

    def throttled(self) -> None:
        """The server said 429, or failed: halve."""
        self.limit = max(1.0, self.limit / 2)
        self._sum, self._count = 0.0, 0


@dataclass(slots=True)
class Budget:
    """Units per second, with bursts of at most one second's worth. Times are seconds of a monotonic clock."""

    per_second: float
    _free_at: float = field(default=0.0, init=False)

    def reserve(self, units: float, now: float) -> float:
        """Take `units` and return how many seconds to wait before using them."""
        start = max(self._free_at, now - 1.0)
        self._free_at = start + units / self.per_second
        return max(0.0, self._free_at - now)


def backoff(round_: int, first: float, longest: float) -> float:
    """Seconds before round `round_` (0, 1, …): doubling from `first`, at most `longest`."""
    return min(longest, first * 2.0 ** min(round_, 32))
