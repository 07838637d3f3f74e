"""SIGTERM during a run: progress is recorded, the Lease is free, and the process ends in time."""

from collections.abc import Callable

from tests.cluster.harness import Admin, CustomKind, Operator, outdated
from tests.controlplane.cluster import Cluster
from tests.faults.replicas import LEASE
from tests.faults.scene import (
    assert_all_stored_at,
    assert_each_written_once,
    rewritten,
    write_counts,
)

OBJECTS = 60
KOPF_WAITED_FOR_NOTHING = "Hung tasks stopping is skipped: no tasks given."
GRACE = 30.0
"""What the Deployment gives it until SIGKILL."""


async def test_what_was_done_is_on_record(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS)
    before = write_counts(admin, kind)
    operator = start_operator(installed, command=("run", "--verbose"))
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 15})
    await admin.wait_until_stored(kind, "v2", 25)
    counted = operator.metric("crdkeeper_migration_objects_total", resource=kind.name, outcome="rewritten")

    assert operator.stop(GRACE) == 0

    progress = (await admin.migration(group)).status.progress
    unanswered = rewritten(admin, kind) - progress.rewritten
    assert 0 <= unanswered <= progress.concurrency
    assert counted <= progress.rewritten
    assert (await admin.get(LEASE))["spec"]["holderIdentity"] == ""
    log = operator.log_since()
    assert "Traceback" not in log
    # For tasks that nobody ended, Kopf waits for five seconds: half the time, or more, that a Pod has.
    assert KOPF_WAITED_FOR_NOTHING in log

    operator.start()
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert migration.status.progress.rewritten == OBJECTS - unanswered
    assert migration.status.progress.current == unanswered
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert_each_written_once(admin, kind, since=before)
