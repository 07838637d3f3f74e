"""Objects that cannot be written: reported with the cause; they do not block the others, but the trim."""

from typing import Any

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import QUARANTINE_SHOWN, RefusedObject, StorageMigration
from tests.cluster.harness import Admin, CustomKind, Operator, condition, eventually, outdated
from tests.cluster.harness.admission import BINDINGS, POLICIES, allow_updates, deny_secret, deny_updates
from tests.cluster.harness.customkind import SPEC

# Rules that compare with the old object are evaluated on every write, even of unchanged objects.
NO_MORE_MYSQL: dict[str, Any] = {
    **SPEC,
    "x-kubernetes-validations": [
        {
            "rule": "self.engine != 'mysql' || oldSelf.engine != 'mysql'",
            "message": "mysql is not supported any more",
            "fieldPath": ".engine",
        }
    ],
}


async def wait_until_refused(admin: Admin, name: str, count: int) -> StorageMigration:
    """The migration when it has finished a pass in which that many objects were refused."""

    def so(migration: StorageMigration) -> bool:
        # Of a pass that has begun anew, the condition is still the last one's.
        found = find_condition(migration.status.conditions, "Succeeded")
        refused = found is not None and (found.status, found.reason) == ("False", "ObjectsRefused")
        return refused and migration.status.progress.quarantined == count

    return await admin.wait_for_migration(name, so, f"refused for {count} objects")


def names(migration: StorageMigration) -> set[str]:
    return {each.name for each in migration.status.quarantine.objects}


async def test_denied_objects_are_named_and_the_rest_is_done(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 30)
    policy = await deny_updates(
        admin, kind, "!(object.metadata.name in ['db-00003', 'db-00017'])", example="db-00003"
    )
    await admin.create_migration(group, kind)

    migration = await wait_until_refused(admin, group, 2)

    assert admin.stored(kind) == {"v1": 2, "v2": 28}
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]
    assert names(migration) == {"db-00003", "db-00017"}
    first = next(each for each in migration.status.quarantine.objects if each.name == "db-00003")
    assert first.message.endswith(
        f"'{policy}' with binding '{policy}' denied request: this object is protected"
    )
    assert first == RefusedObject(
        namespace="default",
        name="db-00003",
        code=422,
        reason="Invalid",
        denied_by=f"ValidatingAdmissionPolicy {policy}",
        field="",
        message=first.message,
    )
    assert migration.status.progress.rewritten == 28
    for type_ in ("Rewritten", "Succeeded"):
        found = condition(migration, type_)
        assert (found.status, found.reason) == ("False", "ObjectsRefused")
        assert found.message.startswith("2 objects refused, all others done. Nothing is trimmed")
        assert "db-00003" in found.message
    assert condition(migration, "Trimmed").status == "Unknown"
    await admin.wait_for_event(group, "Warning", "ObjectsRefused")

    async def counted() -> bool:
        return operator.metric("crdkeeper_migration_quarantined_objects", migration=group) == 2

    await eventually(counted)
    done = await admin.resource_versions(kind)

    await allow_updates(admin, kind, example="db-00003")

    migration = await admin.wait_for_condition(group, "Succeeded", "True", "Migrated")
    assert admin.stored(kind) == {"v2": 30}
    assert await admin.stored_versions_of(kind) == ["v2"]
    after = await admin.resource_versions(kind)
    assert {name for name in after if after[name] != done[name]} == {"db-00003", "db-00017"}
    rounds = migration.status.quarantine.rounds
    assert rounds >= 1
    assert 30 + 2 <= operator.requests(kind.name) <= 30 + 2 * rounds
    assert (migration.status.progress.rewritten, migration.status.progress.quarantined) == (30, 0)
    assert migration.status.quarantine.objects == []
    assert migration.status.restarts == 0


async def test_what_the_new_schema_refuses_is_done_when_its_owner_has_mended_it(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 1, prefix="legacy", engine="mysql")
    await admin.create_objects(kind, 19)
    await admin.opt_in(group)
    stricter = kind.storing("v2").changed("v2", spec=NO_MORE_MYSQL)
    await admin.apply_definition(stricter)
    await admin.create_migration(group, stricter)

    migration = await wait_until_refused(admin, group, 1)

    (refused,) = migration.status.quarantine.objects
    assert (refused.namespace, refused.name, refused.code) == ("default", "legacy-00000", 422)
    assert (refused.reason, refused.field, refused.denied_by) == ("Invalid", "spec.engine", "")
    assert "mysql is not supported any more" in refused.message
    assert admin.stored(kind) == {"v1": 1, "v2": 19}
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]

    await admin.merge(stricter.path("legacy-00000"), {"spec": {"engine": "postgres"}})
    mended = await admin.resource_versions(stricter)

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 20}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert await admin.resource_versions(stricter) == mended
    assert (migration.status.progress.rewritten, migration.status.progress.current) == (19, 1)


async def test_a_refused_object_that_is_deleted_is_no_obstacle(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    await deny_updates(admin, kind, "object.metadata.name != 'db-00002'", example="db-00002")
    await admin.create_migration(group, kind)
    await wait_until_refused(admin, group, 1)

    await admin.delete_objects(kind, ["db-00002"])

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 4}
    assert (migration.status.progress.rewritten, migration.status.progress.gone) == (4, 1)


