"""Who gives way when there is no room: a client of the source address that takes up most of it.

So nobody gains the room of others by connecting more often. Of one source, the oldest goes first: short
connections, like those of API servers, are hardly ever hit.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar


class Occupant(Protocol):
    """Something that takes up room."""

    source: str
    """Its source address."""
    since: float
    """When it began its current activity, or became idle."""


class ByteHolder(Occupant, Protocol):
    """A client that holds bytes."""

    @property
    def sheddable(self) -> bool:
        """Whether it may be given up: not while its request is processed."""

    def shed(self) -> None:
        """Release its bytes, and refuse its request."""


_Client = TypeVar("_Client", bound=Occupant)


def gives_way(
    clients: Iterable[_Client],
    weight: Callable[[_Client], int] = lambda _: 1,
    movable: Callable[[_Client], bool] = lambda _: True,
    order: Callable[[_Client], Any] = lambda each: each.since,
) -> _Client | None:
    """The client to disconnect: the oldest that may go, from the source whose clients weigh most."""
    totals: dict[str, int] = {}
    candidates = []
    for each in clients:
        totals[each.source] = totals.get(each.source, 0) + weight(each)
        if movable(each):
            candidates.append(each)
    return min(candidates, key=lambda each: (-totals[each.source], order(each)), default=None)


class Ledger(Protocol):
    """What several processes hold together."""

    processes: int
    """How many share."""

    def write(self, held: int) -> int:
        """Enter what this one holds; returns what all of them hold."""

    def lack(self) -> None:
        """Enter that this one had to refuse a client because of what others hold."""

    def owed(self) -> bool:
        """Whether another one has lacked room since the last time."""


class Room:
    """Bytes that all clients hold together, of one process or, with a ledger, of several."""

    def __init__(self, limit: int, ledger: Ledger | None = None) -> None:
        self.limit = limit
        self._ledger = ledger
        self.held = 0
        self._holders: dict[ByteHolder, int] = {}

    def take(self, client: ByteHolder, size: int) -> bool:
        """Reserve more bytes for it; others give way. Returns whether it can; if not, it holds nothing."""
        held = self._holders
        held[client] = held.get(client, 0) + size
        self.held += size
        while self._entered() > self.limit:
            loser = gives_way(held, held.__getitem__, lambda each: each.sheddable or each is client)
            if loser is None or loser is client:
                if self._ledger is not None and self.held <= self.limit:
                    self._ledger.lack()
                self.free(client)
                return False
            loser.shed()
        return True

    def settle(self) -> None:
        """Give up what other processes lack, as far as it is more than this one's share."""
        if self._ledger is None or not self._ledger.owed():
            return
        while self.held > self.limit // self._ledger.processes:
            loser = gives_way(self._holders, self._holders.__getitem__, lambda each: each.sheddable)
            if loser is None:
                return
            loser.shed()

    def free(self, client: ByteHolder) -> None:
        """Release its bytes."""
        self.held -= self._holders.pop(client, 0)
        self._entered()

    def _entered(self) -> int:
        return self.held if self._ledger is None else self._ledger.write(self.held)
