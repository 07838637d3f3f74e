"""`crdkeeper status --builtins`: from a resource that nobody migrates to one that is proved."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.cluster.builtins.encrypting import POLICIES, create_policy, create_secrets, is_ready, until
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import Admin, Operator
from tests.controlplane.plane import ControlPlane


async def test_the_command_shows_what_is_due_and_why(
    encrypting: Admin, encrypting_plane: ControlPlane, shells: Callable[[Path], CommandLine]
) -> None:
    shell = shells(encrypting_plane.kubeconfig)
    found = json.loads((await shell.run("status", "--builtins", "--output=json")).stdout)
    versions = {each["name"]: each["storageVersion"] for each in found["items"]}
    assert (versions["secrets"], versions["deployments.apps"]) == ("v1", "v1")
    # Stored like the Events of the core group, whose name the hash contains.
    assert versions["events.events.k8s.io"] == ""
    assert "customresourcedefinitions.apiextensions.k8s.io" in versions
    assert not any(each.endswith("crdkeeper.dev") for each in versions)

    async def shown(*options: str) -> list[str]:
        done = await shell.run("status", "--builtins", "secrets", "--no-headers", *options)
        assert done.exit_code == 0, done.stderr
        return done.stdout.split()

    assert (await shown())[4:] == ["unknown", "NoPolicy", "-"]
    await create_secrets(encrypting, 3)
    await create_policy(encrypting, "shown", "secrets", encryptionKey="key1")
    assert (await shown())[4:] == ["yes", "NotKnown", "shown"]
    await encrypting.opt_in("", "secrets")
    operator = Operator(encrypting_plane)
    try:
        operator.start()
        await until(encrypting, "shown", is_ready("Current"), "current")
    finally:
        operator.close()
    name, version, _, _, due, reason, policy = await shown()
    assert (name, version, due, reason, policy) == ("secrets", "v1", "no", "Migrated", "shown")
    none = await shell.run("status", "--builtins", "secrets", "--outdated")
    assert (none.stdout, none.stderr) == ("", "No built-in resources are known to be due.\n")
    # Without an operator, too, what changes is due.
    await encrypting.merge(f"{POLICIES}/shown", {"spec": {"encryptionKey": "bumped"}})
    assert (await shown("--outdated"))[4:] == ["yes", "Changed", "shown"]


async def test_what_is_not_built_in_is_not_found(
    encrypting: Admin, encrypting_plane: ControlPlane, shells: Callable[[Path], CommandLine]
) -> None:
    shell = shells(encrypting_plane.kubeconfig)
    done = await shell.run("status", "--builtins", "storagemigrations.crdkeeper.dev")
    assert done.exit_code == 1
    assert "no built-in resource storagemigrations.crdkeeper.dev" in done.stderr
    done = await shell.run("status", "--builtins", "secret")
    assert done.stderr == "Error: no built-in resource secret that can be migrated; did you mean secrets?\n"
