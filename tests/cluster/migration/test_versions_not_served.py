"""Versions that the API server stores but does not serve: objects are listed and written at another one."""

from tests.cluster.harness import Admin, CustomKind, Operator, outdated
from tests.cluster.harness.admin import CRDS


async def test_the_storage_version_need_not_be_served(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    flipped = kind.storing("v2").changed("v2", served=False)
    await outdated(admin, kind, 10, flipped=flipped)

    migration = await admin.migrate(group, flipped)

    assert admin.stored(kind) == {"v2": 10}
    assert await admin.stored_versions_of(kind) == ["v2"]
    target = migration.status.target
    assert target is not None
    assert (target.storage_version, target.endpoint_version) == ("v2", "v1")


async def test_the_old_version_need_not_be_served_any_more(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    flipped = kind.storing("v2").changed("v1", served=False)
    await outdated(admin, kind, 10, flipped=flipped)

    migration = await admin.migrate(group, flipped)

    assert admin.stored(kind) == {"v2": 10}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert migration.status.target is not None
    assert migration.status.target.endpoint_version == "v2"


async def test_nothing_can_be_done_while_no_version_is_served(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 3)
    hidden = kind.changed("v1", served=False).changed("v2", served=False)
    await admin.apply(f"{CRDS}/{kind.name}", hidden.to_object())
    await admin.create_migration(group, kind)
    await admin.wait_for_condition(group, "Resolved", "False", "ResourceNotFound")

    await admin.apply_definition(kind)

    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 3}
    assert await admin.stored_versions_of(kind) == ["v2"]
