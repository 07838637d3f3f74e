"""Limits are enforced: at no moment is more written than they allow for the time since the first write.

The assertions hold however slow the machine is: a slow one only writes less.
"""

import time

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import ApiError
from tests.cluster.harness import Admin, CustomKind, Operator, outdated

TOTAL = 60


async def bounded_to_the_end(
    admin: Admin, name: str, kind: CustomKind, limits: dict[str, float], *, rate: float
) -> None:
    """Requests a migration, waits for its end, and checks that it never writes more objects per second.

    One second's worth may come at once.
    """
    before_first_write = time.monotonic()
    await admin.create_migration(name, kind, limits=limits)

    def finished_within_bounds(migration: StorageMigration) -> bool:
        nonlocal before_first_write
        start = time.monotonic()
        written = admin.stored(kind).get("v2", 0)
        if written:
            assert written <= 1 + rate * (time.monotonic() - before_first_write + 1)
        else:
            before_first_write = start
        return migration.status.completion_time is not None

    await admin.wait_for_migration(name, finished_within_bounds, "finished")
    assert admin.stored(kind) == {"v2": TOTAL}


async def test_objects_per_second(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), TOTAL)
    await bounded_to_the_end(admin, group, kind, {"maxObjectsPerSecond": 20}, rate=20)


async def test_bytes_per_second(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, TOTAL, note="x" * 4000)
    await admin.opt_in(group)
    kind = kind.storing("v2")
    await admin.apply_definition(kind)
    size = len((await admin.client.send("GET", kind.path("db-00000"))).content)
    await bounded_to_the_end(admin, group, kind, {"maxBytesPerSecond": 20 * size}, rate=20)


async def test_concurrency(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), TOTAL)
    seen: set[int] = set()

    def done(migration: StorageMigration) -> bool:
        seen.add(migration.status.progress.concurrency)
        return migration.status.completion_time is not None

    # Progress is saved every two seconds: slow until that has been observed.
    await admin.create_migration(group, kind, limits={"maxConcurrency": 2, "maxObjectsPerSecond": 1})
    await admin.wait_for_migration(
        group, lambda migration: migration.status.progress.concurrency > 0, "writing"
    )
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 30})
    await admin.wait_for_migration(group, done, "finished")
    assert max(seen) <= 2


async def test_a_fixed_concurrency(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), TOTAL)
    seen: set[int] = set()

    def fixed(migration: StorageMigration) -> bool:
        seen.add(migration.status.progress.concurrency)
        return migration.status.progress.concurrency > 0

    # Slow until its progress has been observed.
    limits = {"minConcurrency": 7, "maxConcurrency": 7, "maxObjectsPerSecond": 1}
    await admin.create_migration(group, kind, limits=limits)
    await admin.wait_for_migration(group, fixed, "writing")
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": None})
    await admin.wait_for_condition(group, "Succeeded", "True")
    assert seen - {0} == {7}
    assert admin.stored(kind) == {"v2": TOTAL}


@pytest.mark.parametrize("limits", [{"minConcurrency": 9, "maxConcurrency": 8}, {"minConcurrency": 65}])
async def test_a_minimum_above_the_maximum_is_refused(
    admin: Admin, group: str, limits: dict[str, int]
) -> None:
    with pytest.raises(ApiError, match="minConcurrency must not exceed maxConcurrency") as refused:
        await admin.create_migration(group, CustomKind(group), limits=limits)
    assert refused.value.code == 422


async def test_a_limit_can_be_lifted_in_mid_run(admin: Admin, operator: Operator, group: str) -> None:
    many = 4 * TOTAL
    kind = await outdated(admin, CustomKind(group), many)
    # At this rate it would take longer than the test waits.
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 1})
    await admin.wait_until_stored(kind, "v2", at_least=2)

    await admin.patch_migration(group, limits={"maxObjectsPerSecond": None})

    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": many}
