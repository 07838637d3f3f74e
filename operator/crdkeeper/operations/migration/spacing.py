"""How often migrations that wait side by side look at the cluster, each time with about ten requests."""

from dataclasses import dataclass, field

APART_SECONDS = 0.1
"""Time between the looks of two migrations."""


@dataclass(slots=True)
class Spacing:
    """Spaces the looks of migrations. Those that would look less often do not slow down the others."""

    _waits: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By name: until when a migration waits, and the seconds after which it would look by itself."""

    def pause(self, name: str, seconds: float, now: float) -> float:
        """Seconds to the next look of a migration that would look after so many by itself."""
        self._waits = {each: wait for each, wait in self._waits.items() if wait[0] > now and each != name}
        as_often = 1 + sum(own <= seconds for _, own in self._waits.values())
        pause = max(seconds, APART_SECONDS * as_often)
        self._waits[name] = now + pause, seconds
        return pause
