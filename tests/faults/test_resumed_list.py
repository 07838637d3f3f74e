"""After a kill, the list goes on with the objects as they are: what was written meanwhile costs no request.

A continue token names a revision. The API server serves it from there for minutes, and shows each object
that was written since as it was before.
"""

from collections.abc import Callable

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.objects import PAGE
from tests.cluster.harness import Admin, CustomKind, Operator, outdated
from tests.cluster.harness.manyobjects import put_objects
from tests.cluster.harness.requestcounts import requests_of
from tests.controlplane.cluster import Cluster
from tests.faults.scene import assert_all_stored_at, assert_each_written_once, write_counts

OBJECTS = 3 * PAGE
SLOWLY = {"maxObjectsPerSecond": 50}
"""A page takes ten seconds: a test that stands still for so long finds the run amid the next one."""


@pytest.mark.timeout(600)
async def test_what_a_killed_operator_wrote_is_not_tried_again(
    admin: Admin, installed: Cluster, start_operator: Callable[..., Operator], group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), OBJECTS, make=put_objects)
    before = write_counts(admin, kind)
    operator = start_operator(installed)
    await admin.create_migration(group, kind, limits=SLOWLY)
    await admin.wait_for_migration(group, amid_a_page, "amid a page", seconds=300)
    operator.kill()
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 2000})

    operator.start()

    await admin.wait_for_condition(group, "Succeeded", "True")
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert_each_written_once(admin, kind, since=before)
    assert await requests_of(admin, kind, "PATCH", code="409") == 0


def amid_a_page(migration: StorageMigration) -> bool:
    """Whether a run would resume before objects that are written."""
    sweep, progress = migration.status.sweep, migration.status.progress
    if sweep is None or sweep.type != "Rewrite" or sweep.continue_token is None:
        return False
    return progress.rewritten >= sweep.scanned + 100
