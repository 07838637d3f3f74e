"""Many composites with objects, and kill -9 of the composer in each kind of their definition's deletion."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest

from tests.benchmark.meter import peak_memory
from tests.cluster.composition.authoring import OWNER, Author, condition
from tests.cluster.composition.composedwitness import ComposedWitness, witness_of
from tests.cluster.composition.composing import (
    CONFIG_MAPS,
    FINALIZER,
    Composing,
    config_map,
)
from tests.cluster.harness import Operator, each_of, eventually
from tests.cluster.harness.waiting import POLL_SECONDS
from tests.dice import drawn_seed

Json = Any
COMPOSITES = int(os.environ.get("CRDKEEPER_DELETED_COMPOSITES", "100"))
KILLS: Final = 3
"""In each step."""
BEFORE: Final = {"kept": ("first",), "last": ("first", "kept")}
SECONDS = 120.0 + COMPOSITES / 4
ADOPT: Final = {"annotations": {"crdkeeper.dev/adopt": "true"}}


def chain() -> list[Json]:
    """Three waves; what the second one makes outlives its composite."""
    return [
        config_map("first"),
        config_map("kept", of="${first.metadata.name}", Deletion="Orphan"),
        config_map("last", of="${kept.metadata.name}"),
    ]


class Killed:
    """The composer, which is killed while it does something."""

    def __init__(self, composer: Operator, dice: random.Random) -> None:
        self.composer = composer
        self._dice = dice
        self.most = 0
        """The memory that it took."""

    async def until(self, what: str, holds: Callable[[], Awaitable[Any]]) -> None:
        """Kill it a few times at random instants, and wait until this is so."""
        began, kills = time.monotonic(), 0
        # Some come soon, some when most is done.
        longest = max(0.5, COMPOSITES / 60)
        while kills < KILLS and not await holds():
            await asyncio.sleep(self._dice.uniform(0.0, longest))
            self.most = max(self.most, peak_memory(self.composer.pid))
            self.composer.kill()
            kills += 1
            await asyncio.to_thread(self.composer.start)
        # To list them all is work for the API server, too.
        await eventually(
            holds,
            seconds=SECONDS,
            every=POLL_SECONDS + COMPOSITES / 2000,
            otherwise=lambda: f"{what} of {COMPOSITES} did not end",
        )
        self.most = max(self.most, peak_memory(self.composer.pid))
        print(f"{what}: {time.monotonic() - began:.1f} s, {kills} kills; {self.most >> 20} MiB")


class Many:
    """All composites of one definition, and their objects."""

    def __init__(self, composing: Composing, witness: ComposedWitness) -> None:
        self._author = composing.author
        self._thing = composing.definition
        self.composing = composing
        self.witness = witness

    async def composites(self) -> list[Json]:
        """All that there are."""
        found = await self._author.get(f"{self._thing.objects}?limit=10000")
        return list(found["items"]) if found else []

    async def objects(self) -> dict[str, Json]:
        """The metadata of all ConfigMaps of composites, gone or not, by name."""
        items = (await self._author.get(f"{CONFIG_MAPS}?limit=100000"))["items"]
        return {
            each["metadata"]["name"]: each["metadata"]
            for each in items
            if each["metadata"]["name"].startswith("many")
        }

    async def ready(self) -> bool:
        """Whether all of them are."""
        found = await self.composites()
        return all(condition(each, "Ready")[:2] == ("True", "Available") and holds(each) for each in found)

    async def complete(self, names: Sequence[str]) -> None:
        """Checks that these composites have all of their objects, and that nothing else is composed."""
        await self.witness.caught_up()
        found = {each["metadata"]["name"]: each for each in await self.composites()}
        assert sorted(found) == sorted(names)
        listed = {
            (each["object"]["name"], each["object"]["uid"], of["metadata"]["uid"])
            for of in found.values()
            for each in of["status"]["crdkeeper"]["resources"]
        }
        assert {(each.name, each.uid, each.composite) for each in self.witness.composed()} == listed
        assert {name for name, _, _ in listed} == {f"{of}-{part}" for of in names for part in parts()}
        assert self.witness.doubled() == {}

    async def unchanged(self, before: dict[str, Json]) -> None:
        """Checks that no object came or went."""
        after = await self.objects()
        assert {name: each["uid"] for name, each in after.items()} == {
            name: each["uid"] for name, each in before.items()
        }


def holds(composite: Json) -> bool:
    """Whether it waits for the composer when it is deleted."""
    return FINALIZER in (composite["metadata"].get("finalizers") or ())


def parts() -> list[str]:
    """What each composite is composed of."""
    return [each["name"] for each in chain()]


@pytest.mark.timeout(300 + 2 * COMPOSITES)
async def test_many_composites_with_objects(composing: Composing, composer: Operator) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_DELETED_COMPOSITES={COMPOSITES}")
    author, killed, log = composing.author, Killed(composer, random.Random(seed)), composer.log_size()
    await composing.compose(*chain())
    async with witness_of(author, BEFORE) as witness:
        many = Many(composing, witness)
        names = [f"many{each:05}" for each in range(COMPOSITES)]
        await author.make_composites(composing.definition, names)
        await killed.until("composing", many.ready)
        await many.complete(names)
        left = await under_protect(author, many, killed, names)
        await orphaned_and_adopted(author, many, killed, left)
        await with_the_definition(author, many, killed)
    assert "Traceback" not in composer.log_since(log)
    await each_of([*await many.objects()], lambda each: author.delete(f"{CONFIG_MAPS}/{each}"))


async def under_protect(author: Author, many: Many, killed: Killed, names: Sequence[str]) -> list[str]:
    """The definition waits; composites that are deleted by hand go, and the others stay as they are."""
    thing = many.composing.definition
    before = await many.objects()
    await author.delete(thing.path)
    await author.says(thing, "Established", f"{COMPOSITES:,} composites")
    deleted, left = names[::2], names[1::2]
    await each_of(deleted, lambda each: author.delete(f"{thing.objects}/{each}"))

    async def gone() -> bool:
        return len(await author.names(thing)) == len(left)

    await killed.until("deleting half of them under Protect", gone)
    await many.complete(left)
    assert await author.get(thing.path) is not None
    orphans = {f"{each}-kept" for each in deleted}
    expected = {f"{each}-{part}" for each in left for part in parts()} | orphans
    await many.unchanged({name: each for name, each in before.items() if name in expected})
    await unmarked(many, orphans)
    return list(left)


async def unmarked(many: Many, names: set[str]) -> None:
    """Checks that these objects are nobody's."""
    found = await many.objects()
    assert all(not {"labels", "annotations", "ownerReferences"} & found[each].keys() for each in names)


