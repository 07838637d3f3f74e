"""Sees all that becomes of composed ConfigMaps, in the order of etcd, whoever writes them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson

from crdkeeper.core.composites.ownership import COMPOSITE_LABEL
from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS
from tests.cluster.harness import eventually

Json = Any
_MARKER: Final = "witness"


@dataclass(frozen=True, slots=True)
class Seen:
    """A ConfigMap that is, or was, an object of a composite."""

    name: str
    uid: str
    composite: str
    """The uid of its composite."""

    @property
    def part(self) -> str:
        """What it is of its composite, whatever its resource is called: `b` of `orders-b-x`."""
        return self.name.split("-")[1]


class ComposedWitness:
    """What was created and deleted or released, with the order in which that must be."""

    def __init__(self, author: Author, before: Mapping[str, Sequence[str]]) -> None:
        self._author = author
        self._before = {name: frozenset(each) for name, each in before.items()}
        """By part: those that exist for as long as it does, in the same composite."""
        self._composed: dict[str, Seen] = {}
        """By uid."""
        self._parts: dict[str, Counter[str]] = {}
        """By the uid of the composite: how many of each part it has."""
        self._marked = 0
        self._seen_marks: set[str] = set()
        self.broken: list[str] = []
        """What was not in order."""
        self.made: Counter[tuple[str, str]] = Counter()
        """By the uid of the composite and the name of the object: how often it was created."""
        self.uids: dict[str, set[str]] = {}
        """By the name of the object: of all that were composed with that name."""
        self.ended: Counter[str] = Counter()
        """By the name of the object: how often it was deleted or released."""

    async def follow(self, version: str) -> None:
        """Run until cancelled."""
        path = f"{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        async for line in self._author.client.lines(path):
            event = orjson.loads(line)
            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                self._saw(event["type"], event["object"]["metadata"])
            else:
                assert event["type"] == "BOOKMARK", line

    def _saw(self, type_: str, metadata: Json) -> None:
        name, uid, labels = metadata["name"], metadata["uid"], metadata.get("labels") or {}
        if name == _MARKER:
            self._seen_marks.add((metadata.get("annotations") or {}).get("number", ""))
            return
        composite = labels.get(COMPOSITE_LABEL, "")
        known = self._composed.get(uid)
        if known is not None and (type_ == "DELETED" or not composite):
            self._end(known)
        elif known is not None and known.composite != composite:
            self.broken.append(f"{known} became that of {composite}")
        elif known is None and composite and type_ != "DELETED":
            self._begin(Seen(name, uid, composite))

    def _begin(self, seen: Seen) -> None:
        self.made[seen.composite, seen.name] += 1
        self.uids.setdefault(seen.name, set()).add(seen.uid)
        parts = self._parts.setdefault(seen.composite, Counter())
        missing = self._before.get(seen.part, frozenset()) - (+parts).keys()
        if missing:
            self.broken.append(f"{seen.name} was created before {sorted(missing)}")
        parts[seen.part] += 1
        self._composed[seen.uid] = seen

    def _end(self, known: Seen) -> None:
        del self._composed[known.uid]
        self.ended[known.name] += 1
        parts = self._parts[known.composite]
        parts[known.part] -= 1
        left = [each for each in +parts if known.part in self._before.get(each, frozenset())]
        if left:
            self.broken.append(f"{known.name} went before {sorted(left)}")

    async def caught_up(self) -> None:
        """Return once all is seen that has happened."""
        self._marked += 1
        marker = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _MARKER, "annotations": {"number": f"{self._marked}"}},
        }
        await self._author.put(f"{CONFIG_MAPS}/{_MARKER}", marker)

        async def seen() -> bool:
            return f"{self._marked}" in self._seen_marks

        await eventually(seen)

    def composed(self) -> list[Seen]:
        """What is composed now, as far as it is seen."""
        return list(self._composed.values())

    def doubled(self) -> dict[tuple[str, str], int]:
        """What was created more than once for the same composite."""
        return {key: number for key, number in self.made.items() if number > 1}


@asynccontextmanager
async def witness_of(author: Author, before: Mapping[str, Sequence[str]]) -> AsyncIterator[ComposedWitness]:
    """A witness until the end of the block, in which nothing may happen out of order.

    `before`: by part, those that are created before it and go after it.
    """
    version = (await author.get(f"{CONFIG_MAPS}?limit=1"))["metadata"]["resourceVersion"]
    witness = ComposedWitness(author, before)
    following = asyncio.create_task(witness.follow(version))
    try:
        yield witness
        await witness.caught_up()
        assert not witness.broken, witness.broken[:5]
        assert not following.done()
    finally:
        following.cancel()
        await author.delete(f"{CONFIG_MAPS}/{_MARKER}")
