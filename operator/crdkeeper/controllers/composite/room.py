"""How much memory the objects of composites may take: others than the composer decide how large they are."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.cluster.transport.client import TooLarge
from crdkeeper.core.conversion.nesting import dumps

_FREE: Final = 4 << 20
"""Of each composite, whatever others take: more than most have in total."""
_MOST: Final = 96 << 20
"""Of one composite: more than 1,000 objects usually have."""
_SHARED: Final = 128 << 20
"""Of all composites that are being worked on, beyond what is free."""
_EACH: Final = _MOST - _FREE
"""The same of one tenant: the largest composite has room, and others have some, too."""
_DOUBTFUL: Final = 4 << 20
"""Of one composite, of what is shared: objects that others may have made to look like its own."""
_PER_FIELD: Final = 150
"""Bytes of a name, its place, and an empty value, beside their text."""


class ObjectMemory:
    """The memory, as far as it is estimated, that is shared by the composites being worked on."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        """By tenant."""
        self.large = asyncio.Semaphore(1)
        """The turn to read an object that is larger than many others together."""

    def share(self, tenant: str) -> "Share":
        """What one composite takes during one pass."""
        return Share(self, tenant)

    def take(self, tenant: str, size: int) -> None:
        """Raises TooLarge if there is not as much left."""
        if self._taken[tenant] + size > _EACH or self._taken.total() + size > _SHARED:
            raise TooLarge("the objects of other composites take the memory that there is; tried again later")
        self._taken[tenant] += size

    def give_back(self, tenant: str, size: int) -> None:
        """It is free again."""
        self._taken[tenant] -= size
        # Tenants come and go.
        self._taken = +self._taken


class Share:
    """What one composite takes; `end` gives it back."""

    def __init__(self, room: ObjectMemory, tenant: str) -> None:
        self._room = room
        self._tenant = tenant
        self._sizes: dict[str, int] = {}
        """By the uid of an object."""
        self._own = 0
        self._shared = 0
        self._doubtful = 0

    @property
    def large(self) -> asyncio.Semaphore:
        """The turn to read a large object."""
        return self._room.large

    def add(self, value: Mapping[str, Any]) -> None:
        """Keep an object, in place of what it was before. Raises TooLarge if there is no room for it."""
        size, uid = _size_of(value), str(value["metadata"].get("uid"))
        own = self._own + size - self._sizes.get(uid, 0)
        if own > _MOST:
            raise TooLarge(f"the composite's objects take more than {_MOST >> 20} MiB of memory")
        shared = max(0, own - _FREE)
        self._room.take(self._tenant, shared - self._shared)
        self._own, self._shared = own, shared
        self._sizes[uid] = size

    def add_doubtful(self, value: Mapping[str, Any]) -> bool:
        """Keep an object that may be forged, if it takes no room from others; whether it is kept."""
        size = _size_of(value)
        if self._doubtful + size > _DOUBTFUL:
            return False
        try:
            self._room.take(self._tenant, size)
        except TooLarge:
            return False
        self._doubtful += size
        return True

    def end(self) -> None:
        """None of the objects is needed any more."""
        self._room.give_back(self._tenant, self._shared + self._doubtful)
        self._own = self._shared = self._doubtful = 0
        self._sizes = {}


def _size_of(value: Mapping[str, Any]) -> int:
    text = dumps(value)
    return len(text) + _PER_FIELD * text.count(b'":')
