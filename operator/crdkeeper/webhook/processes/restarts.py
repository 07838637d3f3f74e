"""When a process that has ended is started again: at once, unless it keeps ending."""

from dataclasses import dataclass
from typing import Final

LIVED_SECONDS: Final = 10.0
"""A process that has lived for so long has not failed at its start."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0


@dataclass(slots=True)
class Restarts:
    """Those of one process."""

    due: float = 0.0
    _since: float = 0.0
    _pause: float = 0.0

    def started(self, now: float) -> None:
        """It has been started."""
        self._since = now

    def ended(self, now: float) -> float:
        """It has ended: returns how long to wait."""
        if now - self._since >= LIVED_SECONDS:
            self._pause = 0.0
        pause = self._pause
        self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, 2 * pause))
        self.due = now + pause
        return pause
