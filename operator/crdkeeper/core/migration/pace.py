"""How fast to write: requests in flight by what they bring, by latency and throttling; and budgets.

The API server's capacity is unknown and changes. More requests in flight bring more objects per second only
up to a point: as long as a part of the server, or of the way to it, would be idle without them, or several
share a cost, such as etcd's wait for its disk. Beyond it they only queue, and everybody else's requests with
them. So `Pace` compares two numbers in flight, in turns, and takes the larger one only if it brings more.
"""

from dataclasses import dataclass, field
from math import log

from crdkeeper.core.migration.contest import Contest

_FEW = 16
"""So many need not show that they bring more: only latency and throttling make them fewer.

A server of two cores did 5 to 15 % less with 8, and the difference to more was smaller than its own changes.
"""
_CLIMB = 0.2
"""At first, and after throttling, the number doubles as long as that brings so much, as a logarithm."""
_TOLERANCE = 12.0
"""The most latency, as a multiple of the unqueued one, whatever it brings: other clients wait as long."""
_UNQUEUED = 4
"""Few enough in flight not to queue for long, and as many as it begins with."""
_REST = 2000
"""Answers until the next comparison once neither neighbour is better. Doubles as that repeats."""
_LONGEST_REST = 16000
_ROUNDS = 64
"""Answers for each request in flight, after throttling, until more are tried again."""
_CHANGED = 0.4
"""A change of latency, as a logarithm, that ends a rest when it has lasted for some blocks."""
_LASTING = 3
_LATE_SECONDS = 0.1
"""For which what a budget allows for may be used later, all at once."""
_BLOCK = 48
"""Answers at one number in flight that are compared as a whole, at least."""
_SHORT_BLOCK = 16
_WARM_UP = 8
"""First answers, which include the setup of connections."""


