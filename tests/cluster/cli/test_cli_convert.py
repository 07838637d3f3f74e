"""`crdkeeper convert test` and `convert admission` with what is in the cluster."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crdkeeper.cluster.resources.access import Right
from crdkeeper.operations.rights import DEFINITIONS
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.cli.migrations import Shells
from tests.cluster.harness import Admin, CustomKind, outdated
from tests.cluster.harness.accounts import limited, rights_to_add, unnamed
from tests.cluster.retirement.scene import CONVERSIONS, plan_of_conversion

COMMANDS = ("test", "admission")


@pytest.fixture
async def kind(admin: Admin, kind: CustomKind) -> AsyncIterator[CustomKind]:
    """With two objects, and no rules yet."""
    yield await outdated(admin, kind, 2, opt_in=False)
    await admin.client.send("DELETE", f"{CONVERSIONS}/{kind.name}")


async def test_each_missing_right_is_named(admin: Admin, kind: CustomKind, shells: Shells) -> None:
    await admin.create(CONVERSIONS, plan_of_conversion(kind, "v1"))
    objects = Right("list", kind.group, kind.plural)
    rights = [
        Right("list", "crdkeeper.dev", "versionconversions"),
        Right("get", *DEFINITIONS, name=kind.name),
        objects,
    ]
    async with limited(admin, f"convert-{kind.group.partition('.')[0]}") as account:
        shell = shells(account.kubeconfig)
        for missing in rights:
            await account.grant(rights, but=[missing])
            for command in COMMANDS if missing != objects else ("test",):
                done = await shell.run("convert", command, kind.name)
                assert done.exit_code == 2, (command, done)
                assert rights_to_add(done.stderr) == unnamed([missing]), command
        await account.grant(rights)
        for command in COMMANDS:
            done = await shell.run("convert", command, kind.name)
            assert done.exit_code == 0, done.stderr


async def test_a_crd_that_does_not_exist_is_not_one_without_rules(
    kind: CustomKind, shell: CommandLine, tmp_path: Path
) -> None:
    manifest = tmp_path / "crd.json"
    manifest.write_text(json.dumps(kind.to_object()), encoding="utf-8")

    async def said(*arguments: str) -> str:
        done = await shell.run("convert", *arguments)
        assert (done.exit_code, done.stdout) == (2, ""), done
        return done.stderr

    for command in COMMANDS:
        assert await said(command, "nosuch.invalid") == "Error: no CRD nosuch.invalid\n"
        mistyped = f"{kind.plural}s.{kind.group}"
        assert await said(command, mistyped) == f"Error: no CRD {mistyped}; did you mean {kind.name}?\n"
        without = f"Error: the cluster has no VersionConversion for {kind.name}: pass a file with --rules\n"
        assert await said(command, kind.name) == without
        # Only the rules are the cluster's then.
        with_file = await said(command, "nosuch.invalid", f"--definition={manifest}")
        assert "no VersionConversion for nosuch.invalid" in with_file
        assert "is not the name of a resource" in await said(command, "../namespaces/default")
