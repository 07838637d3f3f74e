"""`crdkeeper migrate` as a separate process, mostly with the account of the sample Job."""

import json
import re
import signal
from collections.abc import Callable

import pytest

from crdkeeper.api.meta import CLI
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
from tests.cluster.harness import Admin, CustomKind, TrimGuard, condition, outdated
from tests.cluster.harness.admin import MIGRATIONS
from tests.cluster.harness.admission import allow_updates, deny_updates
from tests.controlplane.plane import ControlPlane


async def test_the_sample_job_migrates_under_its_own_rights(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 30, opt_in=False)
    job = shells(await jobsample.account(admin, kind))

    done = await job.run(*jobsample.arguments(kind), "--settle-seconds=1")

    assert done.exit_code == 0, done.stderr
    assert admin.stored(kind) == {"v2": 30}
    assert await admin.stored_versions_of(kind) == ["v2"]
    (made,) = await migrations(admin, kind.group)
    assert (made.metadata.name, made.spec.managed_by) == (f"{kind.name}-cli", CLI)
    assert condition(made, "Succeeded").reason == "Migrated"
    assert "1 API server of 1 seen alive" in condition(made, "Settled").message
    lines = done.stderr.splitlines()
    assert lines[0] == f"Created StorageMigration {kind.name}-cli."
    # A pipe gets plain lines: nothing that moves a cursor.
    assert all(line.isprintable() for line in lines)
    steps = [line.partition("=")[0] for line in lines if "=True" in line]
    assert steps == ["Resolved", "Settled", "Rewritten", "Verified", "Trimmed"]
    assert done.stdout == (
        f"{kind.name}: 30 objects proved to be stored at the storage version. "
        f"Removed v1 from status.storedVersions of the CRD, which now lists only v2.\n"
    )

    again = await job.run(*jobsample.arguments(kind))

    assert (again.exit_code, again.stderr) == (0, "Resolved=True Pinned: The storage version is v2.\n")
    assert again.stdout == f"{kind.name}: Nothing to do: storedVersions lists only v2.\n"
    assert await migrations(admin, kind.group) == [made]


async def test_after_a_kill_the_same_command_goes_on(admin: Admin, kind: CustomKind, shells: Shells) -> None:
    kind = await outdated(admin, kind, 400, opt_in=False)
    job = shells(await jobsample.account(admin, kind))
    killed = job.start("migrate", kind.name, *QUICK, f"--max-objects-per-second={SLOW}")
    before = await until_under_way(admin, killed, kind)
    killed.kill()
    assert 0 < admin.stored(kind)["v2"] < 400

    done = await job.run("migrate", kind.name, f"--max-objects-per-second={FAST}")

    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith(f"Resuming StorageMigration {kind.name}-cli.\n")
    assert admin.stored(kind) == {"v2": 400}
    assert await admin.stored_versions_of(kind) == ["v2"]
    (made,) = await migrations(admin, kind.group)
    assert made.metadata.uid == before.metadata.uid
    assert made.status.settled_resource_version == before.status.settled_resource_version
    assert made.status.restarts == 0
    progress = made.status.progress
    # What the first run wrote after its last checkpoint is found current.
    assert progress.rewritten + progress.current == 400
    assert progress.rewritten >= before.status.progress.rewritten


async def test_of_two_processes_one_works_and_the_other_one_follows(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 300, opt_in=False)
    job = shells(await jobsample.account(admin, kind))
    name = await begun_slowly(admin, kind)
    first = job.start("migrate", kind.name)
    await until_under_way(admin, first, kind)
    second = job.start("migrate", kind.name)

    def met() -> bool:
        return any("Another process is already running" in each.stderr for each in (first, second))

    await second.until(met)
    assert admin.stored(kind)["v1"] > 0
    await admin.patch_migration(name, limits={"maxObjectsPerSecond": FAST})
    done = [await each.done() for each in (first, second)]

    assert [each.exit_code for each in done] == [0, 0], done
    assert sum("Another process is already running" in each.stderr for each in done) == 1
    assert admin.stored(kind) == {"v2": 300}
    assert await admin.stored_versions_of(kind) == ["v2"]
    (made,) = await migrations(admin, kind.group)
    assert made.status.progress.rewritten + made.status.progress.current == 300


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_the_command_with_its_state_saved(
    admin: Admin, kind: CustomKind, shells: Shells, number: signal.Signals, exit_code: int
) -> None:
    kind = await outdated(admin, kind, 400, opt_in=False)
    job = shells(await jobsample.account(admin, kind))
    command = job.start(
        "migrate", kind.name, *QUICK, f"--max-objects-per-second={SLOW}", "--max-concurrency=2"
    )
    await until_under_way(admin, command, kind)

    command.signal(number)
    done = await command.done()

    assert (done.exit_code, done.stdout) == (exit_code, "")
    stored = admin.stored(kind)["v2"]
    (made,) = await migrations(admin, kind.group)
    # Everything except what was in flight is recorded.
    assert stored - 2 <= made.status.progress.rewritten <= stored < 400
    assert done.stderr.splitlines()[-1] == (
        f"Interrupted at {made.status.progress.rewritten} of 400 objects (Rewriting); "
        f"saved in StorageMigration {kind.name}-cli. To resume, run the same command again."
    )
    assert "Traceback" not in done.stderr

    again = await job.run("migrate", kind.name, f"--max-objects-per-second={FAST}")
    assert again.exit_code == 0, again.stderr
    (ended,) = await migrations(admin, kind.group)
    assert ended.metadata.uid == made.metadata.uid
    assert ended.status.settled_resource_version == made.status.settled_resource_version
    assert admin.stored(kind) == {"v2": 400}


