"""What to do about objects whose writes fail because of a broken webhook.

The cause shows only later: it is the webhook if all objects fail, or if they succeed when retried; otherwise
it is the object. Until then the objects are undecided, and so is the page that they are on.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from crdkeeper.api.storagemigration import RefusedObject
from crdkeeper.core.migration.counts import key
from crdkeeper.core.migration.evidence import ObjectRef

PAUSES = (0.5, 1.0, 2.0)
"""Seconds before each further retry at the end of a pass."""
MOST_UNDECIDED = 1000
"""At most this many objects wait for a retry."""


@dataclass(slots=True)
class Batch:
    """The pending objects of one page, and the token that lists this page again."""

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
    """Objects that failed since another one was last written."""
    again: deque[Undecided] = field(default_factory=deque)
    """Objects to retry, because others were written after they failed."""
    _tries: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.in_a_row or self.again)

    def failed(self, undecided: Undecided, *, many: bool) -> None:
        """Add an object; a run that ends now must come back to it.

        If there may be `many`, none keeps its managedFields, which may be large: it is read again.
        """
        if many and undecided.ref.managed_fields is not None:
            undecided = replace(
                undecided, ref=replace(undecided.ref, resource_version="", managed_fields=None)
            )
        undecided.batch.open += 1
        self._tries[key(undecided.refused)] += 1
        self.in_a_row.append(undecided)

    def over(self) -> Iterator[RefusedObject]:
        """Others were written: retry these. Gives up those that failed too often, or exceed the bound."""
        for each in self.in_a_row:
            if self._tries[key(each.refused)] > len(PAUSES) or len(self.again) >= MOST_UNDECIDED:
                yield self._give_up(each)
            else:
                self.again.append(each)
        self.in_a_row.clear()

    def try_all(self) -> None:
        """Retry all of them, although no other object is left to show that the webhook works."""
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
