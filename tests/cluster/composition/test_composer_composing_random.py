"""kill -9 of the composer at random instants, while composites and their Composition come, change and go."""

import asyncio
import os
import random
from collections import Counter
from contextlib import suppress
from typing import Any, Final

import pytest

from crdkeeper.core.composites.ownership import COMPOSITE_LABEL
from tests.cluster.composition.authoring import Author, condition
from tests.cluster.composition.composedwitness import ComposedWitness, witness_of
from tests.cluster.composition.composing import (
    CONFIG_MAPS,
    FINALIZER,
    Composing,
    config_map,
    pinned,
    replaced,
    used,
)
from tests.cluster.composition.pinwitness import PinWitness, pins_of
from tests.cluster.harness import Operator, eventually
from tests.dice import drawn_seed

Json = Any
KILLS = int(os.environ.get("CRDKEEPER_KILLS", "8"))
NAMES: Final = tuple(f"random{each}" for each in range(6))
PINNED: Final = NAMES[:2]
"""Those that stay at the revision by which they were created."""
ADOPTS: Final = {"annotations": {"crdkeeper.dev/adopt": "kept"}}
ZONES: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones"}
"""What all composites read, and is not theirs."""
BEFORE: Final = {
    "mid": ("base",),
    "items": ("base",),
    "optional": ("base",),
    "top": ("base", "mid"),
    "extra": ("base", "mid"),
    "zoned": ("base",),
    "again": ("base",),
    "kept": ("base",),
}
_WORK_SECONDS: Final = 3.0
STAY: Final = ("base", "mid", "top")
"""What no change takes away from a composite."""


def resources(mid: str, size: str, *, items: bool, extra: bool, kept: bool) -> list[Json]:
    """A variant of the Composition, in three waves; `mid` is a name for one and the same object."""
    of_base, of_mid = "${base.metadata.name}", f"${{{mid}.metadata.name}}"
    named = "${composite.metadata.name}"
    return [
        config_map("base", engine="${composite.spec.engine}", size=size),
        config_map(mid, called=f"{named}-mid", of=of_base),
        config_map("optional", of=of_base, IncludeWhen=["${composite.spec.?enabled.orValue(false)}"]),
        config_map("top", of=of_mid, engine="${composite.spec.engine}"),
        {"name": "zones", "externalRef": ZONES},
        config_map("zoned", of=of_base, zone="${zones.data.zone}"),
        replaced("again", of=of_base, engine="${composite.spec.engine}"),
        *(
            [
                config_map(
                    "items",
                    called=f"{named}-items-${{which}}",
                    of=of_base,
                    ForEach=[{"which": "${composite.spec.?names.orValue([])}"}],
                )
            ]
            if items
            else []
        ),
        *([config_map("extra", of=of_mid)] if extra else []),
        *([config_map("kept", of=of_base, size=size, Deletion="Orphan")] if kept else []),
    ]


class Users:
    """They write composites and the Composition at random, and know what must come of it."""

    def __init__(self, composing: Composing, dice: random.Random) -> None:
        self._composing = composing
        self._author = composing.author
        self._dice = dice
        self._composition: Json = None
        self.specs: dict[str, Json] = {}
        """Of those that are wanted."""
        self.deleted: set[str] = set()
        """Those that may still be there."""
        self.done: Counter[str] = Counter()

    async def begin(self) -> None:
        """Return once there is something that has to stay: chance alone may never ask for it."""
        await self.compose(kept=True)
        await self.zone("north")
        await self._write(NAMES[-1])
        await self.works(NAMES[-1])

    async def act(self) -> None:
        """Change something."""
        name = self._dice.choice(NAMES)
        if self._dice.random() < 0.2:
            await self.compose()
        elif self._dice.random() < 0.15:
            await self.zone(self._dice.choice(("north", "south", "")))
        elif name in self.deleted:
            if await self._author.get(self._composing.path(name)) is None:
                self.deleted.discard(name)
        elif name in self.specs and self._dice.random() < 0.3:
            await self._composing.delete(name)
            del self.specs[name]
            self.deleted.add(name)
            self.done["deleted"] += 1
        else:
            await self._write(name)

    async def compose(self, *, kept: bool = False) -> None:
        """Write another variant of the Composition, or one that there was before."""
        dice = self._dice
        variant = resources(
            dice.choice(("mid", "middle")),
            dice.choice(("small", "large")),
            items=dice.random() < 0.8,
            extra=dice.random() < 0.5,
            kept=kept or dice.random() < 0.7,
        )
        self._composition = await self._composing.designer.put("main", *variant)
        self.done["composed"] += 1

    async def zone(self, zone: str) -> None:
        """Write or delete what all composites read."""
        path = f"{CONFIG_MAPS}/{ZONES['name']}"
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ZONES["name"]}}
        value["data"] = {"zone": zone}
        await (self._author.put(path, value) if zone else self._author.delete(path))
        self.done["zoned"] += 1

    async def _write(self, name: str) -> None:
        dice = self._dice
        spec: Json = {"engine": dice.choice(("MySQL", "Postgres"))}
        spec["names"] = dice.sample(("x", "y", "z"), dice.randrange(4))
        if dice.random() < 0.8:
            spec["enabled"] = dice.random() < 0.5
        if name in PINNED:
            spec["crdkeeper"] = {"compositionUpdatePolicy": "Manual"}
        self.done["changed" if name in self.specs else "created"] += 1
        self.specs[name] = spec
        await self._composing.create(name, ADOPTS, **spec)

    async def settle(self) -> None:
        """Return once each composite is as its revision says, and what was deleted is gone."""
        await self.zone("east")
        for each in sorted(self.deleted):
            await self._author.gone(self._composing.path(each))
        found: list[Json] = []

        async def current() -> bool:
            found[:] = await self._composing.designer.revisions("main")
            return bool(found) and found[-1]["spec"]["resources"] == self._composition["spec"]["resources"]

        await eventually(current)
        for each in self.specs:
            await self.works(each, "" if each in PINNED else found[-1]["metadata"]["name"])

    async def works(self, name: str, revision: str = "") -> Json:
        """A composite once it is ready by this revision, or, if it names one, by that."""

        def holds(found: Json) -> bool:
            status = found.get("status") or {}
            wanted = pinned(found) if "crdkeeper" in found["spec"] else revision or used(found)
            return (
                status.get("observedGeneration") == found["metadata"]["generation"]
                and condition(found, "Ready")[:2] == ("True", "Available")
                and used(found) == wanted
            )

        return await self._composing.until(name, holds)


