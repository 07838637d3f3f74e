"""The control plane's own migrator on the same resource: ours waits, and continues afterwards."""

from contextlib import closing
from pathlib import Path
from typing import Any

from tests.cluster.cli import jobsample
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import Admin, CustomKind, Operator, condition, eventually, outdated
from tests.cluster.harness.admin import CRDS, MIGRATIONS
from tests.cluster.harness.admission import add_webhook, closed_port, remove_webhook
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT

OPERATOR = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
UNSETTLED = ("--settle-seconds=0", "--ignore-api-server-leases")
OTHERS = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
OLDER = "/apis/migration.k8s.io/v1alpha1/storageversionmigrations"
OLDER_NAME = "storageversionmigrations.migration.k8s.io"
KIND = "StorageVersionMigration"


async def other_migration(admin: Admin, kind: CustomKind, name: str) -> None:
    """A StorageVersionMigration that has started; it retries for ever what fails at a broken webhook."""
    body = {
        "apiVersion": "storagemigration.k8s.io/v1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": {"group": kind.group, "resource": kind.plural}},
    }
    await admin.create(OTHERS, body)

    async def begun() -> bool:
        found = (await admin.get(f"{OTHERS}/{name}")).get("status", {}).get("conditions", ())
        return any((each["type"], each["status"]) == ("Running", "True") for each in found)

    await eventually(begun, otherwise=lambda: f"{name} has not begun")


async def until_migrating(admin: Admin, kind: CustomKind, status: str) -> None:
    """Returns once the CRD's condition StorageMigrating is that; it and the other's own are written apart."""
    seen: list[str] = []

    async def look() -> bool:
        conditions = (await admin.definition(kind))["status"]["conditions"]
        seen[:] = [each["status"] for each in conditions if each["type"] == "StorageMigrating"]
        return seen == [status]

    await eventually(look, otherwise=lambda: f"StorageMigrating is {seen}, not {status}")


async def mark(admin: Admin, kind: CustomKind, status: str) -> None:
    """Sets that condition directly."""
    by_hand = {"type": "StorageMigrating", "status": status, "reason": "ByATest", "message": "By a test."}
    conditions = (await admin.definition(kind))["status"]["conditions"]
    kept = [each for each in conditions if each["type"] != "StorageMigrating"]
    await admin.merge(f"{CRDS}/{kind.name}/status", {"status": {"conditions": [*kept, by_hand]}})


async def test_ours_waits_until_the_other_has_ended(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 30)
    name = f"other-{group}"
    with closed_port() as port:
        await add_webhook(admin, kind, port, example="db-00000", spared=OPERATOR)
        await other_migration(admin, kind, name)
        await until_migrating(admin, kind, "True")

        await admin.create_migration(group, kind)
        held = await admin.wait_for_condition(group, "Settled", "False", "AnotherMigrator")

        message = condition(held, "Settled").message
        assert f"StorageVersionMigration {name} " in message
        for type_, status in (("Succeeded", "Unknown"), ("Ready", "Unknown"), ("Reconciling", "True")):
            found = condition(held, type_)
            assert (found.status, found.reason) == (status, "AnotherMigrator")
        assert admin.stored(kind) == {"v1": 30}
        await remove_webhook(admin, kind)

    done = await admin.wait_for_condition(group, "Succeeded", "True", seconds=180)
    await until_migrating(admin, kind, "False")
    assert admin.stored(kind) == {"v2": 30}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert done.status.restarts == 0
    announced = [reason for _, reason, _ in await admin.events(group)]
    assert announced.count("AnotherMigrator") == 1


