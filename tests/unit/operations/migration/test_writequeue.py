"""How many objects may wait, and be written, at once."""

import asyncio

from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES
from crdkeeper.core.migration.evidence import ObjectRef
from crdkeeper.operations.migration.outage import Batch
from crdkeeper.operations.migration.writequeue import WriteQueue
from tests import virtualtime

BATCH = Batch(None, 9, 9)


def ref(name: str, size: int | None = None) -> ObjectRef:
    return ObjectRef("a", name, "1", None if size is None else b"x" * size)


async def put(queue: WriteQueue, *refs: ObjectRef) -> asyncio.Task[None]:
    """Starts to add these objects, as far as there is room."""

    async def add() -> None:
        for each in refs:
            await queue.put(each, BATCH)

    task = asyncio.create_task(add())
    await asyncio.sleep(1.0)
    return task


def test_objects_without_managed_fields_are_counted() -> None:
    async def main() -> None:
        queue = WriteQueue(2)
        adding = await put(queue, ref("w1"), ref("w2"), ref("w3"))
        assert not adding.done()
        assert (await queue.get())[0].name == "w1"
        await adding

    virtualtime.run(main())


def test_large_managed_fields_wait_until_others_are_written() -> None:
    async def main() -> None:
        queue = WriteQueue(100)
        first, second, third = (ref(name, METADATA_BYTES) for name in ("w1", "w2", "w3"))
        adding = await put(queue, first, second, third)
        assert await queue.get() == (first, BATCH)
        await asyncio.sleep(1.0)
        assert not adding.done(), "it is being written"
        queue.done(first)
        await adding
        for each in (second, third):
            assert await queue.get() == (each, BATCH)
            queue.done(each)
        await queue.join()

    virtualtime.run(main())


def test_there_is_room_for_one_alone_and_for_those_without() -> None:
    async def main() -> None:
        queue = WriteQueue(100)
        await (await put(queue, ref("w1", 3 * METADATA_BYTES), ref("w2"), ref("w3")))
        waiting = await put(queue, ref("w4", 1))
        assert not waiting.done()
        queue.done((await queue.get())[0])
        await waiting

    virtualtime.run(main())
