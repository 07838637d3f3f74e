"""`crdkeeper migrate` for several resources, given by name, by labels, or because they need it."""

import json
import re
import signal
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.cli import jobsample
from tests.cluster.cli.migrations import (
    FAST,
    QUICK,
    SLOW,
    Shells,
    begun_slowly,
    drawn,
    migrations,
    until_under_way,
)
from tests.cluster.harness import Admin, CustomKind, Operator, condition, outdated
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.admission import deny_updates

Kinds = tuple[CustomKind, CustomKind]


@pytest.fixture
async def kinds(admin: Admin, group: str) -> AsyncIterator[Kinds]:
    """Two kinds for this test only, in the order of their names, with a label in common."""
    first = CustomKind(group, labels={"test": group})
    yield first, replace(first, plural="queues", kind="Queue")
    for each in await migrations(admin, group):
        await admin.delete_migration(each.metadata.name)


async def both_outdated(admin: Admin, kinds: Kinds, *counts: int) -> Kinds:
    first, second = [
        await outdated(admin, kind, count, opt_in=False) for kind, count in zip(kinds, counts, strict=True)
    ]
    return first, second


async def test_outdated_crds_are_migrated_and_wait_at_the_same_time(
    admin: Admin, kinds: Kinds, shells: Shells
) -> None:
    first, second = await both_outdated(admin, kinds, 20, 30)
    current = replace(first, plural="tables", kind="Table")
    await admin.apply_definition(current)
    laptop = shells(admin.cluster.kubeconfig)
    labelled = f"--selector=test={first.group}"

    # With Leases: each migration sees them renewed for itself, which takes longer than to begin another one.
    done = await laptop.run("migrate", "--all-outdated", labelled, "--settle-seconds=5")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{each.name}: {count} objects proved to be stored at the storage version. "
        f"Removed v1 from status.storedVersions of the CRD, which now lists only v2."
        for each, count in ((first, 20), (second, 30))
    ]
    assert [admin.stored(each) for each in (first, second)] == [{"v2": 20}, {"v2": 30}]
    made = await migrations(admin, first.group)
    assert [each.metadata.name for each in made] == [f"{first.name}-cli", f"{second.name}-cli"]
    # By what was told: times have whole seconds.
    told = done.stderr.splitlines()
    begun = [
        told.index(f"{each.name}: Created StorageMigration {each.name}-cli.") for each in (first, second)
    ]
    settled = [number for number, each in enumerate(told) if ": Settled=True" in each]
    assert len(settled) == 2
    assert max(begun) < min(settled)
    assert told[-1].startswith("2 of 2 resources done (100%), 50 objects, ")
    assert f"{second.name}: Trimmed=True Trimmed: Removed v1" in done.stderr

    nothing = await laptop.run("migrate", "--all-outdated", labelled, "--output=json")

    assert (nothing.exit_code, nothing.stderr) == (0, "No outdated CRDs found.\n")
    assert json.loads(nothing.stdout)["items"] == []

    three = await laptop.run("migrate", labelled, "--output=json")

    assert three.exit_code == 0, three.stderr
    printed = json.loads(three.stdout)
    assert (printed["apiVersion"], printed["kind"]) == ("crdkeeper.dev/v1alpha1", "StorageMigrationList")
    found = [StorageMigration.model_validate(each) for each in printed["items"]]
    assert [str(each.spec.resource) for each in found] == [first.name, second.name, current.name]
    assert {condition(each, "Succeeded").reason for each in found} == {"AlreadyCurrent"}
    assert await migrations(admin, first.group) == made


