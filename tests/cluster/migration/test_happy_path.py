"""The main job: rewrite all objects, verify, trim; what users see of it, and what remains of it."""

from collections import Counter

import pytest

from tests.cluster.harness import (
    Admin,
    CustomKind,
    Operator,
    Version,
    condition,
    eventually,
    outdated,
    time_passes,
)
from tests.cluster.harness.admin import MIGRATIONS
from tests.cluster.harness.admission import denied

LEASES = (
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    "?labelSelector=apiserver.kubernetes.io/identity=kube-apiserver"
)


@pytest.mark.parametrize("namespaced", [True, False], ids=["namespaced", "cluster-scoped"])
async def test_all_objects_are_rewritten_and_the_old_version_is_trimmed(
    admin: Admin, operator: Operator, group: str, namespaced: bool
) -> None:
    kind = await outdated(admin, CustomKind(group, namespaced=namespaced), 30)
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]

    migration = await admin.migrate(group, kind)

    assert admin.stored(kind) == {"v2": 30}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert operator.requests(kind.name) == 30
    assert {each.type: (each.status, each.reason) for each in migration.status.conditions} == {
        "Resolved": ("True", "Pinned"),
        "Permitted": ("True", "Allowed"),
        "Settled": ("True", "Settled"),
        "Rewritten": ("True", "AllWritten"),
        "Verified": ("True", "NothingLeft"),
        # Applied at v1, and unchanged: see test_managed_fields.
        "ManagedFieldsCurrent": ("False", "OldVersionNamed"),
        "Trimmed": ("True", "Trimmed"),
        "Succeeded": ("True", "Migrated"),
        "Ready": ("True", "Migrated"),
    }
    assert {each.observed_generation for each in migration.status.conditions} == {1}
    progress = migration.status.progress
    assert (progress.total, progress.rewritten, progress.current, progress.gone) == (30, 30, 0, 0)
    assert (progress.quarantined, progress.percent, progress.remaining) == (0, 100, "")
    assert migration.status.target is not None
    assert migration.status.target.uid == (await admin.definition(kind))["metadata"]["uid"]
    assert migration.status.completion_time is not None


async def test_kubectl_wait_and_events_tell_what_happened(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 3)
    await admin.create_migration(group, kind)
    admin.cluster.kubectl("wait", "--for=condition=Succeeded", "--timeout=120s", f"smig/{group}")

    async def last_event() -> bool:
        return any(reason == "Migrated" for _, reason, _ in await admin.events(group))

    await eventually(last_event)
    reported = await admin.events(group)
    assert [(type_, reason) for type_, reason, _ in reported if reason != "Settling"] == [
        ("Normal", "Pinned"),
        ("Normal", "Settled"),
        ("Normal", "AllWritten"),
        ("Normal", "OldVersionNamed"),
        ("Normal", "NothingLeft"),
        ("Normal", "Trimmed"),
        ("Normal", "Migrated"),
    ]
    notes = {reason: note for _, reason, note in reported}
    assert notes["Trimmed"] == "Removed v1 from status.storedVersions of the CRD, which now lists only v2."
    assert notes["AllWritten"].startswith("3 objects rewritten, 0 already current")


