"""Stopping a migration during the run: to resume it later, or finally."""

from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.harness import Admin, CustomKind, Operator, condition, outdated, time_passes
from tests.cluster.harness.admin import MIGRATIONS

TOTAL = 60
SLOWLY = {"maxObjectsPerSecond": 1}
"""A minute for a pass, so that what a test does falls into it however busy the machine is."""
FAST = {"maxObjectsPerSecond": None}


async def in_mid_run(admin: Admin, group: str) -> CustomKind:
    """A kind with some of its objects rewritten, and a slow migration with the group's name in progress."""
    kind = await outdated(admin, CustomKind(group), TOTAL)
    await admin.create_migration(group, kind, limits=SLOWLY)
    await admin.wait_until_stored(kind, "v2", at_least=2)
    return kind


async def suspended(admin: Admin, name: str) -> StorageMigration:
    """Suspends a migration and waits until it says so."""
    await admin.patch_migration(name, suspend=True)
    return await admin.wait_for_condition(name, "Suspended", "True")


async def test_nothing_is_written_while_suspended(admin: Admin, operator: Operator, group: str) -> None:
    kind = await in_mid_run(admin, group)

    migration = await suspended(admin, group)
    before = admin.stored(kind)
    assert 2 <= before["v2"] < TOTAL
    assert condition(migration, "Succeeded").reason == "Suspended"
    await time_passes(admin)
    assert admin.stored(kind) == before

    await admin.patch_migration(group, suspend=False, limits=FAST)
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert condition(migration, "Suspended").status == "False"
    assert admin.stored(kind) == {"v2": TOTAL}
    assert await admin.stored_versions_of(kind) == ["v2"]
    progress = migration.status.progress
    assert (progress.total, progress.rewritten + progress.current) == (TOTAL, TOTAL)
    assert progress.rewritten >= TOTAL - before["v2"]
    # What was written before is known to be current: at most what was in flight is written again.
    assert operator.requests(kind.name) <= TOTAL + 4


async def test_a_suspended_migration_stays_so_in_a_new_process(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await in_mid_run(admin, group)
    await suspended(admin, group)
    before = admin.stored(kind)

    assert operator.stop() == 0
    operator.start()
    await time_passes(admin)
    assert admin.stored(kind) == before
    assert operator.requests(kind.name) == 0

    await admin.patch_migration(group, suspend=False, limits=FAST)
    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": TOTAL}
    # Those that were rewritten are not written again.
    assert operator.requests(kind.name) == TOTAL - before["v2"]


async def test_a_migration_can_be_created_suspended(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 3)
    await admin.create_migration(group, kind, suspend=True)
    await admin.wait_for_condition(group, "Suspended", "True")
    await time_passes(admin)
    assert admin.stored(kind) == {"v1": 3}

    await admin.patch_migration(group, suspend=False)
    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 3}


async def test_deleting_a_migration_stops_the_writes(admin: Admin, operator: Operator, group: str) -> None:
    kind = await in_mid_run(admin, group)

    await admin.delete_migration(group)
    assert await admin.find(f"{MIGRATIONS}/{group}") is None
    await time_passes(admin)
    before = admin.stored(kind)
    assert 2 <= before["v2"] < TOTAL
    await time_passes(admin)
    assert admin.stored(kind) == before
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]

    # The next one finds what is done and does the rest.
    migration = await admin.migrate(group, kind)
    assert admin.stored(kind) == {"v2": TOTAL}
    progress = migration.status.progress
    assert (progress.rewritten, progress.current) == (before["v1"], before["v2"])
