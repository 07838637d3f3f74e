"""`--watch-labels`: a CRD with a label alone is migrated, and what goes against that.

CRDKEEPER_LABELLED_OBJECTS sets how many objects a CRD has whose operator is killed again and again,
CRDKEEPER_KILLS how often.
"""

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.policy.labels import MIGRATION_LABEL
from tests.cluster.harness import Admin, CustomKind, Operator, condition, eventually, outdated, time_passes
from tests.cluster.harness.admin import CRDS, POLICIES
from tests.cluster.harness.installation import MANIFESTS
from tests.cluster.migration.created import migrations_of, the_migration_of
from tests.cluster.reports.reports import condition_of, report_where, report_with
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed

OBJECTS = int(os.environ.get("CRDKEEPER_LABELLED_OBJECTS", "60"))
KILLS = int(os.environ.get("CRDKEEPER_KILLS", "3"))
HURRIED: dict[str, Any] = {
    "settleSeconds": 0,
    "apiServerLeases": "Ignore",
    "retry": {"backoffSeconds": 1, "maxBackoffSeconds": 1},
}
"""A label leaves all to the defaults; with one API server and no other writer, there is nothing to settle."""


@pytest.fixture(scope="module")
def watching(installed: Cluster) -> Iterator[Operator]:
    operator = Operator(installed, command=("run", "--watch-labels"))
    yield operator
    operator.close()


@pytest.fixture
def labelling(watching: Operator) -> Operator:
    """The operator with --watch-labels, running and ready."""
    if not watching.running:
        watching.start()
    return watching


async def label(admin: Admin, kind: CustomKind, value: str | None) -> None:
    await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"labels": {MIGRATION_LABEL: value}}})


async def hurried_migration_of(admin: Admin, kind: CustomKind) -> StorageMigration:
    """The one migration of a CRD, as soon as it exists; it does not wait for API servers to settle."""
    found = await the_migration_of(admin, kind)
    await admin.patch_migration(found.metadata.name, **HURRIED)
    return found


async def test_a_label_alone_is_enough(admin: Admin, labelling: Operator, group: str) -> None:
    kind = CustomKind(group, labels={MIGRATION_LABEL: "automatic"})
    flipped = await outdated(admin, kind, 10)
    made = await hurried_migration_of(admin, flipped)
    await admin.wait_for_condition(made.metadata.name, "Succeeded", "True", "Migrated")
    assert admin.stored(kind) == {"v2": 10}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert made.metadata.labels == {MIGRATION_LABEL: "automatic"}
    (owner,) = made.metadata.owner_references
    assert (owner.kind, owner.name) == ("CustomResourceDefinition", kind.name)

    async def told() -> bool:
        events = await admin.events(kind.name, "CustomResourceDefinition")
        return ("Normal", "MigrationCreated") in [each[:2] for each in events]

    await eventually(told)
    assert [each.metadata.name for each in await migrations_of(admin, kind)] == [made.metadata.name]


async def test_without_the_setting_a_label_is_nothing(
    admin: Admin, watching: Operator, start_operator: Callable[..., Operator], installed: Cluster, group: str
) -> None:
    watching.stop()
    operator = start_operator(installed)
    known = CustomKind(group, labels={MIGRATION_LABEL: "automatic"})
    strange = CustomKind(f"x-{group}", labels={MIGRATION_LABEL: "yes"})
    await outdated(admin, known, 3)
    await admin.apply_definition(strange)
    await time_passes(admin)
    assert await migrations_of(admin, known) == []
    assert admin.stored(known) == {"v1": 3}
    await report_with(admin, strange.name, StorageCurrent="True/Current")
    operator.close()


async def test_a_value_that_means_nothing_is_told(admin: Admin, labelling: Operator, group: str) -> None:
    kind = CustomKind(group, labels={MIGRATION_LABEL: "Automatic"})
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 3)
    await admin.opt_in(group)
    report = await report_with(
        admin, kind.name, StorageCurrent="True/UnknownLabel", Ready="False/UnknownLabel"
    )
    said = condition_of(report, "StorageCurrent").message
    assert said.startswith(
        f'The label {MIGRATION_LABEL} has the value "Automatic", which is none of automatic'
    )

    async def told() -> bool:
        events = await admin.events(kind.name, "DefinitionReport")
        return ("Warning", "UnknownLabel") in [each[:2] for each in events]

    await eventually(told)
    await admin.merge(
        f"{CRDS}/{kind.name}", {"spec": {"versions": kind.storing("v2").to_object()["spec"]["versions"]}}
    )
    report = await report_with(admin, kind.name, StorageCurrent="False/OldVersionsStored")
    assert said.partition(" Set ")[0] in condition_of(report, "StorageCurrent").message
    assert await migrations_of(admin, kind) == []

    await label(admin, kind, "automatic")
    made = await hurried_migration_of(admin, kind)
    await admin.wait_for_condition(made.metadata.name, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 3}
    await report_with(admin, kind.name, StorageCurrent="True/Current")


async def test_a_plan_by_label_writes_nothing(admin: Admin, labelling: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group, labels={MIGRATION_LABEL: "plan"}), 3)
    made = await hurried_migration_of(admin, kind)
    await admin.wait_for_condition(made.metadata.name, "Succeeded", "True", "PlanClean")
    assert made.spec.mode == "Plan"
    assert admin.stored(kind) == {"v1": 3}