async def orphaned_and_adopted(author: Author, many: Many, killed: Killed, names: Sequence[str]) -> None:
    """Orphan takes the definition only, and leaves all to the next one."""
    thing = many.composing.definition
    before = await many.objects()
    crd = (await author.get(thing.crd))["metadata"]["uid"]

    async def gone() -> bool:
        return await author.get(thing.path) is None

    await author.client.request(
        "PATCH",
        thing.path,
        {"spec": {"deletion": "Orphan"}},
        content_type="application/merge-patch+json",
    )
    await killed.until("Orphan", gone)
    found = await many.composites()
    assert sorted(each["metadata"]["name"] for each in found) == sorted(names)
    assert not any(holds(each) for each in found)
    assert OWNER not in ((await author.get(thing.crd))["metadata"].get("annotations") or {})
    await many.unchanged(before)

    await many.composing.define(deletion="Cascade", metadata=ADOPT)
    await killed.until("adopting", many.ready)
    assert (await author.get(thing.crd))["metadata"]["uid"] == crd
    await many.complete(names)
    await many.unchanged(before)


async def with_the_definition(author: Author, many: Many, killed: Killed) -> None:
    """Cascade: all composites go, each in its order, then the CRD and the definition."""
    thing = many.composing.definition
    before = await many.objects()
    await author.delete(thing.path)

    async def gone() -> bool:
        return await author.get(thing.path) is None and await author.get(thing.crd) is None

    await killed.until("Cascade", gone)
    kept = {name for name in before if name.endswith("-kept")}
    await many.unchanged({name: before[name] for name in kept})
    await unmarked(many, kept)
    await many.witness.caught_up()
    assert many.witness.composed() == []