async def test_only_what_is_old_is_written(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await outdated(admin, kind, 10)
    flipped = kind.storing("v2")
    await stores(admin, flipped, "v2")
    await admin.create_objects(flipped, 5, prefix="new")
    await admin.create_objects(flipped, 5, prefix="elsewhere", namespace="kube-public")
    before = await admin.resource_versions(flipped)

    migration = await admin.migrate(group, flipped)

    assert (migration.status.progress.rewritten, migration.status.progress.current) == (10, 10)
    after = await admin.resource_versions(flipped)
    changed = Counter(name.partition("-")[0] for name in before if before[name] != after[name])
    assert changed == {"db": 10}
    assert admin.stored(flipped) == {"v2": 20}


async def stores(admin: Admin, kind: CustomKind, version: str) -> None:
    """Returns once the API server stores new objects at that version: a changed CRD counts a little later."""

    async def look() -> bool:
        before = admin.stored(kind).get(version, 0)
        (name,) = await admin.create_objects(kind, 1, prefix="probe")
        found = admin.stored(kind).get(version, 0) > before
        await admin.client.request("DELETE", kind.path(name))
        return found

    await eventually(look)


async def test_all_old_versions_go_at_once(admin: Admin, operator: Operator, group: str) -> None:
    versions = (Version("v1", storage=True), Version("v2"), Version("v3"))
    kind = await outdated(admin, CustomKind(group, versions=versions), 4)
    await stores(admin, kind, "v2")
    await admin.create_objects(kind, 5, prefix="middle")
    latest = kind.storing("v3")
    await admin.apply_definition(latest)
    assert admin.stored(kind) == {"v1": 4, "v2": 5}
    assert await admin.stored_versions_of(kind) == ["v1", "v2", "v3"]

    await admin.migrate(group, latest)

    assert admin.stored(kind) == {"v3": 9}
    assert await admin.stored_versions_of(kind) == ["v3"]


async def test_a_crd_without_objects_is_trimmed(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 0)
    await admin.migrate(group, kind)
    assert await admin.stored_versions_of(kind) == ["v2"]


async def test_nothing_to_do_is_a_success(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 3)
    before = await admin.resource_versions(kind)

    # Without the permission to rewrite: there is nothing to rewrite.
    migration = await admin.migrate(group, kind)

    assert condition(migration, "Succeeded").reason == "AlreadyCurrent"
    assert {each.status for each in migration.status.conditions} == {"True"}
    assert await admin.resource_versions(kind) == before
    assert operator.requests(kind.name) == 0


async def test_a_migration_may_be_there_before_its_crd(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.create_migration(group, kind)
    waiting = await admin.wait_for_condition(group, "Resolved", "False", "ResourceNotFound")
    assert kind.name in condition(waiting, "Resolved").message
    assert condition(waiting, "Succeeded").status == "Unknown"

    await admin.apply_definition(kind)

    await admin.wait_for_condition(group, "Succeeded", "True", "AlreadyCurrent")


async def test_without_trim_stored_versions_stay(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    migration = await admin.migrate(group, kind, trim=False)
    assert condition(migration, "Trimmed").reason == "NotRequested"
    assert admin.stored(kind) == {"v2": 5}
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]


async def test_a_finished_migration_stays_finished(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    await admin.migrate(group, kind)
    finished = await admin.get(f"{MIGRATIONS}/{group}")

    assert operator.stop() == 0
    operator.start()
    await time_passes(admin)

    assert await admin.get(f"{MIGRATIONS}/{group}") == finished
    assert operator.requests(kind.name) == 0


async def test_a_verify_pass_can_write_all_again(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    migration = await admin.migrate(group, kind, verify="Full")
    assert condition(migration, "Verified").reason == "NothingLeft"
    assert operator.requests(kind.name) == 10
    assert operator.metric("crdkeeper_migration_objects_total", resource=kind.name, outcome="current") == 5


async def test_a_migration_is_deleted_when_its_ttl_is_over(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 1)
    await admin.create_migration(group, kind, ttlSecondsAfterFinished=1)

    async def gone() -> bool:
        return await admin.find(f"{MIGRATIONS}/{group}") is None

    await eventually(gone)
    assert await admin.stored_versions_of(kind) == ["v2"]
    await admin.wait_for_event(group, "Normal", "Migrated")


async def test_api_servers_are_seen_alive_before_anything_counts(
    admin: Admin, operator: Operator, group: str
) -> None:
    # By itself the API server renews its Lease every ten seconds: possibly right after the change.
    (lease,) = (await admin.get(LEASES))["items"]
    async with denied(
        admin,
        group,
        group="coordination.k8s.io",
        resource="leases",
        when=f"object.metadata.name == '{lease['metadata']['name']}'",
        such_as=(f"{LEASES.partition('?')[0]}/{lease['metadata']['name']}", {}),
    ):
        kind = await outdated(admin, CustomKind(group), 3)
        await admin.create_migration(group, kind, apiServerLeases="Require")
        await admin.wait_for_condition(group, "Settled", "False", "APIServerNotSeen")
        await time_passes(admin)
        assert admin.stored(kind) == {"v1": 3}

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert "1 API server of 1 seen alive after the change" in condition(migration, "Settled").message
    await admin.wait_for_event(group, "Normal", "APIServerNotSeen")
