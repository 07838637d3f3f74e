"""Two replicas, and leadership that changes during a run: by a kill, by a pause, and by a clean end."""

from collections.abc import Callable

from tests.cluster.harness import Admin, CustomKind, Operator, outdated
from tests.cluster.harness.admin import MIGRATIONS
from tests.controlplane.cluster import Cluster
from tests.faults.replicas import HASTY, LEASE, until_ended, until_leading
from tests.faults.scene import (
    assert_all_stored_at,
    assert_each_written_once,
    rewritten,
    write_counts,
)

StartOperator = Callable[..., Operator]


async def test_leadership_moves_again_and_again(
    admin: Admin, installed: Cluster, start_operator: StartOperator, group: str
) -> None:
    objects = 240  # at one a second, more than are rewritten while leadership moves on a slow machine
    kind = await outdated(admin, CustomKind(group), objects)
    before = write_counts(admin, kind)
    leader = start_operator(installed, identity="a", flags=HASTY)
    await until_leading(leader)
    standby = start_operator(installed, identity="b", flags=HASTY)
    assert standby.probe("/readyz") == (200, "standby")
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 1})

    for how in (paused, ended, killed):
        await admin.wait_until_stored(kind, "v2", rewritten(admin, kind) + 2)
        await how(admin, leader, standby)
        leader.start()
        leader, standby = standby, leader
        assert leader.leading()
        assert standby.probe("/readyz") == (200, "standby")
        assert leader.metric("crdkeeper_leader") == 1
        assert standby.metric("crdkeeper_leader") == 0

    assert rewritten(admin, kind) < objects, "leadership did not move in mid-run"
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 1000})
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert migration.status.restarts == 0
    await assert_all_stored_at(admin, kind, objects)
    assert_each_written_once(admin, kind, since=before)
    assert "Traceback" not in leader.log_since() + standby.log_since()


async def killed(admin: Admin, leader: Operator, standby: Operator) -> None:
    """The leader dies; its Lease expires, here a second after its last renewal."""
    leader.kill()
    await admin.merge(LEASE, {"spec": {"leaseDurationSeconds": 1}})
    await until_leading(standby)


async def paused(admin: Admin, leader: Operator, standby: Operator) -> None:
    """The leader is paused until the other one works; once awake, it ends itself."""
    leader.pause()
    await until_leading(standby)
    leader.resume()
    assert await until_ended(leader) == 1
    assert "Lost leadership" in leader.log_since()


async def ended(admin: Admin, leader: Operator, standby: Operator) -> None:
    """A leader that is stopped releases the Lease, so that nobody waits for it to expire."""
    assert leader.stop() == 0
    spec = (await admin.get(LEASE))["spec"]
    assert spec.get("holderIdentity", "") in ("", standby.identity)
    await until_leading(standby)


async def test_a_leader_that_wakes_up_too_late_leaves_the_status_as_it_is(
    admin: Admin, installed: Cluster, start_operator: StartOperator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 40)
    late = start_operator(installed, identity="late", flags=HASTY)
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 1})
    await admin.wait_until_stored(kind, "v2", 3)
    late.pause()
    other = start_operator(installed, identity="other", flags=HASTY)
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 1000})
    await admin.wait_for_condition(group, "Succeeded", "True")
    done = await admin.get(f"{MIGRATIONS}/{group}")

    late.resume()

    assert await until_ended(late) == 1
    assert await admin.get(f"{MIGRATIONS}/{group}") == done
    assert other.leading()
    await assert_all_stored_at(admin, kind, 40)
