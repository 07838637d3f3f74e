"""DefinitionPolicies: selected CRDs are migrated automatically, and the policy reports their state."""

from collections.abc import Callable
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import POLICY_LABEL, find_condition
from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.harness import Admin, CustomKind, Operator, condition, eventually, outdated, time_passes
from tests.cluster.harness.admin import CRDS, POLICIES, QUICK
from tests.cluster.harness.admission import deny_updates
from tests.cluster.migration.created import migrations_of, the_migration_of


async def create_policy(
    admin: Admin, name: str, group: str, *, mode: str = "Automatic", **spec: Any
) -> DefinitionPolicy:
    """A policy for one API group; keywords are fields of spec."""
    migration = {"mode": mode, "template": {**QUICK, "managedFields": "Retarget"}}
    body = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": name},
        "spec": {"groups": [group], "storageMigration": migration, **spec},
    }
    return DefinitionPolicy.model_validate(await admin.create(POLICIES, body))


async def policy_where(
    admin: Admin, name: str, holds: Callable[[DefinitionPolicy], bool]
) -> DefinitionPolicy:
    """A policy as soon as that is true for it."""
    seen: list[DefinitionPolicy] = []

    async def look() -> DefinitionPolicy | None:
        seen[:] = [DefinitionPolicy.model_validate(await admin.get(f"{POLICIES}/{name}"))]
        return seen[0] if holds(seen[0]) else None

    return await eventually(look, otherwise=lambda: f"the policy stands at {seen[0].status.to_object()}")


def stands(policy: DefinitionPolicy) -> tuple[str, str, int, int, int]:
    """Status and reason of Ready, and the counts: selected, outdated, failing."""
    ready, status = find_condition(policy.status.conditions, "Ready"), policy.status
    shown = (ready.status, ready.reason) if ready is not None else ("", "")
    return (*shown, status.selected, status.outdated, status.failing)


def standing(*expected: object) -> Callable[[DefinitionPolicy], bool]:
    return lambda policy: stands(policy) == expected


async def test_a_flip_is_migrated_and_all_goes_with_the_crd(
    admin: Admin, operator: Operator, group: str
) -> None:
    await create_policy(admin, group, group)
    await policy_where(admin, group, standing("True", "Current", 0, 0, 0))
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 10)
    await policy_where(admin, group, standing("True", "Current", 1, 0, 0))
    assert await migrations_of(admin, kind) == []

    await admin.opt_in(group)
    await admin.apply_definition(kind.storing("v2"))

    created = await the_migration_of(admin, kind)
    await admin.wait_for_condition(created.metadata.name, "Succeeded", "True", "Migrated")
    assert admin.stored(kind) == {"v2": 10}
    assert await admin.stored_versions_of(kind) == ["v2"]
    policy = await policy_where(admin, group, standing("True", "Current", 1, 0, 0))
    assert policy.status.observed_generation == 1
    assert created.metadata.labels == {POLICY_LABEL: group}
    assert (created.spec.managed_fields, created.spec.settle_seconds) == ("Retarget", 1)
    (owner,) = created.metadata.owner_references
    assert (owner.kind, owner.name) == ("CustomResourceDefinition", kind.name)
    assert owner.uid == (await admin.definition(kind))["metadata"]["uid"]
    await admin.wait_for_event(group, "Normal", "MigrationCreated", "DefinitionPolicy")

    await admin.delete(f"{CRDS}/{kind.name}")

    async def gone() -> bool:
        return not await migrations_of(admin, kind)

    # The garbage collector discovers new kinds, such as ours, every thirty seconds.
    await eventually(gone, seconds=180)
    await policy_where(admin, group, standing("True", "Current", 0, 0, 0))


async def test_each_flip_gets_a_migration_of_its_own(admin: Admin, operator: Operator, group: str) -> None:
    await create_policy(admin, group, group)
    kind = await outdated(admin, CustomKind(group), 3)
    first = await the_migration_of(admin, kind)
    await admin.wait_for_condition(first.metadata.name, "Succeeded", "True")

    await admin.apply_definition(kind.storing("v1"))

    async def two() -> list[StorageMigration] | None:
        found = await migrations_of(admin, kind)
        return found if len(found) == 2 else None

    (second,) = (each for each in await eventually(two) if each.metadata.name != first.metadata.name)
    await admin.wait_for_condition(second.metadata.name, "Succeeded", "True")
    assert admin.stored(kind) == {"v1": 3}
    assert await admin.stored_versions_of(kind) == ["v1"]


