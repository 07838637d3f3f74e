"""Numbers that all processes see: a page of memory that the parent shares with its children.

Each process writes only its own numbers, each of eight bytes, so there is no lock that a process could hold
when it is killed or stopped.
"""

import mmap
from collections.abc import Sequence
from typing import Final

from crdkeeper.webhook.http.shedding import Ledger

_BEATS, _READY, _CONNECTIONS, _FIRST_ROOM = range(4)
_ROOMS: Final = 3
_PER_ROOM: Final = 2
"""The bytes that are held, and how often there was no room."""
_NUMBERS: Final = _FIRST_ROOM + _ROOMS * _PER_ROOM


class Board:
    """A row of numbers for each process."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._numbers = memoryview(mmap.mmap(-1, rows * _NUMBERS * 8)).cast("Q")

    def clear(self, row: int) -> None:
        """That process is gone, and what it held is free."""
        for number in range(_CONNECTIONS, _NUMBERS):
            self.put(row, number, 0)

    def beat(self, row: int) -> None:
        """That process' event loop turns."""
        self.put(row, _BEATS, self.get(row, _BEATS) + 1)

    def beats(self, row: int) -> int:
        """How often it has turned."""
        return self.get(row, _BEATS)

    def note_ready(self, row: int) -> None:
        """That process has found the replica to be ready."""
        self.put(row, _READY, 1)

    def was_ready(self, row: int) -> bool:
        """Whether that process, or one that it replaces, has ever found the replica to be ready."""
        return bool(self.get(row, _READY))

    def get(self, row: int, number: int) -> int:
        """A number of a process."""
        return self._numbers[row * _NUMBERS + number]

    def put(self, row: int, number: int, value: int) -> None:
        """Only that process does this, or the parent after its end."""
        self._numbers[row * _NUMBERS + number] = value

    def column(self, number: int) -> list[int]:
        """The number of each process."""
        return self._numbers[number::_NUMBERS].tolist()


class Beside:
    """The neighbors of a serving process."""

    def __init__(self, board: Board, row: int, serving: int) -> None:
        """Rows from `serving` on are not those of processes that serve."""
        self._board, self._row, self._serving = board, row, serving
        self.ledgers: Sequence[Ledger] = [
            SharedLedger(board, row, serving, _FIRST_ROOM + number * _PER_ROOM) for number in range(_ROOMS)
        ]

    def fewer(self, connections: int) -> bool:
        """Whether a neighbor that serves has fewer."""
        self._board.put(self._row, _CONNECTIONS, connections + 1)
        others = self._board.column(_CONNECTIONS)[: self._serving]
        return any(0 < each < connections + 1 for each in others)


class SharedLedger:
    """Bytes of one kind, over all processes."""

    def __init__(self, board: Board, row: int, serving: int, number: int) -> None:
        self._board, self._row, self.processes, self._number = board, row, serving, number
        self._lacked = 0

    def write(self, held: int) -> int:
        """Written before it is summed: of two that take the last room at once, one sees that, or both."""
        self._board.put(self._row, self._number, held)
        return sum(self._board.column(self._number))

    def lack(self) -> None:
        """See Ledger."""
        count = self._board.get(self._row, self._number + 1)
        self._board.put(self._row, self._number + 1, count + 1)

    def owed(self) -> bool:
        """See Ledger."""
        counts = self._board.column(self._number + 1)
        lacked = sum(counts) - counts[self._row]
        more, self._lacked = lacked > self._lacked, lacked
        return more