async def test_what_happens_to_one_does_not_stop_the_others(
    admin: Admin, kinds: Kinds, shells: Shells
) -> None:
    first, second = await both_outdated(admin, kinds, 5, 10)
    await deny_updates(admin, first, "object.metadata.name != 'db-00003'", example="db-00003")
    missing = "gizmos.nowhere.example.net"

    done = await shells(admin.cluster.kubeconfig).run(
        "migrate", missing, first.name, second.name, second.name, *QUICK, "--retry-limit=0"
    )

    assert done.exit_code == 1
    header, refused, result = done.stdout.splitlines()
    assert header.split()[:2] == ["RESOURCE", "OBJECT"]
    assert refused.split()[:3] == [first.name, "default/db-00003", "422"]
    assert result.startswith(f"{second.name}: 10 objects proved")
    assert [each for each in done.stderr.splitlines() if each.startswith("Error")] == [
        f"Error: no resource {missing}",
        f"Error: {first.name}: 1 object refused, also in 0 rounds of retries. All others are done; nothing "
        f"is trimmed until all are. Fix the causes; then run the same command again to retry only these "
        f"objects.",
        "Error: 2 of 3 resources failed.",
    ]
    assert (admin.stored(first), admin.stored(second)) == ({"v1": 1, "v2": 4}, {"v2": 10})
    assert await admin.stored_versions_of(first) == ["v1", "v2"]
    assert await admin.stored_versions_of(second) == ["v2"]


async def test_rights_to_one_are_enough_for_that_one(admin: Admin, kinds: Kinds, shells: Shells) -> None:
    first, second = await both_outdated(admin, kinds, 5, 5)
    job = shells(await jobsample.account(admin, first))

    done = await job.run("migrate", second.name, first.name, *QUICK)

    assert done.exit_code == 1
    assert done.stdout.startswith(f"{first.name}: 5 objects proved")
    right = f"get customresourcedefinitions.apiextensions.k8s.io/{second.name}"
    assert done.stderr.splitlines()[-6:] == [
        f"Error: {second.name}: not permitted: {right}. Add these rules to a ClusterRole of this account:",
        '- apiGroups: ["apiextensions.k8s.io"]',
        '  resources: ["customresourcedefinitions"]',
        f'  resourceNames: ["{second.name}"]',
        '  verbs: ["get"]',
        "Error: 1 of 2 resources failed.",
    ]
    assert (admin.stored(first), admin.stored(second)) == ({"v2": 5}, {"v1": 5})

    unknown = await job.run("migrate", "--all-outdated")

    assert (unknown.exit_code, unknown.stdout) == (1, "")
    right = "list customresourcedefinitions.apiextensions.k8s.io"
    assert unknown.stderr.splitlines() == [
        f"Error: not permitted: {right}. Add these rules to a ClusterRole of this account:",
        '- apiGroups: ["apiextensions.k8s.io"]',
        '  resources: ["customresourcedefinitions"]',
        '  verbs: ["list"]',
    ]


async def test_after_a_signal_the_same_command_goes_on(admin: Admin, kinds: Kinds, shells: Shells) -> None:
    first, second = await both_outdated(admin, kinds, 200, 20)
    laptop = shells(admin.cluster.kubeconfig)
    names = (first.name, second.name)
    command = laptop.start("migrate", *names, *QUICK, f"--max-objects-per-second={SLOW}")
    await until_under_way(admin, command, first)
    # The limit is one for both: who settles later waits until the other's objects are written.
    await command.until(lambda: f"{second.name}: Settled=True" in command.stderr)

    command.signal(signal.SIGTERM)
    done = await command.done()

    assert (done.exit_code, done.stdout) == (143, "")
    told = done.stderr.splitlines()[-2:]
    assert re.fullmatch(
        rf"{first.name}: Interrupted at \d+ of 200 objects \(Rewriting\); saved in StorageMigration "
        rf"{first.name}-cli. To resume, run the same command again.",
        told[0],
    )
    assert told[1].startswith(f"{second.name}: Interrupted (")
    assert "Traceback" not in done.stderr
    assert 0 < admin.stored(first)["v2"] < 200
    assert admin.stored(second) in ({"v1": 20}, {"v2": 20})
    before = await migrations(admin, first.group)

    again = await laptop.run("migrate", *names, f"--max-objects-per-second={FAST}")

    assert again.exit_code == 0, again.stderr
    assert f"{first.name}: Resuming StorageMigration {first.name}-cli." in again.stderr
    after = await migrations(admin, first.group)
    assert [each.metadata.uid for each in after] == [each.metadata.uid for each in before]
    assert [each.status.settled_resource_version for each in after] == [
        each.status.settled_resource_version for each in before
    ]
    assert (admin.stored(first), admin.stored(second)) == ({"v2": 200}, {"v2": 20})


