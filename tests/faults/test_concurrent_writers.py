"""Others write, create and delete all the time: no write of theirs is lost, and none of ours is visible."""

import asyncio

from tests.cluster.harness import Admin, Operator, eventually
from tests.dice import drawn_seed
from tests.faults.scene import assert_all_stored_at
from tests.faults.writers import Writers, counting

WRITTEN = 100
STILL = 50
REQUESTS = "crdkeeper_migration_requests_total"


async def test_no_acknowledged_write_is_lost(admin: Admin, operator: Operator, group: str) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed}")
    kind = counting(group)
    await admin.apply_definition(kind)
    names = await admin.create_objects(kind, WRITTEN)
    await admin.create_objects(kind, STILL, prefix="still")
    await admin.opt_in(group)
    writers = Writers(admin, kind, names, seed=seed)
    writers.start()
    kind = kind.storing("v2")
    await admin.apply_definition(kind)

    async def met_another() -> bool:
        conflicts = await asyncio.to_thread(operator.metric, REQUESTS, resource=kind.name, code="409")
        return conflicts > 0

    # Slow until then: else a run would be over while the writers, all in this process, stand still.
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 5}, verify="Full")
    await eventually(met_another, otherwise=lambda: "no write met another one")
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 60})
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    # The check of `admin` has read etcd at the trim; they continue to write after it.
    await writers.stop()

    await writers.check()
    await assert_all_stored_at(admin, kind, WRITTEN + STILL + len(writers.present))
    progress = migration.status.progress
    assert progress.rewritten >= STILL
    assert progress.quarantined == migration.status.quarantine.rounds == 0
