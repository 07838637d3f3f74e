"""`crdkeeper status` as users run it, also as a kubectl plugin."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from tests.cluster.cli.commandline import CommandLine, Done
from tests.cluster.cli.migrations import SLOW
from tests.cluster.harness import NAMESPACE, Admin, CustomKind, Operator, eventually, outdated
from tests.cluster.harness.admin import POLICIES
from tests.controlplane import binaries

HEADER = ["NAME", "STORAGE", "STORED", "SERVED", "MIGRATION", "PROGRESS", "REASON", "AGE"]
WIDE_HEADER = [*HEADER, "POLICY", "REWRITTEN", "CURRENT", "REFUSED", "PARTS", "MESSAGE"]


def cells(line: str) -> list[str]:
    """A line of a table; cells with several words are the last ones."""
    return line.split()


async def test_a_crd_from_the_flip_to_the_trim(
    admin: Admin, operator: Operator, group: str, shell: CommandLine
) -> None:
    kind = await outdated(admin, CustomKind(group), 300)

    needed = await shell.run("status", kind.name)

    header, line = needed.stdout.splitlines()
    assert cells(header) == HEADER
    assert cells(line)[:-1] == [kind.name, "v2", "v1,v2", "v1,v2", "needed", "-", "-"]
    assert (needed.exit_code, needed.stderr) == (0, "")

    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": SLOW})
    await admin.wait_for_migration(group, lambda made: made.status.progress.objects_per_second > 0, "at work")

    async def at_work() -> list[str] | None:
        (line,) = (await shell.run("status", kind.name, "--no-headers")).stdout.splitlines()
        # A rate of 0 is not shown: whoever writes, or answers, may have been stopped meanwhile.
        return found if (found := cells(line))[6].endswith("/s") else None

    shown = await eventually(at_work)
    assert shown[4] == group
    assert shown[5].endswith("%")
    assert "Rewriting" in shown

    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 1000})
    await admin.wait_for_condition(group, "Succeeded", "True")
    wide = await shell.run("status", kind.name, "--output=wide")
    header, line = wide.stdout.splitlines()
    assert cells(header) == WIDE_HEADER
    expected = [kind.name, "v2", "v2", "v1,v2", group, "100%", "Migrated"]
    assert cells(line)[:7] == expected
    policy, rewritten, current, refused = cells(line)[8:12]
    # A write in flight when the limits changed is found current.
    assert (policy, int(rewritten) + int(current), refused) == ("-", 300, "0")
    assert line.endswith("300 objects proved to be stored at the storage version.")


async def test_all_crds_are_listed_or_those_selected(admin: Admin, group: str, shell: CommandLine) -> None:
    labels = {"test": group}
    current = CustomKind(group, plural="cogs", kind="Cog", labels=labels)
    await admin.apply_definition(current)
    old = await outdated(admin, CustomKind(group, labels=labels), 1, opt_in=False)

    async def names(*args: str) -> list[str]:
        done = await shell.run("status", "--no-headers", *args)
        assert done.exit_code == 0, done.stderr
        return [cells(line)[0] for line in done.stdout.splitlines()]

    everything = await names()
    assert everything == sorted(everything)
    assert {current.name, old.name, "storagemigrations.crdkeeper.dev"} <= set(everything)
    assert await names(f"--selector=test={group}") == [current.name, old.name]
    assert await names("-l", f"test={group}", "--outdated") == [old.name]
    assert await names(old.name, current.name, old.name) == [current.name, old.name]
    empty = await shell.run("status", "--selector=test=nothing")
    assert (empty.exit_code, empty.stdout, empty.stderr) == (0, "", "No CRDs found.\n")
    done = await shell.run("status", current.name, "--outdated")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "No outdated CRDs found.\n")


async def test_json_and_yaml_tell_the_same(admin: Admin, group: str, shell: CommandLine) -> None:
    kind = CustomKind(group, labels={"test": group})
    await admin.apply_definition(kind)
    spec = {"groups": [group], "storageMigration": {"mode": "Plan"}}
    policy = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "DefinitionPolicy", "spec": spec}
    await admin.create(POLICIES, {**policy, "metadata": {"name": group}})

    as_json = await shell.run("status", "-o", "json", kind.name)
    as_yaml = await shell.run("status", "-o", "yaml", kind.name)

    document = json.loads(as_json.stdout)
    assert yaml.safe_load(as_yaml.stdout) == document
    (item,) = document["items"]
    created = (await admin.definition(kind))["metadata"]["creationTimestamp"]
    assert item == {
        "name": kind.name,
        "kind": "Database",
        "storageVersion": "v1",
        "storedVersions": ["v1"],
        "servedVersions": ["v1", "v2"],
        "outdatedVersions": [],
        "migrationNeeded": False,
        "established": True,
        "terminating": False,
        "creationTimestamp": created,
        "policy": {"name": group, "mode": "Plan"},
        "findings": [],
    }


async def test_names_that_do_not_exist_are_told_and_the_others_shown(
    admin: Admin, group: str, shell: CommandLine
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)

    some = await shell.run("status", "--no-headers", kind.name, f"database.{group}", "deploy", "pods")
    none = await shell.run("status", "gizmos.nowhere.example.net")
    both = await shell.run("status", kind.name, "--selector=a=b")

    assert [cells(line)[0] for line in some.stdout.splitlines()] == [kind.name]
    assert some.stderr == (
        f"Error: no CRD database.{group}; did you mean {kind.name}?; "
        "no CRD deploy; if it is built in and can be migrated: crdkeeper status --builtins deployments.apps; "
        "no CRD pods; if it is built in and can be migrated: crdkeeper status --builtins pods\n"
    )
    assert (none.stdout, none.stderr) == ("", "Error: no CRD gizmos.nowhere.example.net\n")
    assert (some.exit_code, none.exit_code, both.exit_code) == (1, 1, 2)


async def test_what_may_not_be_listed_is_remarked(admin: Admin, group: str, tmp_path: Path) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    name, roles = f"test-{group}", "/apis/rbac.authorization.k8s.io/v1"
    rule = {
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "verbs": ["list"],
    }
    await admin.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": name}})
    await admin.create(f"{roles}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    await admin.create(
        f"{roles}/clusterrolebindings",
        {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        },
    )
    shell = CommandLine(admin.cluster.service_account_kubeconfig(NAMESPACE, name), tmp_path / "shell")

    async def listed() -> Done | None:
        done = await shell.run("status", "--no-headers")
        return done if done.exit_code == 0 else None

    done = await eventually(listed)

    assert kind.name in done.stdout
    migrations, policies, reports = done.stderr.splitlines()
    assert migrations.startswith("Migrations are not shown: storagemigrations.crdkeeper.dev is forbidden")
    assert policies.startswith("Policies are not shown: definitionpolicies.crdkeeper.dev is forbidden")
    assert reports.startswith("Reports are not shown: definitionreports.crdkeeper.dev is forbidden")


async def test_kubectl_runs_it_as_a_plugin(admin: Admin, group: str, shell: CommandLine) -> None:
    plugin = Path(sys.executable).with_name("kubectl-crdkeeper")
    if not plugin.exists():
        pytest.skip("crdkeeper is not installed beside this Python")
    kubectl = shutil.which("kubectl") or str(binaries.find().kubectl)
    path = f"{plugin.parent}:{os.environ['PATH']}"
    kind = CustomKind(group)
    await admin.apply_definition(kind)

    shown = await shell.start_program(kubectl, "crdkeeper", "status", kind.name, path=path).done()
    wrong = await shell.start_program(kubectl, "crdkeeper", "migrate", path=path).done()

    assert shown.exit_code == 0, shown.stderr
    assert cells(shown.stdout.splitlines()[1])[0] == kind.name
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("Usage: kubectl crdkeeper migrate [OPTIONS] [PLURAL.GROUP]...")