async def test_a_policy_that_selects_the_crd_wins(admin: Admin, labelling: Operator, group: str) -> None:
    policy = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": group},
        "spec": {"groups": [group], "storageMigration": {"mode": "Disabled"}},
    }
    await admin.create(POLICIES, policy)
    kind = await outdated(admin, CustomKind(group, labels={MIGRATION_LABEL: "automatic"}), 3)
    said = f"does not count, because DefinitionPolicy {group} selects the CRD, with the mode Disabled."
    await report_where(
        admin, kind.name, lambda report: said in condition_of(report, "StorageCurrent").message, said
    )
    await time_passes(admin)
    assert await migrations_of(admin, kind) == []
    await admin.delete(f"{POLICIES}/{group}")
    made = await hurried_migration_of(admin, kind)
    await admin.wait_for_condition(made.metadata.name, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 3}


async def test_another_manager_takes_the_label_off_in_mid_run(
    admin: Admin, labelling: Operator, group: str
) -> None:
    kind = await outdated(admin, CustomKind(group, labels={MIGRATION_LABEL: "automatic"}), 40, opt_in=False)
    made = await hurried_migration_of(admin, kind)
    name = made.metadata.name
    # Without rights it cannot get far.
    stuck = await admin.wait_for_condition(name, "Succeeded", "False")
    assert "aggregate-to-rewriter=true" in condition(stuck, "Succeeded").message
    await admin.patch_migration(name, limits={"maxObjectsPerSecond": 10})
    await admin.opt_in(group)
    await admin.wait_until_stored(kind, "v2", at_least=5)
    await label(admin, kind, None)
    await admin.patch_migration(name, limits={"maxObjectsPerSecond": None})
    # What has begun goes on: half of it would be no better.
    await admin.wait_for_condition(name, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 40}
    assert await admin.stored_versions_of(kind) == ["v2"]
    # The next change is nobody's wish any more.
    await admin.merge(
        f"{CRDS}/{kind.name}", {"spec": {"versions": kind.storing("v1").to_object()["spec"]["versions"]}}
    )
    await time_passes(admin)
    assert [each.metadata.name for each in await migrations_of(admin, kind)] == [name]
    assert admin.stored(kind) == {"v2": 40}


@pytest.mark.timeout(300 + (OBJECTS // 5 + 20) * KILLS)
async def test_kills_at_random_instants(admin: Admin, labelling: Operator, group: str) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_KILLS={KILLS} CRDKEEPER_LABELLED_OBJECTS={OBJECTS}")
    dice = random.Random(seed)
    kind = CustomKind(group, labels={MIGRATION_LABEL: "automatic"})
    await admin.apply_definition(kind)
    await admin.create_objects(kind, OBJECTS)
    await admin.opt_in(group)
    kills, flips = 0, 0
    while kills < KILLS:
        kind = kind.storing("v2" if kind.storage_version == "v1" else "v1")
        await admin.apply_definition(kind)
        flips += 1
        hurried = False
        while kills < KILLS:
            if not labelling.running:
                labelling.start(wait=dice.random() > 0.3)
            instant = dice.uniform(0.0, 2.5)
            with_it = await _within(admin, kind, flips, instant, hurried=hurried)
            hurried = hurried or with_it is not None
            if with_it:
                break
            labelling.kill()
            kills += 1
        if not labelling.running:
            labelling.start()

        async def done(kind: CustomKind = kind, flips: int = flips) -> bool:
            return bool(await _within(admin, kind, flips, 0.0, hurried=False))

        await eventually(done, seconds=120 + OBJECTS / 20)
        assert admin.stored(kind) == {kind.storage_version: OBJECTS}
        assert await admin.stored_versions_of(kind) == [kind.storage_version]
        assert len(await migrations_of(admin, kind)) == flips, "one migration for each change"
    assert "Traceback" not in labelling.log_since()


async def _within(
    admin: Admin, kind: CustomKind, flips: int, seconds: float, *, hurried: bool
) -> bool | None:
    """Whether the migration of that change is over within some seconds; None if there is none yet."""
    made: list[StorageMigration] = []

    async def over() -> bool:
        nonlocal hurried
        made[:] = await migrations_of(admin, kind)
        if len(made) == flips and not hurried:
            for each in made:
                await admin.patch_migration(each.metadata.name, **HURRIED)
            hurried = True
        return len(made) == flips and all(each.status.completion_time is not None for each in made)

    try:
        return await eventually(over, seconds=seconds)
    except AssertionError:
        return False if len(made) == flips else None


def test_the_component_adds_the_setting(installed: Cluster, tmp_path: Any) -> None:
    relative = os.path.relpath(MANIFESTS, tmp_path)
    own = f"resources: [{relative}]\ncomponents: [{relative}/watch-labels]\n"
    (tmp_path / "kustomization.yaml").write_text(own, encoding="utf-8")
    made = installed.kubectl("kustomize", str(tmp_path))
    assert made.count("- --watch-labels") == 1
    plain = installed.kubectl("kustomize", str(MANIFESTS))
    assert made.replace("        - --watch-labels\n", "") == plain
