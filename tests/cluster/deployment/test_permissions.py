"""Missing permissions: a condition names the verb and the resource, and the work continues once granted."""

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.access import Right
from tests.cluster.harness import Admin, CustomKind, Operator, condition, eventually, outdated
from tests.cluster.harness.admin import CLUSTER_ROLES

MISSING = {
    (): ("get", "list", "patch"),
    ("get", "list"): ("patch",),
    ("get", "patch"): ("list",),
    ("list", "patch"): ("get",),
}
"""What is missing if only these are granted."""


def forbidden(migration: StorageMigration) -> str:
    """The condition's message about missing permissions, which also explains why there is no success."""
    found, succeeded = condition(migration, "Permitted"), condition(migration, "Succeeded")
    assert (succeeded.status, succeeded.reason, succeeded.message) == ("False", "Forbidden", found.message)
    return found.message


async def until_announced(admin: Admin, name: str) -> None:
    """Returns when an Event says that rights are missing, which is sent after the condition."""

    async def announced() -> bool:
        return ("Warning", "Forbidden") in [each[:2] for each in await admin.events(name)]

    await eventually(announced, otherwise=lambda: f"there is no Event about {name}")


async def test_missing_rights_are_named_and_waited_for(admin: Admin, operator: Operator, group: str) -> None:
    # In parallel, because each continues only with its next check, every ten seconds.
    kinds = {granted: CustomKind(f"{'-'.join(granted) or 'none'}.{group}") for granted in MISSING}
    for granted, kind in kinds.items():
        await outdated(admin, kind, 5, opt_in=False)
        if granted:
            await admin.opt_in(kind.group, verbs=granted)
        await admin.create_migration(kind.group, kind)

    for granted, kind in kinds.items():
        migration = await admin.wait_for_condition(kind.group, "Permitted", "False", "Forbidden")
        missing = "; ".join(f"{verb} {kind.name}" for verb in MISSING[granted])
        assert forbidden(migration).startswith(f"Not permitted: {missing}. Grant these with")
        assert admin.stored(kind) == {"v1": 5}
        await until_announced(admin, kind.group)

    for kind in kinds.values():
        await admin.opt_in(kind.group)
    for kind in kinds.values():
        migration = await admin.wait_for_condition(kind.group, "Succeeded", "True")
        assert condition(migration, "Permitted").status == "True"
        assert admin.stored(kind) == {"v2": 5}
        assert await admin.stored_versions_of(kind) == ["v2"]
        assert migration.status.restarts == 0


async def test_rights_can_be_taken_away_and_given_back_in_mid_run(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 200)
    # The rights are gone some time after their role: the run lasts longer than that takes.
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 3})
    await admin.wait_until_stored(kind, "v2", at_least=5)

    await admin.opt_out(group)

    migration = await admin.wait_for_condition(group, "Permitted", "False", "Forbidden")
    assert f"patch {kind.name}" in forbidden(migration)
    before = admin.stored(kind)
    assert 5 <= before["v2"] < 200
    assert migration.status.quarantine.objects == []
    await admin.opt_in(group)
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": None})

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 200}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert migration.status.restarts == 0
    assert condition(migration, "Permitted").status == "True"


async def test_the_right_to_trim_is_asked_for_before_the_work(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    trim = [Right("patch", "apiextensions.k8s.io", "customresourcedefinitions", subresource="status")]
    path = f"{CLUSTER_ROLES}/crdkeeper-operator"
    rules = (await admin.get(path))["rules"]
    without = [each for each in rules if "customresourcedefinitions/status" not in each["resources"]]
    assert len(without) == len(rules) - 1
    await admin.merge(path, {"rules": without})
    try:
        await admin.until_permitted(trim, allowed=False)
        await admin.create_migration(group, kind)
        migration = await admin.wait_for_condition(group, "Permitted", "False", "Forbidden")
        resource = "customresourcedefinitions.apiextensions.k8s.io"
        assert f"Not permitted: patch {resource}/{kind.name}/status." in forbidden(migration)
        assert admin.stored(kind) == {"v1": 5}
    finally:
        await admin.merge(path, {"rules": rules})
    await admin.until_permitted(trim)

    # Any change of the spec triggers a check.
    await admin.patch_migration(group, ttlSecondsAfterFinished=3600)
    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 5}
