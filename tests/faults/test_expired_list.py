"""The continue token of a list has expired: 410 during a list, or before the next process resumes it.

An API server serves old tokens from snapshots of its watch cache; after a restart it has none, and then
etcd's compaction counts.
"""

from collections.abc import Callable

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.objects import PAGE
from tests.cluster.harness import Admin, CustomKind, Operator, eventually, outdated
from tests.cluster.harness.manyobjects import put_objects
from tests.cluster.harness.requestcounts import requests_of
from tests.controlplane.plane import ControlPlane
from tests.faults.replicas import PATIENT
from tests.faults.scene import assert_all_stored_at, assert_each_written_once, write_counts

OBJECTS = 6 * PAGE + 100
"""The operator lists two pages ahead while it processes a third, so the last one comes much later.

At 50 objects a second: the first page is behind it after 10 s, and the last one is listed after 40 s.
"""


@pytest.mark.timeout(400)
async def test_no_object_is_passed_over(
    breakable: ControlPlane, breakable_admin: Admin, start_operator: Callable[..., Operator], group: str
) -> None:
    admin = breakable_admin
    (server,) = breakable.api_servers
    kind = await outdated(admin, CustomKind(group), OBJECTS, make=put_objects)
    before = write_counts(admin, kind)
    operator = start_operator(breakable, flags=PATIENT)
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 50})
    await admin.wait_for_migration(group, behind_first_page, "behind its first page")

    operator.pause()
    server.kill()
    server.start()
    server.wait_ready()
    admin.etcd.compact()
    operator.resume()

    await until_gone(admin, kind, 1)
    await admin.wait_for_migration(group, behind_first_page, "behind its first page")
    operator.kill()
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 2000})

    operator.start()

    migration = await admin.wait_for_condition(group, "Succeeded", "True", seconds=180)
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert_each_written_once(admin, kind, since=before)
    assert migration.status.restarts == 0
    assert migration.status.progress.quarantined == migration.status.quarantine.rounds == 0
    assert "Traceback" not in operator.log_since()


def behind_first_page(migration: StorageMigration) -> bool:
    """Whether a continue token is recorded from which a run would resume."""
    sweep = migration.status.sweep
    return sweep is not None and sweep.type == "Rewrite" and sweep.continue_token is not None


async def until_gone(admin: Admin, kind: CustomKind, count: int) -> None:
    """Returns once the API server has answered that many lists with 410 since its start."""

    async def enough() -> bool:
        return await requests_of(admin, kind, "LIST", code="410") >= count

    await eventually(enough, otherwise=lambda: "no list was answered with 410")