async def test_a_pass_stops_when_another_begins(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 600)
    name = f"other-{group}"
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 2})
    await admin.wait_until_stored(kind, "v2", at_least=5)
    with closed_port() as port:
        await add_webhook(admin, kind, port, example="db-00000", spared=OPERATOR)
        await other_migration(admin, kind, name)

        held = await admin.wait_for_condition(group, "Rewritten", "False", "AnotherMigrator")

        assert f"StorageVersionMigration {name} " in condition(held, "Rewritten").message
        assert (held.status.progress.concurrency, held.status.progress.remaining) == (0, "")
        assert admin.stored(kind)["v1"] > 0
        await admin.delete(f"{OTHERS}/{name}")
        # Deleted while it runs, it leaves the condition on the CRD permanently.
        await until_migrating(admin, kind, "True")
        await mark(admin, kind, "False")
        await admin.patch_migration(group, limits={"maxObjectsPerSecond": None})

        done = await admin.wait_for_condition(group, "Succeeded", "True")
        assert admin.stored(kind) == {"v2": 600}
        assert done.status.restarts == 0


async def test_the_crds_condition_alone_holds_ours(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 3)
    await mark(admin, kind, "True")
    await admin.create_migration(group, kind)
    held = await admin.wait_for_condition(group, "Settled", "False", "AnotherMigrator")
    assert "The CRD's condition StorageMigrating is True" in condition(held, "Settled").message
    assert admin.stored(kind) == {"v1": 3}
    await mark(admin, kind, "False")
    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 3}


async def test_ours_waits_for_the_migrator_outside_the_control_plane(
    admin: Admin, operator: Operator, group: str
) -> None:
    """Of kube-storage-version-migrator only its kind is installed; the test says what its migrator would."""
    kind = await outdated(admin, CustomKind(group), 3)
    await admin.create(CRDS, older_kind())
    admin.cluster.kubectl.wait_established(f"crd/{OLDER_NAME}")

    async def served() -> bool:
        return (await admin.client.send("GET", OLDER)).code == 200

    await eventually(served, otherwise=lambda: f"{OLDER_NAME} is not served")
    resource = {"group": kind.group, "version": "v1", "resource": kind.plural}
    name = f"older-{group}"
    body = {"metadata": {"name": name}, "spec": {"resource": resource}}
    await admin.create(OLDER, {"apiVersion": "migration.k8s.io/v1alpha1", "kind": KIND, **body})

    await admin.create_migration(group, kind)
    held = await admin.wait_for_condition(group, "Settled", "False", "AnotherMigrator")
    assert f"StorageVersionMigration {name} (migration.k8s.io) " in condition(held, "Settled").message
    assert admin.stored(kind) == {"v1": 3}

    done = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    await admin.merge(f"{OLDER}/{name}/status", {"status": done})
    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 3}


def older_kind() -> dict[str, Any]:
    """The kind of kube-storage-version-migrator, without its schema."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"plural": "storageversionmigrations", "kind": KIND, "singular": KIND.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": OLDER_NAME,
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": "migration.k8s.io",
            "scope": "Cluster",
            "names": names,
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def test_a_command_says_it_and_goes_on(admin: Admin, group: str, tmp_path: Path) -> None:
    kind = await outdated(admin, CustomKind(group), 3, opt_in=False)
    admin.cleans_up(f"{MIGRATIONS}/{kind.name}-cli")
    await mark(admin, kind, "True")
    with closing(CommandLine(await jobsample.account(admin, kind), tmp_path)) as shell:
        command = shell.start(*jobsample.arguments(kind), *UNSETTLED)
        await command.until(lambda: "Settled=False AnotherMigrator: The CRD's condition" in command.stderr)
        await mark(admin, kind, "False")
        done = await command.done()
    assert done.exit_code == 0, done.stderr
    assert admin.stored(kind) == {"v2": 3}


async def test_whoever_may_not_see_others_is_told(admin: Admin, group: str, tmp_path: Path) -> None:
    kind = await outdated(admin, CustomKind(group), 3, opt_in=False)
    name = f"{kind.name}-cli"
    admin.cleans_up(f"{MIGRATIONS}/{name}")
    account = await jobsample.account(admin, kind, blind=True)
    with closing(CommandLine(account, tmp_path)) as shell:
        done = await shell.run(*jobsample.arguments(kind), *UNSETTLED)
    assert done.exit_code == 0, done.stderr
    message = condition(await admin.migration(name), "Permitted").message
    assert "list storageversionmigrations.storagemigration.k8s.io is not permitted" in message
