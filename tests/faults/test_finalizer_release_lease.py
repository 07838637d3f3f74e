"""The Lease changes hands in mid-release: no former leader releases anything, and no Event is sent twice."""

from collections.abc import Callable

import pytest

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
)
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.controlplane.cluster import Cluster
from tests.faults.replicas import HASTY, LEASE, until_ended, until_leading

OBJECTS = 150
MORE = 250
"""Held when the second replica leads: at 20 per second, more than are released until it is frozen."""


@pytest.mark.timeout(300)
async def test_the_lease_is_lost_in_mid_release(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        names = [f"held-{at:03d}" for at in range(OBJECTS)]
        await create_held(admin, kind, names, [NAMED, OTHER])
        first = start_operator(installed, identity="first", flags=HASTY)
        second = start_operator(installed, identity="second", flags=HASTY)
        await policy(admin, group, rule())
        await until_released(admin, kind, 15)

        # Somebody gives it to the other one, so that for a moment both release: until the first one looks.
        await admin.merge(LEASE, {"spec": {"holderIdentity": "second"}})
        assert await until_ended(first) == 1
        assert "second holds the Lease instead of first" in first.log_since()
        await until_leading(second)
        more = [f"more-{at:03d}" for at in range(MORE)]
        await create_held(admin, kind, more, [NAMED, OTHER])
        names += more
        await until_released(admin, kind, await released(admin, kind) + 10)

        # A leader that is frozen for longer than its Lease lasts, with more to release on its list.
        second.pause()
        await policy(admin, group, rule(mode="Plan"))
        first.start()
        await until_leading(first)
        # Not while the youngest still wait for their second to pass.
        planned = await policy_with(admin, group, "ReleasePlanned", lambda found: not figures(found).waiting)
        stands = await finalizers_of(admin, kind)
        assert 0 < figures(planned).due == sum(NAMED in each for each in stands.values())
        second.resume()
        assert await until_ended(second) == 1
        assert "Lost leadership" in second.log_since()
        assert await finalizers_of(admin, kind) == stands

        await policy(admin, group, rule())
        await until_finalizers(admin, kind, {each: [OTHER] for each in names}, seconds=180)
        await policy_with(admin, group, "NothingHeld")
        notes = await release_events(admin, kind)
        assert {len(each) for each in notes.values()} == {1}
        # Each of the two may have lost the Lease between a release and its Event.
        assert len(names) - 2 <= len(notes) <= len(names)
    assert "Traceback" not in first.log_since() + second.log_since()


async def released(admin: Admin, kind: CustomKind) -> int:
    """How many objects no longer have the finalizer."""
    return sum(NAMED not in each for each in (await finalizers_of(admin, kind)).values())


async def until_released(admin: Admin, kind: CustomKind, count: int) -> None:
    """Returns when it was released from so many objects."""

    async def look() -> bool:
        return await released(admin, kind) >= count

    await eventually(look)