async def objects_of(author: Author, name: str) -> dict[str, Json]:
    """The ConfigMaps of a composite, as they would be called for a composite of any name."""
    items = [each for each in (await author.get(CONFIG_MAPS))["items"] if is_composed(each)]
    found = {each["metadata"]["name"]: each.get("data", {}) for each in items}
    return {
        part: {key: each.replace(f"{name}-", "-") for key, each in data.items()}
        for of, data in found.items()
        for before, _, part in [of.partition("-")]
        if before == name
    }


def is_composed(found: Json) -> bool:
    """Whether it is an object of a composite, and not one that was left to nobody."""
    return COMPOSITE_LABEL in (found["metadata"].get("labels") or {})


async def nothing_kept_is_lost(author: Author, witness: ComposedWitness) -> None:
    """Checks that each object with `deletion: Orphan` that there has ever been is still the same one."""
    items = [each["metadata"] for each in (await author.get(CONFIG_MAPS))["items"]]
    found = {each["name"]: {each["uid"]} for each in items}
    kept = {name: uids for name, uids in witness.uids.items() if name.endswith("-kept")}
    assert kept and kept == {name: found.get(name) for name in kept}


async def same_objects(author: Author, name: str, fresh: str) -> None:
    """Wait until those of a composite are as those of another one."""
    last: list[dict[str, Json]] = []

    async def look() -> bool:
        last[:] = [await objects_of(author, each) for each in (name, fresh)]
        return last[0] == last[1]

    await eventually(look, otherwise=lambda: f"{name}: {last[0]}, not {last[1]}")


async def as_if_never_killed(
    users: Users, composing: Composing, witness: ComposedWitness, pins: PinWitness
) -> None:
    """Checks the end: each composite as a new one with the same spec, and nothing else that is composed."""
    composites: dict[str, Json] = {}
    last: list[set[tuple[str, str, str]]] = []

    async def listed() -> bool:
        """Whether all that is composed is listed by a status, and everything listed is there."""
        composites.update({name: await users.works(name) for name in users.specs})
        await witness.caught_up()
        last[:] = [
            {
                (each["object"]["name"], each["object"].get("uid", ""), found["metadata"]["uid"])
                for found in composites.values()
                for each in found["status"]["crdkeeper"]["resources"]
            },
            {(each.name, each.uid, each.composite) for each in witness.composed()},
        ]
        return last[0] == last[1]

    await eventually(listed, otherwise=lambda: f"listed and composed differ: {last[0] ^ last[1]}")
    doubled = [name for _, name in witness.doubled() if name.split("-")[1] in STAY]
    assert doubled == [], "created again"
    await nothing_kept_is_lost(composing.author, witness)
    for name, spec in users.specs.items():
        fresh, pin = f"fresh{name}", pinned(composites[name])
        assert bool(pin) is (name in PINNED)
        await pins.only(composites[name]["metadata"]["uid"], pin)
        if pin:
            spec = {**spec, "crdkeeper": {**spec["crdkeeper"], "compositionRevisionRef": {"name": pin}}}
        await composing.create(fresh, ADOPTS, **spec)
        await users.works(fresh)
        await same_objects(composing.author, name, fresh)
        assert FINALIZER in composites[name]["metadata"]["finalizers"]


async def at_work(witness: ComposedWitness, objects: int) -> None:
    """Wait until so many objects have come or gone, or a few seconds.

    Else a slow machine is mostly killed before it has begun.
    """

    def moved() -> int:
        return sum(witness.made.values()) + sum(witness.ended.values())

    async def enough(goal: int = moved() + objects) -> bool:
        return moved() >= goal

    with suppress(AssertionError):
        await eventually(enough, seconds=_WORK_SECONDS)


@pytest.mark.timeout(300 + 15 * KILLS)
async def test_kills_at_random_instants(composing: Composing, composer: Operator) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice, log = random.Random(seed), composer.log_size()
    async with witness_of(composing.author, BEFORE) as witness, pins_of(composing) as pins:
        users = Users(composing, dice)
        await users.begin()
        for _ in range(KILLS):
            # Sometimes it is still starting.
            if dice.random() < 0.7:
                await asyncio.to_thread(composer.wait_ready)
            for _ in range(dice.randrange(1, 6)):
                await users.act()
                await asyncio.sleep(dice.uniform(0.0, 0.2))
            await at_work(witness, dice.randrange(4))
            await asyncio.sleep(dice.uniform(0.0, 0.7))
            composer.kill()
            composer.start(wait=False)
        await asyncio.to_thread(composer.wait_ready)
        await users.settle()
        await as_if_never_killed(users, composing, witness, pins)
        await users.zone("")
        print(f"{dict(users.done)}; {sum(witness.made.values())} made, {sum(witness.ended.values())} ended")
    assert "Traceback" not in composer.log_since(log)
