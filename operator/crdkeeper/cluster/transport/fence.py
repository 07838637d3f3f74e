"""Stops the writes of a process once another one may write.

It looks at the clock before each write. A timer would not do: a process that was frozen sends what it was
about to send before any of its timers runs.
"""

import math
import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's monotonic clock stands still while the machine is suspended. Source: clock_gettime(2)."""


class Fenced(Exception):
    """A request is not sent, because another process may write by now."""


def clock() -> float:
    """Seconds, also of the time for which the machine was suspended, if its kernel counts that."""
    return time.clock_gettime(_CLOCK)


class Fence:
    """Open until it is closed, at once or at a moment."""

    def __init__(self) -> None:
        self._until = math.inf
        self._why = ""

    def close_at(self, moment: float, why: str) -> None:
        """Let no write pass from a moment of `clock` on; replaces an earlier moment."""
        self._until = moment
        self._why = why

    def close(self, why: str) -> None:
        """Let no write pass any more."""
        self.close_at(-math.inf, why)

    def check(self, method: str) -> None:
        """Raises Fenced if a request of this method may not be sent any more."""
        if method != "GET" and clock() >= self._until:
            raise Fenced(self._why)
