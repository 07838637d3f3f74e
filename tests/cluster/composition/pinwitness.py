"""Sees which revisions the composites of a definition name, in the order of etcd, whoever writes them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from tests.cluster.composition.composing import Composing, pinned
from tests.cluster.harness import eventually


class PinWitness:
    """The revisions that were named."""

    def __init__(self) -> None:
        self._named: dict[str, list[str]] = {}
        """By the uid of the composite: each other one, in order."""

    async def follow(self, composing: Composing, version: str) -> None:
        """Run until cancelled."""
        path = f"{composing.definition.objects}?watch=true&allowWatchBookmarks=true"
        async for line in composing.author.client.lines(f"{path}&resourceVersion={version}"):
            event = orjson.loads(line)
            if event["type"] == "BOOKMARK":
                continue
            assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), line
            known = self._named.setdefault(event["object"]["metadata"]["uid"], [""])
            name = pinned(event["object"])
            if name != known[-1]:
                known.append(name)

    async def only(self, uid: str, name: str) -> None:
        """Return once this is seen of a composite; it has named no other one, and each other composite at
        most one.
        """

        async def seen() -> bool:
            return self._named.get(uid, [""])[-1] == name

        await eventually(seen, otherwise=lambda: f"{self._named.get(uid)}, not {name}")
        assert [each for each in self._named.values() if len(each) > 2] == []


@asynccontextmanager
async def pins_of(composing: Composing) -> AsyncIterator[PinWitness]:
    """A witness until the end of the block."""
    found = await composing.author.get(f"{composing.definition.objects}?limit=1")
    witness = PinWitness()
    following = asyncio.create_task(witness.follow(composing, found["metadata"]["resourceVersion"]))
    try:
        yield witness
        assert not following.done()
    finally:
        following.cancel()
