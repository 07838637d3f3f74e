"""No API server ever rejects a replica: through rotations, kills, lost answers, two leaders and damage."""

import asyncio
import os
from itertools import product

import pytest

from tests import virtualtime
from tests.property.rotation import DAMAGE, Leader, World

HOUR = 3600.0
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


async def _until(world: World, end: float, leader: Leader | None, *, shortest: float = 1.0) -> None:
    """Kill and start operators until then. A killed one may already have a successor, or none for a while."""
    random = world.random
    while virtualtime.now() < end:
        await asyncio.sleep(random.choice((random.uniform(shortest, 90), random.uniform(shortest, 2 * HOUR))))
        world.raise_if_untrusted()
        successor = Leader(world) if random.random() < 0.3 else None
        if successor is not None:
            await asyncio.sleep(random.uniform(0, 60))
        if leader is not None:
            await leader.kill()
        if successor is None:
            await asyncio.sleep(random.choice((0, random.uniform(0, 0.2 * HOUR))))
            successor = Leader(world)
        leader = successor
    assert leader is not None
    await leader.kill()


@pytest.mark.parametrize("seed", range(200 if LONG else 2))
def test_kills_and_faults(seed: int) -> None:
    async def main() -> World:
        world = World(seed, faulty=0.05)
        world.start()
        await _until(world, 25 * HOUR, Leader(world))
        await world.stop()
        return world

    world = virtualtime.run(main())
    assert len(world.served) > 10
    assert len(world.anchors) > 2
    assert world.checks > 10_000


@pytest.mark.parametrize(
    ("seed", "damage"), [*enumerate(DAMAGE), *(product(range(50), DAMAGE) if LONG else ())]
)
def test_damage(seed: int, damage: str) -> None:
    """One part is lost at any moment, even during a rotation, and without an operator that remembers."""

    async def main() -> World:
        world = World(seed)
        world.start()
        leader = Leader(world)
        # A CA is renewed after 6.3 hours: the damage comes in the middle of that.
        begin = 6.3 * HOUR if seed % 2 else HOUR
        await asyncio.sleep(begin + world.random.uniform(0, 1800))
        if world.random.random() < 0.5:
            await leader.kill()
            DAMAGE[damage](world.secrets)
            leader = Leader(world)
        else:
            DAMAGE[damage](world.secrets)
        await asyncio.sleep(3 * HOUR)
        await leader.kill()
        await world.stop()
        assert leader.certificate.problem == ""
        return world

    world = virtualtime.run(main())
    assert len(world.served) > 2


def test_both_secrets_are_lost_while_the_operator_remembers_the_bundle() -> None:
    """Replicas keep serving with what they have, and are trusted: the old CA is in the new bundle."""

    async def main() -> int:
        world = World(1)
        world.start()
        leader = Leader(world)
        await asyncio.sleep(HOUR)
        before = leader.certificate.bundle
        world.secrets.objects.clear()
        await asyncio.sleep(0.1 * HOUR)
        bundle = leader.certificate.bundle
        await leader.kill()
        assert before is not None
        assert bundle is not None
        assert bundle != before
        return bundle.count("BEGIN CERTIFICATE") if before in bundle else 0

    assert virtualtime.run(main()) == 2


def test_the_checks_can_fail() -> None:
    """A CA that is dropped before the replicas stop using it is detected."""

    async def main() -> None:
        world = World(1)
        world.start()
        leader = Leader(world)
        await asyncio.sleep(HOUR)
        await leader.kill()
        world.secrets.objects.clear()
        other = Leader(world)
        await asyncio.sleep(HOUR)
        await other.kill()
        await world.stop()

    with pytest.raises(AssertionError, match=r"at .* s for"):
        virtualtime.run(main())