async def test_a_mended_schema_begins_anew_and_rewrites_only_what_is_left(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 2, prefix="legacy", engine="mysql")
    await admin.create_objects(kind, 10)
    await admin.opt_in(group)
    stricter = kind.storing("v2").changed("v2", spec=NO_MORE_MYSQL)
    await admin.apply_definition(stricter)
    await admin.create_migration(group, stricter)
    await wait_until_refused(admin, group, 2)
    done = await admin.resource_versions(stricter)

    await admin.apply_definition(stricter.changed("v2", spec=SPEC))

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert migration.status.restarts == 1
    assert admin.stored(kind) == {"v2": 12}
    assert await admin.stored_versions_of(kind) == ["v2"]
    after = await admin.resource_versions(stricter)
    assert {name for name in after if after[name] != done[name]} == {"legacy-00000", "legacy-00001"}


async def test_many_refused_objects_are_all_counted_and_all_retried(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 60, prefix="protected")
    await outdated_others(admin, kind)
    kind = kind.storing("v2")
    unless = "!object.metadata.name.startsWith('protected')"
    await deny_updates(admin, kind, unless, example="protected-00000")
    await admin.create_migration(group, kind)

    migration = await wait_until_refused(admin, group, 60)

    assert len(migration.status.quarantine.objects) == QUARANTINE_SHOWN == 50
    assert all(name.startswith("protected-") for name in names(migration))
    assert admin.stored(kind) == {"v1": 60, "v2": 20}
    assert condition(migration, "Succeeded").message.startswith("60 objects refused")
    done = await admin.resource_versions(kind)

    await allow_updates(admin, kind, example="protected-00000")

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 80}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert operator.requests(kind.name) <= 80 + 60 * migration.status.quarantine.rounds
    after = await admin.resource_versions(kind)
    assert {n for n in after if after[n] != done[n]} == {n for n in after if n.startswith("protected")}
    assert (migration.status.progress.rewritten, migration.status.progress.total) == (80, 80)


async def outdated_others(admin: Admin, kind: CustomKind) -> None:
    await admin.create_objects(kind, 20)
    await admin.opt_in(kind.group)
    await admin.apply_definition(kind.storing("v2"))


async def test_a_new_process_finds_refused_objects_that_status_does_not_name(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 60, prefix="protected")
    await outdated_others(admin, kind)
    kind = kind.storing("v2")
    unless = "!object.metadata.name.startsWith('protected')"
    await deny_updates(admin, kind, unless, example="protected-00000")
    await admin.create_migration(group, kind)
    await wait_until_refused(admin, group, 60)
    done = await admin.resource_versions(kind)

    assert operator.stop() == 0
    operator.start()
    await admin.wait_for_migration(group, lambda found: operator.requests(kind.name) >= 60, "tried again")
    await wait_until_refused(admin, group, 60)
    await allow_updates(admin, kind, example="protected-00000")

    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 80}
    after = await admin.resource_versions(kind)
    assert {n for n in after if after[n] != done[n]} == {n for n in after if n.startswith("protected")}


async def test_retries_can_be_bounded_and_extended(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    await deny_updates(admin, kind, "object.metadata.name != 'db-00002'", example="db-00002")
    retry = {"limit": 1, "backoffSeconds": 1, "maxBackoffSeconds": 1}
    await admin.create_migration(group, kind, retry=retry)

    migration = await admin.wait_for_condition(group, "Succeeded", "False", "RetriesExhausted")

    assert migration.status.quarantine.rounds == 1
    assert migration.status.completion_time is not None
    assert names(migration) == {"db-00002"}
    assert operator.requests(kind.name) == 5 + 1
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]

    await allow_updates(admin, kind, example="db-00002")
    await admin.patch_migration(group, retry={"limit": 2})

    await admin.wait_for_condition(group, "Succeeded", "True")
    assert operator.requests(kind.name) == 5 + 2
    assert admin.stored(kind) == {"v2": 5}


async def test_of_a_secret_that_is_refused_nothing_is_shown(
    admin: Admin, operator: Operator, group: str
) -> None:
    name = f"secret-{group}"
    secrets = "/api/v1/namespaces/default/secrets"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    await admin.create(secrets, {**secret, "stringData": {"password": "hunter2"}})
    await deny_secret(admin, name)
    await admin.opt_in("", "secrets")
    begin = operator.log_size()
    await admin.create_migration(group, ("", "secrets"))

    migration = await wait_until_refused(admin, group, 1)

    (refused,) = migration.status.quarantine.objects
    assert (refused.name, refused.denied_by) == (name, f"ValidatingAdmissionPolicy {name}")
    assert refused.message.endswith("denied request: (not shown)")
    shown = [migration.model_dump_json(), operator.log_since(begin), str(await admin.events(group))]
    assert not [each for each in shown if "hunter2" in each or "aHVudGVyMg" in each]
    await admin.delete(f"{POLICIES}/{name}")
    await admin.delete(f"{BINDINGS}/{name}")
    await admin.delete(f"{secrets}/{name}")
