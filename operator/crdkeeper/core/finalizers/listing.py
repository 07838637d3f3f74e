"""All objects of a CRD that finalizers hold, for people to read."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from crdkeeper.core.finalizers.holding import Held, held

MOST_LISTED: Final = 10_000


class HeldList:
    """The objects in deletion, in one namespace or in all; the first MOST_LISTED of them."""

    def __init__(self, now: datetime, namespace: str = "", finalizer: str = "") -> None:
        """`finalizer` restricts it to objects that have this one."""
        self.objects: list[Held] = []
        self.total = 0
        self._now = now
        self._namespace = namespace
        self._finalizer = finalizer

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take objects by their metadata."""
        for each in items:
            found = held(each["metadata"], self._now)
            if found is None or (self._namespace and found.namespace != self._namespace):
                continue
            if self._finalizer and self._finalizer not in found.finalizers:
                continue
            self.total += 1
            if len(self.objects) < MOST_LISTED:
                self.objects.append(found)
