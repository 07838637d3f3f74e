"""Which processes hang: those that do not count up, seen by one that does."""

from collections.abc import Callable


class Stalls:
    """Counts looks, not seconds: after a time in which nobody ran, nobody hangs."""

    def __init__(self, rows: int, looks: float) -> None:
        """A process hangs that does not count up for that many looks."""
        self._looks = looks
        self._seen = [(-1, 0)] * rows

    def look(self, beats: Callable[[int], int]) -> None:
        """See how far each has counted."""
        for row, (last, looks) in enumerate(self._seen):
            now = beats(row)
            self._seen[row] = (now, looks + 1 if now == last else 0)

    def forget(self, row: int) -> None:
        """There is another process now."""
        self._seen[row] = (-1, 0)

    def rows(self) -> list[int]:
        """Those that hang."""
        return [row for row, (_, looks) in enumerate(self._seen) if looks >= self._looks]