async def test_a_dry_run_names_what_would_be_refused_and_writes_nothing(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 20, opt_in=False)
    policy = await deny_updates(admin, kind, "object.metadata.name != 'db-00003'", example="db-00003")
    job = shells(await jobsample.account(admin, kind))

    def bytes_in_etcd() -> dict[str, bytes | None]:
        keys = [kind.definition_key, *admin.etcd.keys(f"/registry/{kind.group}/{kind.plural}/")]
        return {key: admin.etcd.raw(key) for key in keys}

    before = bytes_in_etcd()
    assert len(before) == 21

    done = await job.run("migrate", kind.name, "--dry-run", *QUICK)

    assert done.exit_code == 1
    header, line = done.stdout.splitlines()
    assert header.split() == ["OBJECT", "CODE", "DENIED", "BY", "FIELD", "MESSAGE"]
    cells = [each.strip() for each in line.split("   ") if each]
    assert cells[:4] == ["default/db-00003", "422", f"ValidatingAdmissionPolicy {policy}", "-"]
    assert cells[4].endswith("denied request: this object is protected")
    assert "1 of 20 objects would be refused. Nothing was written." in done.stderr
    assert bytes_in_etcd() == before
    assert await migrations(admin, kind.group) == []

    await allow_updates(admin, kind, example="db-00003")
    clean = await job.run("migrate", kind.name, "--dry-run", "--output=json")

    assert clean.exit_code == 0
    assert condition(StorageMigration.model_validate_json(clean.stdout), "Succeeded").reason == "PlanClean"
    assert bytes_in_etcd() == before


async def test_refused_objects_are_listed_and_the_next_run_tries_only_these(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 20, opt_in=False)
    await deny_updates(admin, kind, "object.metadata.name != 'db-00003'", example="db-00003")
    job = shells(await jobsample.account(admin, kind))

    done = await job.run("migrate", kind.name, *QUICK, "--retry-limit=0")

    assert done.exit_code == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["OBJECT", "default/db-00003"]
    assert done.stderr.splitlines()[-1].startswith(f"Error: {kind.name}: 1 object refused")
    assert admin.stored(kind) == {"v1": 1, "v2": 19}
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]
    (refused,) = await migrations(admin, kind.group)
    assert condition(refused, "Succeeded").reason == "RetriesExhausted"
    written = await admin.resource_versions(kind)

    still = await job.run("migrate", kind.name)  # with none of the originally requested retries left

    assert still.exit_code == 1
    assert "default/db-00003" in still.stdout

    await allow_updates(admin, kind, example="db-00003")
    mended = await job.run("migrate", kind.name, "--output=json")

    assert mended.exit_code == 0, mended.stderr
    printed = StorageMigration.model_validate_json(mended.stdout)
    (made,) = await migrations(admin, kind.group)
    assert printed.metadata.uid == made.metadata.uid == refused.metadata.uid
    assert printed.status == made.status
    assert admin.stored(kind) == {"v2": 20}
    assert await admin.stored_versions_of(kind) == ["v2"]
    after = await admin.resource_versions(kind)
    assert {name for name in after if after[name] != written[name]} == {"db-00003"}


async def test_all_options_reach_the_spec(admin: Admin, kind: CustomKind, shells: Shells) -> None:
    kind = await outdated(admin, kind, 3, opt_in=False)
    options = {
        "--min-concurrency": "3",
        "--max-concurrency": "8",
        "--max-objects-per-second": "500",
        "--max-bytes-per-second": "1000000",
        "--settle-seconds": "1",
        "--retry-limit": "forever",
        "--managed-fields": "retarget",
        "--verify": "full",
        "--name": "test-all-options",
    }
    done = await shells(await jobsample.account(admin, kind)).run(
        "migrate",
        kind.name,
        "--ignore-api-server-leases",
        "--no-trim",
        *(f"{name}={value}" for name, value in options.items()),
    )

    assert done.exit_code == 0, done.stderr
    (made,) = await migrations(admin, kind.group)
    assert made.metadata.name == "test-all-options"
    spec = made.spec.to_object()
    assert spec == {
        "limits": {
            "minConcurrency": 3,
            "maxConcurrency": 8,
            "maxObjectsPerSecond": 500,
            "maxBytesPerSecond": 1_000_000,
        },
        "retry": {"backoffSeconds": 10, "maxBackoffSeconds": 300},
        "trim": False,
        "managedFields": "Retarget",
        "verify": "Full",
        "settleSeconds": 1,
        "apiServerLeases": "Ignore",
        "resource": {"group": kind.group, "resource": kind.plural},
        "mode": "Execute",
        "suspend": False,
        "managedBy": CLI,
    }


