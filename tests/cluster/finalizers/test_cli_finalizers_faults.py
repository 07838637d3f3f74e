"""`crdkeeper finalizers --release` that is killed, disturbed, or loses its right, and with many objects.

Its account has just the documented rights, and that to create Events.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crdkeeper.cluster.resources.access import Right
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    create_held,
    finalizers_of,
    held_objects,
    release_events,
    release_notes,
    write,
    write_all,
)
from tests.cluster.harness import Admin, CustomKind, eventually
from tests.cluster.harness.accounts import Account, documented_rights, limited, rights_to_add, unnamed
from tests.dice import drawn_seed

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "4"))
OBJECTS = 380 + 30 * KILLS
"""More than are released until the last kill, 20 each second, by a command that a busy machine kills late."""
HELD = 500
"""More than are released, 20 each second, until a busy machine has noticed that and withdrawn a right."""
MANY = int(os.environ.get("CRDKEEPER_HELD_OBJECTS", "500"))
"""Likewise until it has noticed that, and written the last of them."""
EVENTS = Right("create", "events.k8s.io", "events")

Shells = Callable[[Path], CommandLine]


def released(kind: CustomKind) -> tuple[str, ...]:
    """The command."""
    return "finalizers", kind.name, "--release", NAMED, "--after", "1s", "--yes"


def rights_for(kind: CustomKind) -> list[Right]:
    names = {"databases.example.com": kind.name, "example.com": kind.group, "databases": kind.plural}
    return [*documented_rights("finalizers.md", "crdkeeper finalizers --release", names), EVENTS]


@asynccontextmanager
async def permitted(admin: Admin, kind: CustomKind) -> AsyncIterator[Account]:
    """An account that may release finalizers of the kind."""
    async with limited(admin, f"releases-{kind.group.partition('.')[0]}") as account:
        await account.grant(rights_for(kind))
        yield account


async def create_due(
    admin: Admin, kind: CustomKind, names: Iterable[str], finalizers: tuple[str, ...] = (NAMED,)
) -> None:
    """Creates objects in deletion, and returns when the time for their finalizer is over."""
    await create_held(admin, kind, names, finalizers)
    over = admin.client.now().timestamp() + 3

    async def later() -> bool:
        return admin.client.now().timestamp() >= over

    await eventually(later)


async def with_it(admin: Admin, kind: CustomKind) -> set[str]:
    """The objects that still have the finalizer."""
    return {name for name, each in (await finalizers_of(admin, kind)).items() if NAMED in each}


async def until_fewer(admin: Admin, kind: CustomKind, number: int) -> None:
    """Returns when the command is at work: fewer objects than that have the finalizer."""

    async def look() -> bool:
        return len(await with_it(admin, kind)) < number

    await eventually(look, otherwise=lambda: f"{number} objects still have the finalizer")


@pytest.mark.timeout(300 + 40 * KILLS)
async def test_kills_at_random_instants(admin: Admin, group: str, shells: Shells) -> None:
    """What was named is released once from each object; nothing else is released, whatever happens."""
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    kind = CustomKind(group)
    async with held_objects(admin, kind), permitted(admin, kind) as account:
        shell = shells(account.kubeconfig)
        both = [f"both-{at:04d}" for at in range(OBJECTS)]
        await create_held(admin, kind, ["foreign"], [OTHER])
        alive = kind.instance("alive")
        alive["metadata"]["finalizers"] = [NAMED]
        await admin.create_instances(kind, [alive])
        await create_due(admin, kind, both, (OTHER, NAMED))
        stop = asyncio.Event()

        async def interfere() -> None:
            while not stop.is_set():
                await write(admin, kind, dice.choice(both), "interferer", str(dice.random()))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(interfere())
            for _ in range(KILLS):
                before = len(await with_it(admin, kind))
                command = shell.start(*released(kind))
                await until_fewer(admin, kind, before)
                await asyncio.sleep(dice.uniform(0.0, 0.5))
                command.kill()
                left = await finalizers_of(admin, kind)
                assert all(OTHER in left[each] for each in both)
                assert (left["foreign"], left["alive"]) == ([OTHER], [NAMED])
                assert 1 < len(await with_it(admin, kind)) < before, "it was not killed in the middle"
            stop.set()

        async def all_released() -> bool:
            return (await shell.run(*released(kind))).exit_code == 0

        await eventually(all_released, otherwise=lambda: "objects are left again and again")
        expected = {each: [OTHER] for each in both} | {"foreign": [OTHER], "alive": [NAMED]}
        assert await finalizers_of(admin, kind) == expected
        notes = await release_events(admin, kind)
        assert {len(each) for each in notes.values()} == {1}
        # A kill between a release and its Event loses that Event.
        assert OBJECTS - KILLS <= len(notes) <= OBJECTS


@pytest.mark.timeout(300 + MANY // 4)
async def test_many_objects(admin: Admin, group: str, shells: Shells) -> None:
    """At a limited rate; what its manager writes meanwhile is kept."""
    kind = CustomKind(group)
    async with held_objects(admin, kind), permitted(admin, kind) as account:
        names = [f"many-{at:05d}" for at in range(MANY)]
        await create_due(admin, kind, names)
        free, busy = names[:-10], names[-10:]
        began = asyncio.get_running_loop().time()
        command = shells(account.kubeconfig).start(*released(kind))
        await until_fewer(admin, kind, MANY)
        await write_all(admin, kind, busy, "cleaner", "1")
        done = await command.done(seconds=120 + MANY / 5)
        took = asyncio.get_running_loop().time() - began

        assert (done.exit_code, done.stdout) == (
            1,
            f"Released {NAMED} from {len(free):,} objects; 10 left.\n",
        )
        assert done.stderr.endswith(
            "".join(f"default/{each}: kept, somebody has just written it\n" for each in busy)
        )
        assert await finalizers_of(admin, kind) == {each: [NAMED] for each in busy}
        assert took >= (MANY - 1) / 20, "it was faster than the limit"
        notes = await release_events(admin, kind)
        assert sorted(notes) == free
        assert {len(each) for each in notes.values()} == {1}


async def test_a_right_that_is_withdrawn_in_the_middle(admin: Admin, group: str, shells: Shells) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind), permitted(admin, kind) as account:
        await create_due(admin, kind, [f"one-{at:03d}" for at in range(HELD)])
        command = shells(account.kubeconfig).start(*released(kind))
        await until_fewer(admin, kind, HELD)
        rights = rights_for(kind)
        (patch,) = (each for each in rights if each.verb == "patch")
        await account.grant(rights, but=[patch])
        done = await command.done()
        assert done.exit_code == 1
        assert rights_to_add(done.stderr) == unnamed([patch])
        left = len(await finalizers_of(admin, kind))
        assert 0 < left < HELD
        objects = "1 object" if left == HELD - 1 else f"{HELD - left} objects"
        assert done.stdout == f"Released {NAMED} from {objects}; {left} left.\n"


async def test_without_the_right_to_create_events(admin: Admin, group: str, shells: Shells) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind), permitted(admin, kind) as account:
        await account.grant(rights_for(kind), but=[EVENTS])
        await create_due(admin, kind, ["one"])
        done = await shells(account.kubeconfig).run(*released(kind))
        assert (done.exit_code, done.stdout) == (0, f"Released {NAMED} from 1 object; 0 left.\n")
        assert await finalizers_of(admin, kind) == {}
        # Another release, with the right: what is not there by its Event is not there at all.
        await account.grant(rights_for(kind))
        await create_due(admin, kind, ["two"])
        assert (await shells(account.kubeconfig).run(*released(kind))).exit_code == 0
        assert list(await release_notes(admin, kind, "two")) == ["two"]
