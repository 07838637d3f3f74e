"""`crdkeeper retire` and `crdkeeper migrate` with just the documented rights, and without each of them."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crdkeeper.cluster.resources.access import Right
from crdkeeper.operations.rights import DEFINITIONS
from tests.cluster.cli import jobsample
from tests.cluster.cli.migrations import QUICK, Shells, begun_slowly, migrations, until_under_way
from tests.cluster.harness import Admin, CustomKind, outdated
from tests.cluster.harness.accounts import documented_rights, limited, rights_of, rights_to_add, unnamed
from tests.cluster.harness.admin import CRDS

OTHERS = ("storagemigration.k8s.io", "migration.k8s.io")
"""To see other migrators is no right that a migration needs."""
EACH = bool(os.environ.get("CRDKEEPER_EACH_RIGHT"))
"""Whether to take away each right alone. Otherwise, those that are reviewed together are missing together."""


def named(kind: CustomKind) -> dict[str, str]:
    return {"databases.shop.example.com": kind.name, "shop.example.com": kind.group, "databases": kind.plural}


def lacking(rights: Sequence[Right]) -> list[list[Right]]:
    """What to take away, one after the other."""
    looking = [each for each in rights if each.resource == "customresourcedefinitions" and each.verb == "get"]
    looking += [each for each in rights if each.resource == "storagemigrations" and each.verb == "list"]
    assert len(looking) == 2
    together = [[each for each in rights if each not in looking]]
    return [[each] for each in (rights if EACH else looking)] + together


async def test_retire_names_each_missing_right_before_it_changes_anything(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 2, opt_in=False)
    rights = documented_rights("retirement.md", "crdkeeper retire", named(kind))
    command = ("retire", kind.name, "v1", "--yes", "--wait", "--quiet-period=1s", *QUICK)
    async with limited(admin, f"retire-{kind.group.partition('.')[0]}") as account:
        shell = shells(account.kubeconfig)
        before = (await admin.definition(kind))["spec"]
        for missing in lacking(rights):
            await account.grant(rights, but=missing)
            done = await shell.run(*command)
            assert (done.exit_code, done.stdout) == (1, ""), (missing, done)
            assert rights_to_add(done.stderr) == unnamed(missing)
            assert (await admin.definition(kind))["spec"] == before, missing
            assert await migrations(admin, kind.group) == [], missing

        await account.grant(rights)
        done = await shell.run(*command)
        assert done.exit_code == 0, done.stderr
    assert [each["name"] for each in (await admin.definition(kind))["spec"]["versions"]] == ["v2"]
    assert admin.stored(kind) == {"v2": 2}


async def test_undo_needs_two_rights_more(admin: Admin, kind: CustomKind, shells: Shells) -> None:
    kind = await outdated(admin, kind, 1, opt_in=False)
    rights = documented_rights("retirement.md", "crdkeeper retire undo", named(kind))
    crd = await admin.definition(kind)
    versions = [each | {"deprecated": each["name"] == "v1"} for each in crd["spec"]["versions"]]
    before = (await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"versions": versions}}))["spec"]
    async with limited(admin, f"undo-{kind.group.partition('.')[0]}") as account:
        shell = shells(account.kubeconfig)
        # To patch VersionRetirements is needed only where there are some.
        needed = [each for each in rights if (each.verb, each.resource) != ("patch", "versionretirements")]
        for each in needed if EACH else needed[1:]:
            await account.grant(needed, but=[each])
            done = await shell.run("retire", "undo", kind.name, "v1", "--yes")
            assert done.exit_code == 1, each
            assert unnamed([each])[0] in rights_to_add(done.stderr)
            assert (await admin.definition(kind))["spec"] == before, each
        await account.grant(needed)
        done = await shell.run("retire", "undo", kind.name, "v1", "--yes")
        assert (done.exit_code, done.stderr) == (0, "")


def job_rights(kind: CustomKind) -> list[Right]:
    """Those in the ClusterRole of the sample Job."""
    (role,) = (each for each in jobsample.documents(kind) if each["kind"] == "ClusterRole")
    return [each for each in rights_of(role["rules"]) if each.group not in OTHERS]


async def test_migrate_names_each_missing_right_and_does_not_wait_for_it(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 2, opt_in=False)
    rights = job_rights(kind)
    async with limited(admin, f"migrate-{kind.group.partition('.')[0]}") as account:
        shell = shells(account.kubeconfig)
        for missing in lacking(rights):
            await account.grant(rights, but=missing)
            done = await shell.run("migrate", kind.name, *QUICK)
            assert (done.exit_code, done.stdout) == (1, ""), (missing, done)
            assert rights_to_add(done.stderr) == unnamed(missing)
            assert await migrations(admin, kind.group) == [], missing
            assert admin.stored(kind) == {"v1": 2}
        await account.grant(rights)
        done = await shell.run("migrate", kind.name, *QUICK)
        assert done.exit_code == 0, done.stderr
    assert admin.stored(kind) == {"v2": 2}


async def test_a_right_that_is_withdrawn_ends_the_migration(
    admin: Admin, kind: CustomKind, shells: Shells
) -> None:
    kind = await outdated(admin, kind, 400, opt_in=False)
    rights = job_rights(kind)
    withdrawn = [each for each in rights if each.verb == "patch" and each.subresource != "status"]
    withdrawn += [each for each in rights if each.subresource == "status" and each.group == "crdkeeper.dev"]
    assert [each.resource for each in withdrawn] == [kind.plural, "storagemigrations"]
    await begun_slowly(admin, kind)
    async with limited(admin, f"withdrawn-{kind.group.partition('.')[0]}") as account:
        for each in withdrawn:
            await account.grant(rights)
            running = shells(account.kubeconfig).start("migrate", kind.name, *QUICK)
            await until_under_way(admin, running, kind)
            await account.grant(rights, but=[each])
            done = await running.done()
            assert done.exit_code == 1, done.stderr
            assert rights_to_add(done.stderr.rpartition("Error: ")[2]) == unnamed([each])


async def test_whoever_may_not_read_crds_is_told_which_right_is_missing(
    admin: Admin, kind: CustomKind, shells: Shells, tmp_path: Path
) -> None:
    kind = await outdated(admin, replace(kind, labels={"test": kind.group}), 2, opt_in=False)
    selector = f"--selector=test={kind.group}"
    to_list, to_get = Right("list", *DEFINITIONS), Right("get", *DEFINITIONS, name=kind.name)
    retirements = Right("list", "crdkeeper.dev", "versionretirements")
    services = Right("list", "apiregistration.k8s.io", "apiservices")
    rights = [to_list, retirements, services, *job_rights(kind)]
    manifest = tmp_path / "crd.json"
    manifest.write_text(json.dumps(kind.to_object()), encoding="utf-8")
    assert to_get in rights
    without = {
        to_list: (("migrate", "--all-outdated"), ("migrate", selector, *QUICK), ("status",), ("lint",)),
        to_get: (("status", kind.name), ("lint", kind.name), ("diff", "-f", str(manifest))),
        retirements: (("retire", "status"),),
        services: (("status", "--builtins"),),
    }
    async with limited(admin, f"list-{kind.group.partition('.')[0]}") as account:
        shell = shells(account.kubeconfig)
        for missing, commands in without.items():
            await account.grant(rights, but=[missing])
            for command in commands:
                done = await shell.run(*command)
                # The 1 of these two says that they have found something.
                code = 2 if command[0] in ("lint", "diff") else 1
                assert (done.exit_code, done.stdout) == (code, ""), (command, done)
                assert rights_to_add(done.stderr) == unnamed([missing]), command
        assert admin.stored(kind) == {"v1": 2}
        await account.grant(rights)
        done = await shell.run("migrate", "--all-outdated", selector, *QUICK)
        assert done.exit_code == 0, done.stderr
    assert admin.stored(kind) == {"v2": 2}
