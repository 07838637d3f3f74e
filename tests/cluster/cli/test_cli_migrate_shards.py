"""What users see of a migration that several processes share (`crdkeeper migrate --shards`)."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from crdkeeper.api.meta import CLI
from crdkeeper.api.storagemigration import MigrationPart, MigrationShards, StorageMigration
from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.cli import jobsample
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.cli.migrations import QUICK, SLOW, Shells, drawn
from tests.cluster.harness import Admin, CustomKind, eventually, outdated
from tests.cluster.harness.admin import MIGRATIONS

DEFINITION = f"{StorageMigration.plural}.crdkeeper.dev"
FILE = Path(__file__).parents[3] / "crds" / f"crdkeeper.dev_{StorageMigration.plural}.yaml"
OBJECTS = 300
"""At 3 a second: nobody is done before the test has looked, however busy the machine is."""


async def test_a_log_and_a_terminal_show_the_own_part_and_the_whole(
    admin: Admin, kind: CustomKind, shells: Shells, shell: CommandLine
) -> None:
    kind = await outdated(admin, kind, OBJECTS, opt_in=False)
    job = shells(await jobsample.account(admin, kind))
    name = f"shown-{kind.group.partition('.')[0]}"
    await admin.create_migration(name, kind, managedBy=CLI, limits={"maxObjectsPerSecond": SLOW})
    command = ("migrate", kind.name, *QUICK, f"--name={name}", "--shards=3")
    first = job.start(*command, "--shard=0")
    await first.until(lambda: "here part 0 of 3: " in first.stderr)
    assert "coordinated by this process" in first.stderr

    second = job.start_on_terminal(*command, "--shard=1")
    await second.until(lambda: "Part 1 of 3, here" in drawn(second))

    made = await admin.migration(name)
    assert made.status.shards is not None
    holder = made.status.shards.coordinator.holder
    await second.until(lambda: f"0 of 3 parts done, 2 at work; coordinated by {holder}" in drawn(second))
    shown = await shell.run("status", kind.name, "--output=wide")
    assert "PARTS" in shown.stdout and " 0/3 " in shown.stdout
    (document,) = json.loads((await shell.run("status", kind.name, "--output=json")).stdout)["items"]
    assert document["migration"]["parts"] == {"count": 3, "done": 0, "atWork": 2, "coordinator": holder}
    assert holder in admin.cluster.kubectl("get", "storagemigration", name, "--output=wide")


Renew = Callable[[], Awaitable[None]]


@pytest.fixture
async def renew(admin: Admin, kind: CustomKind) -> AsyncIterator[Renew]:
    """The CRD of StorageMigration has no status.shards, as in an older release, until this is called."""
    name = f"probe-{kind.group.partition('.')[0]}"
    probe = await admin.create_migration(name, ("", "configmaps"), suspend=True)
    path = f"{MIGRATIONS}/{probe.metadata.name}/status?dryRun=All"
    body = {"status": {"shards": MigrationShards(parts=[MigrationPart()]).to_object()}}

    async def until_kept(*, kept: bool) -> None:
        async def look() -> bool:
            answer = await admin.client.request("PATCH", path, body, content_type=MERGE_PATCH)
            return ("shards" in answer.get("status", {})) == kept

        await eventually(look)

    async def apply() -> None:
        admin.cluster.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={FILE}")
        await until_kept(kept=True)

    where = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/shards"
    patch = json.dumps([{"op": "remove", "path": where}])
    admin.cluster.kubectl("patch", "crd", DEFINITION, "--type=json", f"--patch={patch}")
    try:
        await until_kept(kept=False)
        yield apply
    finally:
        await apply()


async def test_without_the_field_an_error_says_what_to_apply(
    admin: Admin, kind: CustomKind, shells: Shells, renew: Renew
) -> None:
    kind = await outdated(admin, kind, 5, opt_in=False)
    job = shells(await jobsample.account(admin, kind))
    name = f"older-{kind.group.partition('.')[0]}"
    command = ("migrate", kind.name, *QUICK, f"--name={name}", "--shards=2", "--shard=0")

    done = await job.run(*command)

    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == (
        "Error: --shards needs status.shards, which the installed CRD of StorageMigration does not have: it "
        "is of an older release. Apply crds/crdkeeper.dev_storagemigrations.yaml of this release with "
        "`kubectl apply --server-side -f`, and run the same command again."
    )
    assert admin.stored(kind) == {"v1": 5}

    await renew()
    done = await job.run(*command)
    assert done.exit_code == 0, done.stderr
    assert admin.stored(kind) == {"v2": 5}