async def test_a_crd_that_is_deleted_makes_room_for_the_next(
    admin: Admin, kinds: Kinds, shells: Shells
) -> None:
    first, second = await both_outdated(admin, kinds, 300, 10)
    command = shells(admin.cluster.kubeconfig).start(
        "migrate", first.name, second.name, *QUICK, f"--max-objects-per-second={SLOW}"
    )
    await until_under_way(admin, command, first)

    await admin.delete(f"{CRDS}/{first.name}")
    done = await command.done()

    assert done.exit_code == 1
    assert re.search(rf"^Error: {first.name}: Definition(Deleted|Terminating): ", done.stderr, re.MULTILINE)
    assert done.stdout.startswith(f"{second.name}: 10 objects proved")
    assert await admin.stored_versions_of(second) == ["v2"]


async def test_what_the_operator_migrates_is_followed_beside_the_own_ones(
    admin: Admin, operator: Operator, kinds: Kinds, shells: Shells
) -> None:
    first, second = await both_outdated(admin, kinds, 300, 10)
    await admin.opt_in(first.group)
    theirs = f"{first.group}-theirs"
    await admin.create_migration(theirs, first, limits={"maxObjectsPerSecond": SLOW})
    await admin.wait_until_stored(first, "v2", 1)
    command = shells(admin.cluster.kubeconfig).start("migrate", first.name, second.name, *QUICK)

    await command.until(lambda: f"{second.name}: Trimmed=True" in command.stderr)
    assert admin.stored(first)["v1"] > 0
    await admin.patch_migration(theirs, limits={"maxObjectsPerSecond": FAST})
    done = await command.done()

    assert done.exit_code == 0, done.stderr
    assert (
        f"{first.name}: The operator is already running StorageMigration {theirs}: following it."
        in done.stderr
    )
    names = [each.metadata.name for each in await migrations(admin, first.group)]
    assert names == [f"{second.name}-cli", theirs]
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [first.name, second.name]


async def test_on_a_terminal_there_is_a_sum_above_the_bars(
    admin: Admin, kinds: Kinds, shells: Shells
) -> None:
    first, second = await both_outdated(admin, kinds, 150, 100)
    made = {each.name: await begun_slowly(admin, each) for each in (first, second)}
    command = shells(admin.cluster.kubeconfig).start_on_terminal("migrate", *made)

    async def until_drawn(pattern: str) -> None:
        await command.until(lambda: re.search(pattern, drawn(command)) is not None)

    def at_work(name: str) -> bool:
        bar = rf"Rewriting {name[:30]}\S* +[━╸╺]+ *\d+/(150|100), \d+/s"
        return re.search(bar, drawn(command)) is not None

    await until_drawn(r"0 of 2 resources done +[━╸╺]+ +\d+ objects, \d+/s, 0 refused")
    # One after the other writes, whichever is first; each goes on only when what it shows was drawn. The
    # first may have to wait for the second before its proof, so that both are done in one frame.
    waiting = [*made]
    while waiting:
        await command.until(lambda: any(map(at_work, waiting)))
        writing = next(filter(at_work, waiting))
        waiting.remove(writing)
        await admin.patch_migration(made[writing], limits={"maxObjectsPerSecond": FAST})
    done = await command.done()

    assert done.exit_code == 0, done.stderr
    assert f"{second.name}: Trimmed=True Trimmed: Removed v1" in drawn(command)
    after_the_bars = done.stderr[done.stderr.rindex("━") :]
    assert "\x1b[?25h" in after_the_bars
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [first.name, second.name]
