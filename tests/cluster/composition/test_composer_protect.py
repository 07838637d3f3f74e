"""Protect loses nothing: whoever creates a composite while a definition is deleted is refused, or keeps it.

`CRDKEEPER_PROTECT_ROUNDS` is how many definitions are deleted while users create composites at random
instants.
"""

import asyncio
import os
import random
from dataclasses import dataclass, field

import orjson
import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH
from tests.cluster.composition.authoring import Author, Definition, condition
from tests.cluster.harness import each_of, eventually
from tests.dice import drawn_seed

ROUNDS = int(os.environ.get("CRDKEEPER_PROTECT_ROUNDS", "6"))
AT_ONCE = 6
USERS = 3
"""Of each definition, each at an instant of its own."""
SOON = 0.3
"""Seconds in which a CRD used to be deleted."""
LATE = 7.0
"""Seconds after which it is deleted now, at most."""


@dataclass
class Round:
    """One definition that is deleted, and the composites that its users were told they have."""

    thing: Definition
    made: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Why the others have none."""
    lost: list[str] = field(default_factory=list)


async def create(author: Author, one: Round, name: str) -> None:
    """As a user does, in one of two ways."""
    content = orjson.dumps(one.thing.composite(name))
    if int(name[1:]) % 2:
        answer = await author.client.send("POST", one.thing.objects, content=content)
    else:
        path = f"{one.thing.objects}/{name}?fieldManager=user"
        answer = await author.client.send("PATCH", path, content=content, content_type=APPLY_PATCH)
    if answer.code == 201:
        one.made.append(name)
    else:
        one.refused.add(f"{answer.code} {answer.json().get('message')}")


async def play(author: Author, one: Round, dice: random.Random) -> None:
    """Delete a definition while its users create composites."""
    await author.apply(one.thing)
    await author.ready(one.thing)
    await author.delete(one.thing.path)

    async def use(name: str) -> None:
        await asyncio.sleep(dice.uniform(0.0, SOON if dice.random() < 0.7 else LATE))
        await create(author, one, name)

    await each_of([f"a{each}" for each in range(USERS)], use)

    last: list[str] = []

    async def decided() -> bool:
        found = await author.get(one.thing.path)
        last[:] = [condition(found, "Established")[2] if found is not None else ""]
        return found is None or (bool(one.made) and last[0].startswith(f"{len(one.made)} composite"))

    await eventually(decided, otherwise=lambda: f"{one.made}: {last}")
    one.lost = sorted(set(one.made) - set(await author.names(one.thing)))
    if not one.made or one.lost:
        return
    crd = await author.get(one.thing.crd)
    assert "deletionTimestamp" not in crd["metadata"]
    assert all(f"default/{each}" in last[0] for each in one.made), last
    for name in one.made:
        await author.delete(f"{one.thing.objects}/{name}")
    await author.gone(one.thing.path)
    await author.gone(one.thing.crd)


@pytest.mark.timeout(300 + 10 * ROUNDS)
async def test_no_composite_is_lost_at_any_instant(author: Author, group: str) -> None:
    seed = drawn_seed()
    dice = random.Random(seed)
    rounds = [Round(Definition(group, f"thing{each}")) for each in range(ROUNDS)]
    for first in range(0, ROUNDS, AT_ONCE):
        await each_of(rounds[first : first + AT_ONCE], lambda one: play(author, one, dice))
    made, lost = (sum(map(len, each)) for each in ([r.made for r in rounds], [r.lost for r in rounds]))
    print(f"CRDKEEPER_SEED={seed} {ROUNDS} rounds: {made} of {ROUNDS * USERS} created, {lost} lost")
    assert not lost, f"{[(each.thing.name, each.lost) for each in rounds if each.lost]}"
