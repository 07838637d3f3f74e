"""The objects of a pass that are to be written, while they wait and while they are written.

An object whose managedFields are written as well brings them along, and a tenant may have made them large.
"""

import asyncio
from typing import Final

from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES
from crdkeeper.core.migration.evidence import ObjectRef
from crdkeeper.operations.migration.outage import Batch

_MOST_BYTES: Final = 2 * METADATA_BYTES
"""Of managedFields: far more than as many objects as may be in flight usually have."""


class WriteQueue:
    """At most so many objects wait, and fewer if they have large managedFields."""

    def __init__(self, most_objects: int) -> None:
        self._waiting: asyncio.Queue[tuple[ObjectRef, Batch]] = asyncio.Queue(most_objects)
        self._bytes = 0
        """Of those that wait, and of those that are being written."""
        self._less = asyncio.Event()

    async def put(self, ref: ObjectRef, batch: Batch) -> None:
        """Add an object as soon as there is room for it; there always is for one alone."""
        size = len(ref.managed_fields or b"")
        while size and self._bytes and self._bytes + size > _MOST_BYTES:
            self._less.clear()
            await self._less.wait()
        self._bytes += size
        await self._waiting.put((ref, batch))

    async def get(self) -> tuple[ObjectRef, Batch]:
        """The next object, and the page that it is on."""
        return await self._waiting.get()

    def done(self, ref: ObjectRef) -> None:
        """An object needs no room any more."""
        self._bytes -= len(ref.managed_fields or b"")
        self._less.set()
        self._waiting.task_done()

    async def join(self) -> None:
        """Return when all objects that were added are done."""
        await self._waiting.join()
