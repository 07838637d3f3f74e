"""Whether more requests in flight bring more answers per second: the latencies at two numbers, in turns."""

from dataclasses import dataclass, field
from math import log, log2, sqrt

_GAIN = 0.02
"""What twice the requests in flight must bring: with less, they only queue.

Where latency grows evenly with the requests in flight, some 96 % of what any number brings are reached then.
"""
_DOUBT = 0.1
"""How wrong the comparison of two blocks may be, for all that is known before the first."""
_SURE = 1.5
"""Standard errors."""
_PAIRS = 16
"""After so many the difference does not matter."""


@dataclass(slots=True)
class Contest:
    """Blocks of answers at a low and a high number in flight, in turns.

    The order is low, high, high, low and so on, so that a trend of the server favours neither.
    """

    low: int
    high: int
    _done: int = field(default=0, init=False)
    _first: float = field(default=0.0, init=False)
    """The rate in the first block of a pair."""
    _gains: list[float] = field(default_factory=list, init=False)
    """What the high number brought, by pair; rates and gains are logarithms."""

    @property
    def current(self) -> int:
        """The number whose turn it is."""
        return self.high if self._done % 4 in (1, 2) else self.low

    def measured(self, latency: float) -> bool | None:
        """The mean latency in the block that has ended.

        Returns whether the high number brings enough more; None as long as that is open.
        """
        current, self._done = self.current, self._done + 1
        rate = log(current / latency)  # with n in flight, n / latency are answered in a second
        if self._done % 2:
            self._first = rate
            return None
        gain = rate - self._first
        self._gains.append(gain if current == self.high else -gain)
        return self._verdict()

    def _verdict(self) -> bool | None:
        count, wanted = len(self._gains), _GAIN * log2(self.high / self.low)
        mean = sum(self._gains) / count
        deviations = sum((each - mean) ** 2 for each in self._gains)
        if count < _PAIRS and abs(mean - wanted) < _SURE * sqrt(_DOUBT**2 + deviations) / count:
            return None
        return mean > wanted
