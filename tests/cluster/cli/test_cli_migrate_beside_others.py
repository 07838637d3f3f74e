"""`crdkeeper migrate` while others work on the same migration, or change and delete things."""

import re
import signal

from tests.cluster.cli import jobsample
from tests.cluster.cli.migrations import FAST, QUICK, SLOW, Shells, begun_slowly, migrations, until_under_way
from tests.cluster.harness import Admin, CustomKind, Operator, outdated
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.admission import deny_updates


async def test_a_migration_that_the_operator_runs_is_followed(
    admin: Admin, operator: Operator, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 300)
    job = shells(await jobsample.account(admin, kind))
    await admin.create_migration(kind.group, kind, limits={"maxObjectsPerSecond": SLOW})
    await admin.wait_until_stored(kind, "v2", 1)
    follower, gives_up = job.start("migrate", kind.name), job.start("migrate", kind.name)
    await follower.until(lambda: "The operator is already running" in follower.stderr)
    await gives_up.until(lambda: "The operator is already running" in gives_up.stderr)
    gives_up.signal(signal.SIGINT)
    left = await gives_up.done()
    assert left.exit_code == 130
    assert left.stderr.endswith(f"Stopped watching; StorageMigration {kind.group} continues.\n")

    await admin.patch_migration(kind.group, limits={"maxObjectsPerSecond": FAST})
    done = await follower.done()

    assert done.exit_code == 0, done.stderr
    assert f"StorageMigration {kind.group}: following it." in done.stderr
    assert "Trimmed=True" in done.stderr
    assert "300 objects proved" in done.stdout
    assert admin.stored(kind) == {"v2": 300}
    assert [each.metadata.name for each in await migrations(admin, kind.group)] == [kind.group]


async def test_a_follower_does_not_wait_for_refused_objects(
    admin: Admin, operator: Operator, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 10)
    await deny_updates(admin, kind, "object.metadata.name != 'db-00003'", example="db-00003")
    job = shells(await jobsample.account(admin, kind))
    await admin.create_migration(kind.group, kind)

    done = await job.run("migrate", kind.name, "--retry-limit=1")

    assert done.exit_code == 1
    assert "default/db-00003" in done.stdout
    assert done.stderr.rstrip().endswith("Fix the causes; the migration keeps retrying.")


async def test_a_run_can_be_suspended_by_its_object(admin: Admin, kind: CustomKind, shells: Shells) -> None:
    kind = await outdated(admin, kind, 300, opt_in=False)
    job = shells(await jobsample.account(admin, kind))
    name = await begun_slowly(admin, kind)
    command = job.start("migrate", kind.name)
    await until_under_way(admin, command, kind)

    await admin.patch_migration(name, suspend=True)
    await command.until(lambda: "Suspended=True" in command.stderr)
    stored = admin.stored(kind)
    assert stored["v1"] > 0

    await admin.patch_migration(name, suspend=False, limits={"maxObjectsPerSecond": FAST})
    done = await command.done()

    assert done.exit_code == 0, done.stderr
    assert admin.stored(kind) == {"v2": 300}
    assert (await admin.migration(name)).status.restarts == 0


async def test_a_crd_that_is_deleted_meanwhile_ends_the_command(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 300, opt_in=False)
    command = shells(await jobsample.account(admin, kind)).start(
        "migrate", kind.name, *QUICK, f"--max-objects-per-second={SLOW}"
    )
    await until_under_way(admin, command, kind)

    await admin.delete(f"{CRDS}/{kind.name}")
    done = await command.done()

    assert done.exit_code == 1
    assert re.search(rf"^Error: {kind.name}: Definition(Deleted|Terminating): ", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr


async def test_a_migration_that_is_deleted_meanwhile_ends_the_command(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 300, opt_in=False)
    command = shells(await jobsample.account(admin, kind)).start(
        "migrate", kind.name, *QUICK, f"--max-objects-per-second={SLOW}"
    )
    made = await until_under_way(admin, command, kind)

    await admin.delete_migration(made.metadata.name)
    done = await command.done()

    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == (
        f"Error: {kind.name}: StorageMigration {made.metadata.name} was deleted; nothing more was done."
    )
    assert admin.stored(kind)["v1"] > 0
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]
