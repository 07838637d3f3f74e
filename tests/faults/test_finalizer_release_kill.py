"""kill -9 of the operator while it releases finalizers, and another manager that writes the same objects."""

import asyncio
import os
import random
from collections.abc import Callable, Iterator

import pytest

from crdkeeper.cluster.transport.client import JSON_PATCH
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    create_held,
    figures,
    finalizers_of,
    held_objects,
    let_release,
    policy,
    policy_with,
    release_events,
    rule,
    until_finalizers,
    write,
)
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed
from tests.faults.replicas import PATIENT

KILLS = int(os.environ.get("CRDKEEPER_KILLS", "4"))
OBJECTS = 25 * KILLS
MANY = int(os.environ.get("CRDKEEPER_HELD_OBJECTS", "500"))
"""More than are released, 20 each second, until a busy machine has noticed that and paused the operator."""

StartOperator = Callable[..., Operator]


@pytest.fixture(scope="module")
def module_operator(installed: Cluster) -> Iterator[Operator]:
    """One that keeps its Lease through a pause, however long the test takes meanwhile."""
    operator = Operator(installed, flags=PATIENT)
    yield operator
    operator.close()


async def test_who_only_removes_something_keeps_the_others_through_a_kill(
    admin: Admin, installed: Cluster, start_operator: StartOperator, group: str
) -> None:
    """Its writes leave no time in managedFields, and the operator that saw them is gone."""
    kind = CustomKind(group)
    work = [f"test.example.com/work-{at}" for at in range(14)]
    async with held_objects(admin, kind):
        await let_release(admin, group)
        await create_held(admin, kind, ["one"], [*work, NAMED])
        await policy(admin, group, rule(after="30s"))
        operator = start_operator(installed)
        for at in range(len(work)):
            # Each step may take a busy machine 20 seconds more: after 30 without a write, a release is right.
            await asyncio.sleep(3.0)
            if at in (10, 12):  # in deletion for longer than those seconds
                operator.kill()
                operator.start()
            assert await finalizers_of(admin, kind) == {"one": [*work[at:], NAMED]}
            remove = [{"op": "remove", "path": "/metadata/finalizers/0"}]
            await admin.client.request("PATCH", kind.path("one"), remove, content_type=JSON_PATCH)
        await until_finalizers(admin, kind, {})


@pytest.mark.timeout(300 + 40 * KILLS)
async def test_kills_at_random_instants(
    admin: Admin, installed: Cluster, start_operator: StartOperator, group: str
) -> None:
    """What was named is released once from each object; nothing else is released, whatever happens."""
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS}")
    dice = random.Random(seed)
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        both = [f"both-{at:03d}" for at in range(OBJECTS)]
        await create_held(admin, kind, both, [NAMED, OTHER])
        await create_held(admin, kind, ["foreign"], [OTHER])
        alive = kind.instance("alive")
        alive["metadata"]["finalizers"] = [NAMED]
        await admin.create_instances(kind, [alive])
        await policy(admin, group, rule())
        operator = start_operator(installed, wait=False)
        stop = asyncio.Event()

        async def interfere() -> None:
            while not stop.is_set():
                await write(admin, kind, dice.choice(both), "interferer", str(dice.random()))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(interfere())
            for _ in range(KILLS):
                if not operator.running:
                    operator.start(wait=dice.random() > 0.2)
                await asyncio.sleep(dice.uniform(0.0, 3.0))
                operator.kill()
                left = await finalizers_of(admin, kind)
                assert all(OTHER in left[each] for each in both)
                assert (left["foreign"], left["alive"]) == ([OTHER], [NAMED])
            stop.set()
        operator.start()
        expected = {each: [OTHER] for each in both} | {"foreign": [OTHER], "alive": [NAMED]}
        await until_finalizers(admin, kind, expected, seconds=120 + OBJECTS)
        await policy_with(admin, group, "NothingHeld", seconds=120)
        notes = await release_events(admin, kind)
        assert {len(each) for each in notes.values()} == {1}
        # A kill between a release and its Event loses that Event.
        assert OBJECTS - KILLS <= len(notes) <= OBJECTS
    assert "Traceback" not in operator.log_since()


@pytest.mark.timeout(300 + MANY)
async def test_many_objects(admin: Admin, operator: Operator, group: str) -> None:
    """A batch at a time, at a limited rate; policies are followed at once when they change in the middle."""
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        await create_held(admin, kind, [f"many-{at:05d}" for at in range(MANY)])
        await policy(admin, group, rule(mode="Plan"))
        await policy_with(
            admin, group, "ReleasePlanned", lambda each: figures(each).due == MANY, seconds=120 + MANY / 50
        )
        await policy(admin, group, rule())
        await until_fewer(admin, kind, MANY)
        operator.pause()  # so that it does not end before it can see the change
        try:
            await policy(admin, group, rule(mode="Plan"))
        finally:
            operator.resume()
        planned = await policy_with(admin, group, "ReleasePlanned", seconds=120 + MANY / 50)
        stands = len(await finalizers_of(admin, kind))
        assert 0 < figures(planned).due == stands < MANY

        began = asyncio.get_running_loop().time()
        await policy(admin, group, rule())
        await until_finalizers(admin, kind, {}, seconds=120 + MANY / 5, every=MANY / 3000)
        took = asyncio.get_running_loop().time() - began
        assert took >= (stands - 2) / 20, "it was faster than the limit"
        await policy_with(admin, group, "NothingHeld", seconds=120)


async def until_fewer(admin: Admin, kind: CustomKind, count: int) -> None:
    """Returns when some of the objects are gone."""

    async def look() -> bool:
        return len(await finalizers_of(admin, kind)) < count

    await eventually(look)