async def test_a_migration_at_work_follows_the_crd_instead_of_a_second_one(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 40)
    template = {**QUICK, "limits": {"maxObjectsPerSecond": 1}}
    await create_policy(admin, group, group, storageMigration={"mode": "Automatic", "template": template})
    created = await the_migration_of(admin, kind)
    await admin.wait_until_stored(kind, "v2", at_least=2)

    await admin.apply_definition(kind.storing("v1"))

    await admin.wait_for_migration(
        created.metadata.name, lambda found: found.status.restarts == 1, "restarted"
    )
    await admin.patch_migration(created.metadata.name, limits={"maxObjectsPerSecond": None})
    await admin.wait_for_condition(created.metadata.name, "Succeeded", "True")
    assert [each.metadata.name for each in await migrations_of(admin, kind)] == [created.metadata.name]
    assert admin.stored(kind) == {"v1": 40}
    assert await admin.stored_versions_of(kind) == ["v1"]


async def test_plan_reports_and_leaves_all_as_it_is(admin: Admin, operator: Operator, group: str) -> None:
    await create_policy(admin, group, group, mode="Plan")
    kind = await outdated(admin, CustomKind(group), 5)

    created = await the_migration_of(admin, kind)

    assert created.spec.mode == "Plan"
    assert created.metadata.name.startswith(f"{kind.name}-v2-g2-plan-")
    migration = await admin.wait_for_condition(created.metadata.name, "Succeeded", "True", "PlanClean")
    assert condition(migration, "Trimmed").reason == "PlanOnly"
    await policy_where(admin, group, standing("True", "Outdated", 1, 1, 0))
    assert admin.stored(kind) == {"v1": 5}
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]


async def test_disabled_counts_and_does_nothing_until_it_is_enabled(
    admin: Admin, operator: Operator, group: str
) -> None:
    await create_policy(admin, group, group, mode="Disabled")
    kind = await outdated(admin, CustomKind(group), 5)
    await policy_where(admin, group, standing("True", "Outdated", 1, 1, 0))
    await time_passes(admin)
    assert await migrations_of(admin, kind) == []
    assert admin.stored(kind) == {"v1": 5}

    await admin.merge(f"{POLICIES}/{group}", {"spec": {"storageMigration": {"mode": "Automatic"}}})

    created = await the_migration_of(admin, kind)
    await admin.wait_for_condition(created.metadata.name, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 5}
    await policy_where(admin, group, standing("True", "Current", 1, 0, 0))


async def test_the_oldest_of_several_policies_governs(admin: Admin, operator: Operator, group: str) -> None:
    old, new = f"z-{group}", f"a-{group}"
    older = await create_policy(admin, old, group, mode="Disabled")

    async def a_later_second() -> bool:
        # Creation times are whole seconds; within the same one, the name would decide.
        probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": group}}
        made = await admin.client.request("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", probe)
        created = older.to_object()["metadata"]["creationTimestamp"]
        return bool(made["metadata"]["creationTimestamp"] > created)

    await eventually(a_later_second)
    await create_policy(admin, new, group)
    kind = await outdated(admin, CustomKind(group), 5)
    await policy_where(admin, old, standing("True", "Outdated", 1, 1, 0))
    await policy_where(admin, new, standing("True", "Current", 0, 0, 0))
    await time_passes(admin)
    assert await migrations_of(admin, kind) == []

    await admin.delete(f"{POLICIES}/{old}")

    created = await the_migration_of(admin, kind)
    assert created.metadata.labels == {POLICY_LABEL: new}
    await admin.wait_for_condition(created.metadata.name, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 5}
    await policy_where(admin, new, standing("True", "Current", 1, 0, 0))


async def test_labels_select_a_crd_also_later(admin: Admin, operator: Operator, group: str) -> None:
    await create_policy(admin, group, group, selector={"matchLabels": {"migrate": "yes"}})
    kind = await outdated(admin, CustomKind(group), 5)
    await policy_where(admin, group, standing("True", "Current", 0, 0, 0))
    await time_passes(admin)
    assert await migrations_of(admin, kind) == []

    await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"labels": {"migrate": "yes"}}})

    created = await the_migration_of(admin, kind)
    await admin.wait_for_condition(created.metadata.name, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 5}


async def test_a_migration_without_success_makes_the_policy_not_ready(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    await deny_updates(admin, kind, "object.metadata.name != 'db-00002'", example="db-00002")

    await create_policy(admin, group, group)

    policy = await policy_where(admin, group, standing("False", "MigrationFailing", 1, 1, 1))
    ready = find_condition(policy.status.conditions, "Ready")
    assert ready is not None
    assert kind.name in ready.message

    async def reported() -> bool:
        events = await admin.events(group, "DefinitionPolicy")
        return ("Warning", "MigrationFailing") in {(type_, reason) for type_, reason, _ in events}

    await eventually(reported)
    assert admin.stored(kind) == {"v1": 1, "v2": 4}

    await admin.delete_objects(kind, ["db-00002"])

    await policy_where(admin, group, standing("True", "Current", 1, 0, 0))
    assert admin.stored(kind) == {"v2": 4}