@dataclass(slots=True)
class Pace:
    """Adapts the number of requests in flight between `minimum` and `maximum`; throttling goes down to 1."""

    maximum: int
    minimum: int = 1
    _level: int = field(default=_UNQUEUED, init=False)
    """What has proved best so far."""
    _climbing: bool = field(default=True, init=False)
    _climbed: float | None = field(default=None, init=False)
    """What the last number brought."""
    _ceiling: int = field(default=0, init=False)
    """Where to stop climbing, after the server has throttled; 0 if it has not."""
    _contest: Contest | None = field(default=None, init=False)
    _upwards: bool = field(default=True, init=False)
    """Whether the next comparison is with more in flight."""
    _refuted: int = field(default=0, init=False)
    """Neighbours in a row that were no better."""
    _rest: int = field(default=0, init=False)
    _next_rest: int = field(default=_REST, init=False)
    _usual: float = field(default=0.0, init=False)
    """The latency when the rest began."""
    _unusual: int = field(default=0, init=False)
    """Blocks in a row with another latency."""
    _unqueued: float = field(default=0.0, init=False)
    _probing: bool = field(default=False, init=False)
    """Whether the unqueued latency is measured again, because latency seems too high."""
    _excess: bool = field(default=False, init=False)
    _sum: float = field(default=0.0, init=False)
    _count: int = field(default=0, init=False)
    _ignore: int = field(default=_WARM_UP, init=False)

    def __post_init__(self) -> None:
        self.minimum = min(self.minimum, self.maximum)
        self._level = min(self.maximum, max(self.minimum, self._level))

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight now."""
        if self._probing:
            return min(self._level, max(self.minimum, _UNQUEUED))
        return self._contest.current if self._contest is not None else self._level

    def answered(self, latency: float) -> None:
        """An answer arrived after `latency` seconds."""
        if self._ignore:
            self._ignore -= 1
            return
        self._sum += latency
        self._count += 1
        self._rest = max(0, self._rest - 1)
        at = self.concurrency
        if self._count < self._block(at):
            return
        recent = self._sum / self._count
        self._sum, self._count = 0.0, 0
        self._unqueued = recent if at <= _UNQUEUED else min(recent, self._unqueued or recent)
        self._decide(at, recent)
        if self.concurrency != at:
            # Those in flight now were sent at the other number.
            self._ignore = max(at, self.concurrency)

    def throttled(self) -> None:
        """The server answered 429, or failed: halve the number."""
        halved = max(1, self.concurrency // 2)
        self._ceiling = self._ceiling if self._climbing and self._ceiling else halved
        self._level = halved
        self._climbing, self._climbed = True, None
        self._contest, self._probing, self._excess = None, False, False
        self._sum, self._count = 0.0, 0
        self._restless()

    def _block(self, at: int) -> int:
        if self._climbing or self._probing:
            return max(_SHORT_BLOCK, at)
        return min(8 * at, max(_BLOCK, 3 * at))

    def _decide(self, at: int, recent: float) -> None:
        """What follows from the mean latency of a block with `at` in flight."""
        excessive = at > max(self.minimum, _UNQUEUED) and recent > _TOLERANCE * self._unqueued
        if self._probing:
            self._probing = False
        elif excessive and not self._excess:
            # The unqueued latency may be of another time: measure it before anything is given up for it.
            self._probing = self._excess = True
        elif excessive:
            self._excess = False
            self._retreat(at)
        else:
            self._excess = False
            self._continue(at, recent)

    def _continue(self, at: int, recent: float) -> None:
        if self._climbing:
            self._climb(at, recent)
        elif self._contest is not None:
            better = self._contest.measured(recent)
            if better is not None:
                self._conclude(self._contest.high if better else self._contest.low)
        elif not self._rest:
            self._compare()
        else:
            self._usual = self._usual or recent
            changed = abs(log(recent / self._usual)) > _CHANGED
            self._unusual = self._unusual + 1 if changed else 0
            if self._unusual == _LASTING:
                self._restless()

    def _climb(self, at: int, recent: float) -> None:
        rate = log(at / recent)
        gain = _CLIMB if self._climbed is None or at < max(_FEW, self.minimum) else rate - self._climbed
        top = max(self._ceiling, self.minimum) if self._ceiling else self.maximum
        if gain >= _CLIMB and at < top:
            self._climbed, self._level = rate, min(top, 2 * at)
            return
        self._climbing, self._climbed, self._upwards = False, None, True
        if self._ceiling:
            self._ceiling, self._rest, self._usual = 0, min(_REST, _ROUNDS * at), 0.0

    def _compare(self) -> None:
        """Begin a comparison with a neighbour, if there is one."""
        below, above = self._neighbours()
        if above > self._level and (self._upwards or below == self._level):
            self._contest = Contest(self._level, above)
        elif below < self._level:
            self._contest = Contest(below, self._level)

    def _conclude(self, taken: int) -> None:
        """End the comparison."""
        self._contest = None
        if taken != self._level:
            self._upwards = taken > self._level
            self._level = taken
            self._restless()
            return
        self._upwards = not self._upwards
        self._refuted += 1
        if self._refuted == sum(each != self._level for each in self._neighbours()):
            self._refuted, self._usual, self._unusual = 0, 0.0, 0
            self._rest, self._next_rest = self._next_rest, min(_LONGEST_REST, 2 * self._next_rest)

    def _retreat(self, at: int) -> None:
        """Others wait too long: fewer, whatever they brought."""
        if self._contest is not None and at > self._level:
            self._conclude(self._level)
            return
        self._climbing, self._climbed, self._ceiling = False, None, 0
        self._contest, self._upwards = None, False
        self._level = self._below()
        self._restless()

    def _restless(self) -> None:
        self._rest, self._next_rest = 0, _REST
        self._refuted = self._unusual = 0

    def _neighbours(self) -> tuple[int, int]:
        """The numbers to compare with: fewer and more, or the same if there is none."""
        below = min(self._level, max(_FEW, self._below()))
        return below, min(self.maximum, 2 * self._level)

    def _below(self) -> int:
        return max(self.minimum, self._level // 2)


@dataclass(slots=True)
class Budget:
    """Units per second, almost evenly: other clients of an API server would wait for a burst.

    Times are seconds of a monotonic clock.
    """

    per_second: float
    _free_at: float = field(default=0.0, init=False)

    def reserve(self, units: float, now: float) -> float:
        """Take `units`. Returns how many seconds to wait before using them."""
        start = max(self._free_at, now - max(_LATE_SECONDS, units / self.per_second))
        self._free_at = start + units / self.per_second
        return max(0.0, self._free_at - now)


def backoff(round_: int, first: float, longest: float) -> float:
    """Seconds before round `round_` (0, 1, …): doubling from `first`, at most `longest`."""
    return min(longest, first * 2.0 ** min(round_, 32))
