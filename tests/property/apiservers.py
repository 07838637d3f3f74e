"""Models of an API server and of the clients that keep requests in flight there, for tests of the pace.

Time is simulated, and chance is seeded: the same server answers the same requests alike.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Protocol

_NEVER = float("inf")


class Adapting(Protocol):
    """Says how many requests may be in flight, and learns from the answers."""

    @property
    def concurrency(self) -> int: ...

    def answered(self, latency: float) -> None: ...

    def throttled(self) -> None: ...


@dataclass(slots=True)
class Fixed:
    """Always the same number in flight."""

    concurrency: int

    def answered(self, latency: float) -> None:
        """Learns nothing."""

    def throttled(self) -> None:
        """Learns nothing."""


@dataclass(slots=True)
class Gradient:
    """As crdkeeper paced itself before: by latency alone, up to `tolerance` times the unqueued one."""

    maximum: int
    tolerance: float = 5.0
    limit: float = 4.0
    _unqueued: float = 0.0
    _latencies: list[float] = field(default_factory=list)
    _windows: int = 0
    _ignore: int = 8
    _peak: float = 0.0

    @property
    def concurrency(self) -> int:
        limit = min(2.0, self.limit) if self._windows == 64 else self.limit
        return max(1, min(self.maximum, int(limit)))

    def answered(self, latency: float) -> None:
        if self._ignore:
            self._ignore -= 1
            return
        self._latencies.append(latency)
        if len(self._latencies) < min(32, 4 * self.concurrency):
            return
        recent = sum(self._latencies) / len(self._latencies)
        self._latencies.clear()
        if self._windows == 64:
            self._unqueued, self._windows = recent, 0
            return
        self._unqueued = min(recent, self._unqueued or recent)
        gradient = max(0.5, min(1.0, self.tolerance * self._unqueued / recent))
        self._peak = max(self.limit, 0.8 * self._peak)
        self.limit = max(1.0, min(float(self.maximum), self.limit * gradient + self.limit**0.5))
        self._windows += 1
        if self._windows == 64:
            self._ignore = int(max(self._peak, self.limit))

    def throttled(self) -> None:
        self.limit = max(1.0, self.limit / 2)


@dataclass(slots=True)
class Server:
    """Works on `slots` groups of requests at a time: each on all that wait, but on no more than `together`.

    A group takes `shared` seconds, such as for one wait of etcd for its disk, and `each` seconds for each
    request in it, and those of `others`, who always have as many requests there. A request travels for
    `distance` seconds, there and back. The server refuses what is in flight beyond `admitted`.
    """

    shared: float
    each: float
    slots: int = 1
    together: int = 1000
    distance: float = 0.0
    jitter: float = 0.0
    others: int = 0
    admitted: int = 1000
    random: Random = field(default_factory=lambda: Random(0))

    def seconds(self, requests: int) -> float:
        """How long a group takes."""
        exactly = self.shared + self.each * (requests + self.others)
        return exactly * (1 + self.random.uniform(-self.jitter, self.jitter))


@dataclass(slots=True)
class Seen:
    """What a migration has got."""

    per_second: float
    latency: float
    in_flight: float
    """Mean of what the pace allowed, over all answers."""


class Migration:
    """Keeps as many requests in flight as the pace allows."""

    def __init__(self, pace: Adapting, server: Server) -> None:
        self.pace = pace
        self.server = server
        self.now = 0.0
        self.refused = 0
        self._flying = 0
        self._free = server.slots
        self._waiting: list[float] = []
        """When each was sent."""
        self._events: list[tuple[float, int, Callable[[], float | None]]] = []
        self._number = 0

    def run(self, answers: int) -> Seen:
        """Go on until there are so many answers."""
        began, total, allowed, done = self.now, 0.0, 0, 0
        while done < answers:
            self._send()
            self.now, _, happen = heapq.heappop(self._events)
            latency = happen()
            if not self._events or self._events[0][0] > self.now:
                self._work()  # on all that has arrived at this time
            if latency is None:
                continue
            self._flying -= 1
            if latency == _NEVER:
                self.refused += 1
                self.pace.throttled()
                continue
            total, allowed, done = total + latency, allowed + self.pace.concurrency, done + 1
            self.pace.answered(latency)
        return Seen(answers / (self.now - began), total / answers, allowed / answers)

    def _at(self, when: float, happen: Callable[[], float | None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (when, self._number, happen))

    def _send(self) -> None:
        one_way = self.server.distance / 2
        while self._flying < self.pace.concurrency:
            self._flying += 1
            if self._flying > self.server.admitted:
                self._at(self.now + one_way, _refuse)
            else:
                self._at(self.now + one_way, partial(self._arrive, self.now))

    def _arrive(self, sent: float) -> None:
        self._waiting.append(sent)

    def _work(self) -> None:
        server = self.server
        while self._free and self._waiting:
            group, self._waiting = self._waiting[: server.together], self._waiting[server.together :]
            self._free -= 1
            end = self.now + server.seconds(len(group))
            self._at(end, self._release)
            for sent in group:
                back = end + server.distance / 2
                self._at(back, partial(_after, back - sent))

    def _release(self) -> None:
        self._free += 1


def _refuse() -> float:
    return _NEVER


def _after(seconds: float) -> float:
    return seconds


def best_fixed(server: Server, answers: int) -> float:
    """Objects per second with the best fixed number in flight at such a server, without chance."""
    rates = []
    for number in (4, 8, 16, 32, 64):
        migration = Migration(Fixed(number), _calm(server))
        migration.run(4 * number)
        rates.append(migration.run(answers).per_second)
    return max(rates)


def _calm(server: Server) -> Server:
    return Server(
        server.shared, server.each, server.slots, server.together, server.distance, 0.0, server.others
    )
