"""A CRD that changes during the run: rolled back, deleted, re-created. Evidence does not survive that."""

from collections.abc import Iterator, Sequence

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.harness import (
    Admin,
    CustomKind,
    Operator,
    condition,
    each_of,
    eventually,
    outdated,
    time_passes,
)
from tests.cluster.harness.admin import CRDS
from tests.controlplane.cluster import Cluster

TOTAL = 60
SLOWLY = {"maxObjectsPerSecond": 1}
"""A minute for a pass, so that what a test does falls into it however busy the machine is."""
FINALIZER = "example.com/protect"


@pytest.fixture(scope="module")
def module_operator(installed: Cluster) -> Iterator[Operator]:
    """One that keeps its Lease through a pause, however long the test takes meanwhile."""
    operator = Operator(installed, flags={"lease-duration": "120", "renew-deadline": "100"})
    yield operator
    operator.close()


async def in_mid_run(admin: Admin, group: str) -> CustomKind:
    """A kind with some of its objects rewritten, and a slow migration with the group's name in progress."""
    kind = await outdated(admin, CustomKind(group), TOTAL)
    await admin.create_migration(group, kind, limits=SLOWLY)
    await admin.wait_until_stored(kind, "v2", at_least=2)
    return kind


async def restarted(admin: Admin, name: str, times: int = 1) -> StorageMigration:
    """The migration once it has restarted that often; from then on it may be fast."""
    found = await admin.wait_for_migration(name, lambda seen: seen.status.restarts == times, "restarted")
    await admin.patch_migration(name, limits={"maxObjectsPerSecond": None})
    return found


async def definition_gone(admin: Admin, kind: CustomKind) -> None:
    """Returns when the CRD is really gone."""

    async def gone() -> bool:
        return await admin.find(f"{CRDS}/{kind.name}") is None

    await eventually(gone)


async def test_a_rollback_in_mid_run_is_followed(admin: Admin, operator: Operator, group: str) -> None:
    kind = await in_mid_run(admin, group)

    back = kind.storing("v1")
    await admin.apply_definition(back)

    migration = await restarted(admin, group)
    resolved = condition(migration, "Resolved")
    assert resolved.reason == "TargetChanged"
    assert "storage version v2 to v1" in resolved.message
    assert migration.status.target is not None
    assert migration.status.target.storage_version == "v1"
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v1": TOTAL}
    assert await admin.stored_versions_of(kind) == ["v1"]
    assert migration.status.restarts == 1
    await admin.wait_for_event(group, "Warning", "TargetChanged")


async def test_a_rollback_and_forward_again_in_mid_run(admin: Admin, operator: Operator, group: str) -> None:
    kind = await in_mid_run(admin, group)

    # The version names have not changed; that they did in between shows only in the generation.
    await admin.apply_definition(kind.storing("v1"))
    await admin.create_objects(kind.storing("v1"), 10, prefix="during-rollback")
    await admin.apply_definition(kind)

    migration = await admin.wait_for_migration(group, lambda seen: seen.status.restarts >= 1, "restarted")
    assert condition(migration, "Resolved").reason == "TargetChanged"
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": None})
    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": TOTAL + 10}
    assert await admin.stored_versions_of(kind) == ["v2"]


async def test_a_change_of_labels_is_no_change(admin: Admin, operator: Operator, group: str) -> None:
    kind = await in_mid_run(admin, group)
    await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"labels": {"team": "databases"}}})
    await time_passes(admin)
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": None})
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert migration.status.restarts == 0
    assert admin.stored(kind) == {"v2": TOTAL}


async def test_a_deleted_crd_ends_the_run(admin: Admin, operator: Operator, group: str) -> None:
    kind = await in_mid_run(admin, group)

    await admin.delete(f"{CRDS}/{kind.name}")

    migration = await admin.wait_for_condition(group, "Succeeded", "False")
    assert condition(migration, "Succeeded").reason in ("DefinitionTerminating", "DefinitionDeleted")
    assert migration.status.completion_time is not None
    await definition_gone(admin, kind)
    assert admin.stored(kind) == {}
    before = operator.requests(kind.name)
    await time_passes(admin)
    assert operator.requests(kind.name) == before <= TOTAL


async def test_objects_of_a_terminating_crd_are_left_alone(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    names = await admin.create_objects(kind, TOTAL)
    await each_of(names, lambda name: protect(admin, kind, name))
    await admin.opt_in(group)
    flipped = kind.storing("v2")
    await admin.apply_definition(flipped)
    await admin.create_migration(group, flipped, limits=SLOWLY)
    await admin.wait_until_stored(kind, "v2", at_least=2)

    await admin.delete(f"{CRDS}/{kind.name}")

    await admin.wait_for_condition(group, "Succeeded", "False", "DefinitionTerminating")
    # The API server records the deletion in each object, which is a write, too.
    await admin.wait_until_stored(kind, "v2", at_least=TOTAL)
    before, requests = await admin.resource_versions(kind), operator.requests(kind.name)
    await time_passes(admin)
    assert await admin.resource_versions(kind) == before
    assert operator.requests(kind.name) == requests < TOTAL
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]
    await each_of(names, lambda name: protect(admin, kind, name, finalizers=None))
    await definition_gone(admin, kind)


async def protect(
    admin: Admin, kind: CustomKind, name: str, *, finalizers: Sequence[str] | None = (FINALIZER,)
) -> None:
    """Sets an object's finalizers."""
    await admin.merge(kind.path(name), {"metadata": {"finalizers": finalizers}})


async def test_a_crd_that_is_created_anew_is_another_one(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await in_mid_run(admin, group)
    uid = (await admin.definition(kind))["metadata"]["uid"]

    # While the operator does not look, so that it never sees the CRD missing.
    operator.pause()
    try:
        await admin.delete(f"{CRDS}/{kind.name}")
        await definition_gone(admin, kind)
        await outdated(admin, CustomKind(group), 20)
        # Before it begins anew: what a change of the pace interrupts may be counted as current.
        await admin.patch_migration(group, limits={"maxObjectsPerSecond": None})
    finally:
        operator.resume()

    migration = await restarted(admin, group)
    assert "was re-created" in condition(migration, "Resolved").message
    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert migration.status.target is not None
    assert migration.status.target.uid == (await admin.definition(kind))["metadata"]["uid"] != uid
    assert admin.stored(kind) == {"v2": 20}
    assert await admin.stored_versions_of(kind) == ["v2"]
    progress = migration.status.progress
    assert (progress.total, progress.rewritten, progress.current) == (20, 20, 0)
