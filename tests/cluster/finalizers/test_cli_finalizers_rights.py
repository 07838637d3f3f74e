"""`crdkeeper finalizers` with just the documented rights, and without each of them."""

from collections.abc import Callable
from pathlib import Path

from tests.cluster.cli.commandline import CommandLine
from tests.cluster.finalizers.scene import NAMED, create_held, finalizers_of, held_objects
from tests.cluster.harness import Admin, CustomKind, eventually
from tests.cluster.harness.accounts import documented_rights, limited, rights_to_add, unnamed


async def test_each_missing_right_is_named_before_anything_is_released(
    admin: Admin, group: str, shells: Callable[[Path], CommandLine]
) -> None:
    kind = CustomKind(group)
    names = {"databases.example.com": kind.name, "example.com": kind.group, "databases": kind.plural}
    rights = documented_rights("finalizers.md", "crdkeeper finalizers --release", names)
    looking = [each for each in rights if each.verb == "get" and each.group == "apiextensions.k8s.io"]
    listing = [each for each in rights if each.verb == "list"]
    others = [each for each in rights if each not in looking]
    release = ("finalizers", kind.name, "--release", NAMED, "--after", "1s", "--yes")
    async with (
        held_objects(admin, kind),
        limited(admin, f"finalizers-{group.partition('.')[0]}") as account,
    ):
        await create_held(admin, kind, ["one"])
        shell = shells(account.kubeconfig)
        for missing in (looking, others):
            await account.grant(rights, but=missing)
            done = await shell.run(*release)
            assert (done.exit_code, done.stdout) == (1, ""), missing
            assert rights_to_add(done.stderr) == unnamed(missing)
            assert await finalizers_of(admin, kind) == {"one": [NAMED]}

        await account.grant(rights, but=[each for each in others if each not in listing])
        listed = await shell.run("finalizers", kind.name, "--no-headers")
        assert (listed.exit_code, listed.stdout.split()[:2]) == (0, ["default/one", NAMED])
        assert listed.stderr.startswith(
            "Policies are not shown: definitionpolicies.crdkeeper.dev is forbidden"
        )

        await account.grant(rights)

        async def released() -> bool:
            done = await shell.run(*release)
            assert "not permitted" not in done.stderr
            return done.exit_code == 0

        await eventually(released, otherwise=lambda: "it is not released")
        assert await finalizers_of(admin, kind) == {}
