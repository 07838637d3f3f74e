"""Mode Plan: reports what would be refused before anything is written."""

from tests.cluster.harness import Admin, CustomKind, Operator, condition, outdated
from tests.cluster.harness.admission import allow_updates, deny_updates
from tests.cluster.harness.customkind import SPEC


def raw(admin: Admin, kind: CustomKind) -> dict[str, bytes | None]:
    """The bytes in etcd of a CRD and of all its objects."""
    keys = [*admin.etcd.keys(f"/registry/{kind.group}/{kind.plural}/"), kind.definition_key]
    return {key: admin.etcd.raw(key) for key in keys}


async def test_a_plan_names_what_would_be_refused_and_writes_nothing(
    admin: Admin, operator: Operator, group: str
) -> None:
    immovable = {
        **SPEC,
        "x-kubernetes-validations": [
            {"rule": "self.engine == oldSelf.engine && self.engine != 'mysql'", "message": "no mysql"}
        ],
    }
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 1, prefix="legacy", engine="mysql")
    await admin.create_objects(kind, 20)
    await admin.opt_in(group)
    flipped = kind.storing("v2").changed("v2", spec=immovable)
    await admin.apply_definition(flipped)
    await deny_updates(admin, flipped, "object.metadata.name != 'db-00007'", example="db-00007")
    before = raw(admin, flipped)

    await admin.create_migration(group, flipped, mode="Plan")
    migration = await admin.wait_for_condition(group, "Succeeded", "False", "WouldBeRefused")

    assert raw(admin, flipped) == before
    assert {each.name for each in migration.status.quarantine.objects} == {"db-00007", "legacy-00000"}
    assert condition(migration, "Succeeded").message.startswith("2 of 21 objects would be refused")
    assert condition(migration, "Trimmed").reason == "PlanOnly"
    assert migration.status.completion_time is not None
    assert operator.requests(kind.name) == 21


async def test_a_clean_plan_succeeds_and_writes_nothing(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group, namespaced=False), 10)
    before = raw(admin, kind)

    migration = await admin.migrate(group, kind, mode="Plan", managedFields="Retarget")

    assert raw(admin, kind) == before
    assert condition(migration, "Succeeded").reason == "PlanClean"
    assert condition(migration, "Succeeded").message == (
        "10 objects would be accepted, none refused. Nothing was written."
    )


async def test_a_plan_can_be_made_before_the_storage_version_changes(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 5)
    await admin.opt_in(group)
    await deny_updates(admin, kind, "object.metadata.name != 'db-00002'", example="db-00002")
    before = raw(admin, kind)
    await admin.create_migration(f"{group}-1", kind, mode="Plan")
    migration = await admin.wait_for_condition(f"{group}-1", "Succeeded", "False", "WouldBeRefused")
    assert [each.name for each in migration.status.quarantine.objects] == ["db-00002"]

    await allow_updates(admin, kind, example="db-00002")
    migration = await admin.migrate(f"{group}-2", kind, mode="Plan")

    assert condition(migration, "Succeeded").reason == "PlanClean"
    assert raw(admin, kind) == before
