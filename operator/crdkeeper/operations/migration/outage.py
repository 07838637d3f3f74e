"""What to do about objects that fail at a webhook which does not work.

Whose fault that is shows only later: the webhook's, if all fail or if they succeed when tried again; else the
object's. Until then they are undecided, and so is the page that they are on.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from crdkeeper.api.storagemigration import RefusedObject
from crdkeeper.core.migration.counts import key
from crdkeeper.core.migration.evidence import ObjectRef

PAUSES = (0.5, 1.0, 2.0)
"""Seconds before each further try at the end of a pass."""
_KEPT = 1000
"""Objects at most that wait to be tried again."""


@dataclass(slots=True)
class Batch:
    """The objects of one page that are not dealt with yet, and the token that lists this page again."""

    token: str | None
    size: int
    open: int


@dataclass(frozen=True, slots=True)
class Undecided:
    """An object that failed, and how."""

    ref: ObjectRef
    batch: Batch
    refused: RefusedObject


@dataclass(slots=True)
class Outage:
    """The undecided objects of one pass."""

    in_a_row: list[Undecided] = field(default_factory=list)
    """Those that failed since an object was last written."""
    again: deque[Undecided] = field(default_factory=deque)
    """Those after which others were written: to be tried again."""
    _tries: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.in_a_row or self.again)

    def failed(self, undecided: Undecided) -> None:
        """One more; a run that ends now must come by it again."""
        undecided.batch.open += 1
        self._tries[key(undecided.refused)] += 1
        self.in_a_row.append(undecided)

    def over(self) -> Iterator[RefusedObject]:
        """Others are written: try these again. Those that failed too often, or are too many, are given up."""
        for each in self.in_a_row:
            if self._tries[key(each.refused)] > len(PAUSES) or len(self.again) >= _KEPT:
                yield self._give_up(each)
            else:
                self.again.append(each)
        self.in_a_row.clear()

    def try_all(self) -> None:
        """Try all of them again, although nothing else is left that could show the webhook to work."""
        self.again.extend(self.in_a_row)
        self.in_a_row.clear()

    def give_up(self) -> Iterator[RefusedObject]:
        """The end: these are refused."""
        self.try_all()
        while self.again:
            yield self._give_up(self.again.popleft())

    def _give_up(self, undecided: Undecided) -> RefusedObject:
        undecided.batch.open -= 1
        del self._tries[key(undecided.refused)]
        return undecided.refused