async def test_without_a_trim_the_old_version_stays_until_it_is_asked_for(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 10, opt_in=False)
    job = shells(await jobsample.account(admin, kind))

    kept = await job.run("migrate", kind.name, *QUICK, "--no-trim", "--output=json")

    assert kept.exit_code == 0, kept.stderr
    printed = json.loads(kept.stdout)
    assert (printed["kind"], printed["metadata"]["name"]) == ("StorageMigration", f"{kind.name}-cli")
    assert condition(StorageMigration.model_validate(printed), "Trimmed").reason == "NotRequested"
    assert admin.stored(kind) == {"v2": 10}
    assert await admin.stored_versions_of(kind) == ["v1", "v2"]
    written = await admin.resource_versions(kind)

    trimmed = await job.run("migrate", kind.name, *QUICK)

    assert trimmed.exit_code == 0, trimmed.stderr
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert await admin.resource_versions(kind) == written
    names = [each.metadata.name for each in await migrations(admin, kind.group)]
    assert names == [f"{kind.name}-cli", f"{kind.name}-cli-2"]


async def test_any_resource_is_rewritten_as_often_as_asked(admin: Admin, shells: Shells) -> None:
    resource = "ingressclasses.networking.k8s.io"
    body = {"metadata": {"name": "test-cli"}, "spec": {"controller": "example.com/ingress"}}
    await admin.create("/apis/networking.k8s.io/v1/ingressclasses", body)
    laptop = shells(admin.cluster.kubeconfig)

    for number in ("", "-2"):
        admin.cleans_up(f"{MIGRATIONS}/{resource}-cli{number}")
        done = await laptop.run("migrate", resource, *QUICK)

        assert done.exit_code == 0, done.stderr
        assert f"Created StorageMigration {resource}-cli{number}.\n" in done.stderr
        assert done.stdout.endswith("Only a CRD has storedVersions to trim.\n")


async def test_a_resource_that_does_not_exist_is_one_line_with_what_may_be_meant(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    await admin.apply_definition(kind)
    job = shells(await jobsample.account(admin, kind))

    singular = await job.run("migrate", f"database.{kind.group}")
    nothing = await job.run("migrate", "gizmos.nowhere.example.net")

    assert (singular.exit_code, nothing.exit_code) == (1, 1)
    assert singular.stderr == f"Error: no resource database.{kind.group}; did you mean {kind.name}?\n"
    assert nothing.stderr == "Error: no resource gizmos.nowhere.example.net\n"


async def test_where_the_kind_is_not_installed_the_state_is_kept_in_memory(
    start_plane: Callable[..., ControlPlane], group: str, shells: Shells
) -> None:
    plane = start_plane(controllers=())
    laptop = shells(plane.kubeconfig)
    with TrimGuard(plane.etcd) as guard:
        async with Admin(plane, on_definition=guard.add) as admin:
            kind = await outdated(admin, CustomKind(group), 20, opt_in=False)

            done = await laptop.run("migrate", kind.name, *QUICK)

            assert done.exit_code == 0, done.stderr
            assert done.stderr.startswith("The kind StorageMigration is not installed")
            assert admin.stored(kind) == {"v2": 20}
            assert await admin.stored_versions_of(kind) == ["v2"]
            guard.check()
            shown = await laptop.run("status", "--no-headers")
            assert [line.split()[:3] for line in shown.stdout.splitlines()] == [[kind.name, "v2", "v2"]]
            assert (shown.exit_code, shown.stderr) == (0, "")


async def test_on_a_terminal_there_is_a_bar(admin: Admin, kind: CustomKind, shells: Shells) -> None:
    kind = await outdated(admin, kind, 300, opt_in=False)
    name = await begun_slowly(admin, kind)
    command = shells(admin.cluster.kubeconfig).start_on_terminal("migrate", kind.name)
    bar = re.compile(r"Rewriting [━╸╺]+ *\d+/300, \d+/s, \d+ in flight, 0 refused")
    await command.until(lambda: bar.search(drawn(command)) is not None)

    await admin.patch_migration(name, limits={"maxObjectsPerSecond": FAST})
    done = await command.done()

    assert done.exit_code == 0, done.stderr
    assert "Trimmed=True Trimmed: Removed v1" in drawn(command)
    # The bar leaves nothing on the screen: its line was erased, and the cursor is visible again.
    after_the_bar = done.stderr[done.stderr.rindex("━") :]
    assert "\x1b[2K" in after_the_bar
    assert "\x1b[?25h" in after_the_bar
    assert done.stdout.startswith(f"{kind.name}: 300 objects proved")
