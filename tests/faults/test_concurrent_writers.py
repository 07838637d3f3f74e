"""Others write, create and delete all the time: no write of theirs is lost, and none of ours is visible."""

import os
import random

from tests.cluster.harness import Admin, Operator
from tests.faults.scene import assert_all_stored_at
from tests.faults.writers import Writers, counting

WRITTEN = 100
STILL = 50


async def test_no_acknowledged_write_is_lost(admin: Admin, operator: Operator, group: str) -> None:
    seed = int(os.environ.get("CRDKEEPER_SEED") or random.SystemRandom().randrange(2**32))
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

    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 60}, verify="Full")
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    # The check of `admin` has read etcd at the trim; they continue to write after it.
    await writers.stop()

    await writers.check()
    await assert_all_stored_at(admin, kind, WRITTEN + STILL + len(writers.present))
    progress = migration.status.progress
    assert progress.rewritten >= STILL
    assert progress.quarantined == migration.status.quarantine.rounds == 0
    requests = "crdkeeper_migration_requests_total"
    assert operator.metric(requests, resource=kind.name, code="409") > 0, "no write met another one"
