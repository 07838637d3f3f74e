"""`crdkeeper compose trace` and `preview`: with a ServiceAccount, with other contexts, and without rights."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.cluster.resources.access import Right
from crdkeeper.operations.rights import DEFINITIONS
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map
from tests.cluster.composition.delegating import WRITE, Delegate, tokens_of
from tests.cluster.harness import Admin
from tests.cluster.harness.accounts import limited, rights_to_add, unnamed
from tests.controlplane.cluster import Cluster

Json = Any
pytestmark = pytest.mark.composes()


@pytest.fixture
async def delegate(composing: Composing, group: str) -> AsyncIterator[Delegate]:
    """The account of composites whose objects the composer itself may not even read."""
    account = Delegate(composing.author, f"builder-{group.replace('.', '-')}")
    async with tokens_of(composing.author, account.name):
        await account.create()
        await account.may(configmaps=WRITE)
        yield account
        await composing.clean_up()
    await account.clean_up()


@pytest.fixture
def placed(
    plane: Cluster, shells: Callable[[Path], CommandLine], tmp_path: Path
) -> Callable[[str], CommandLine]:
    """The admin's command line, with a context in that namespace."""

    def shell(namespace: str) -> CommandLine:
        config = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))
        for each in config["contexts"]:
            each["context"]["namespace"] = namespace
        path = tmp_path / f"kubeconfig-{namespace}"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return shells(path)

    return shell


async def test_a_composite_with_an_account_is_traced_and_previewed(
    composing: Composing, delegate: Delegate, shell: CommandLine, tmp_path: Path
) -> None:
    account = delegate.name
    settings = config_map("settings", engine="${composite.spec.engine}")
    await composing.compose(settings, serviceAccountName=account)
    await composing.create("orders")
    await composing.ready("orders")
    kind = composing.definition.name

    done = await shell.run("compose", "trace", kind, "orders", "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    (resource,) = json.loads(done.stdout)["composite"]["resources"]
    assert [each["state"] for each in resource["objects"]] == ["Ready"]

    changed = config_map("settings", engine="${composite.spec.engine}", version="2")
    document = composing.designer.document("main", changed, config_map("more"), serviceAccountName=account)
    (tmp_path / "composition.json").write_text(json.dumps(document))
    before = await composing.author.get(f"{CONFIG_MAPS}/orders-settings")
    done = await shell.run("compose", "preview", "-f", str(tmp_path / "composition.json"), "-o", "json")
    assert (done.exit_code, done.stderr) == (1, "")
    (composite,) = json.loads(done.stdout)["composites"]
    found = {each["resource"]: each["change"] for each in composite["objects"]}
    assert found == {"settings": "Changed", "more": "Created"}
    assert await composing.author.get(f"{CONFIG_MAPS}/orders-settings") == before

    # What was said is what the composer then does as that account.
    await composing.compose(changed, config_map("more"), number=2, serviceAccountName=account)
    await composing.has("orders-settings", engine="MySQL", version="2")
    # In no order. The condition Ready may still be that of the former revision.
    await composing.has("orders-more")
    done = await shell.run("compose", "preview", "-f", str(tmp_path / "composition.json"))
    assert (done.exit_code, done.stderr) == (0, "")


async def test_the_namespace_is_that_of_the_context(
    composing: Composing, delegate: Delegate, placed: Callable[[str], CommandLine], tmp_path: Path
) -> None:
    settings = config_map("settings")
    await composing.compose(settings, serviceAccountName=delegate.name)
    await composing.create("orders")
    await composing.ready("orders")
    kind = composing.definition.name
    elsewhere, at_home = placed("kube-public"), placed("default")
    done = await elsewhere.run("compose", "trace", kind, "orders")
    assert (done.exit_code, f"{composing.definition.kind} kube-public/orders" in done.stderr) == (2, True)
    done = await elsewhere.run("compose", "trace", kind, "orders", "-n", "default")
    assert (done.exit_code, done.stderr) == (0, "")
    done = await at_home.run("compose", "trace", kind, "orders")
    assert (done.exit_code, done.stderr) == (0, "")

    document = composing.designer.document("main", settings, serviceAccountName=delegate.name)
    (tmp_path / "composition.json").write_text(json.dumps(document))
    preview = ("compose", "preview", "-f", str(tmp_path / "composition.json"), "--composite")
    done = await elsewhere.run(*preview, "orders")
    assert (done.exit_code, "kube-public/orders" in done.stdout + done.stderr) == (2, True), done
    assert (await elsewhere.run(*preview, "default/orders")).exit_code == 0
    assert (await at_home.run(*preview, "orders")).exit_code == 0


@pytest.mark.composes("configmaps")
async def test_a_preview_names_each_missing_right(
    admin: Admin, composing: Composing, shells: Callable[[Path], CommandLine], tmp_path: Path
) -> None:
    settings = config_map("settings")
    await composing.compose(settings)
    await composing.create("orders")
    await composing.ready("orders")
    of, which = composing.definition, composing.designer.name("main")
    to_get, to_list = Right("get", of.group, of.plural), Right("list", of.group, of.plural)
    begin = [
        Right("get", *DEFINITIONS, name=of.name),
        Right("get", "crdkeeper.dev", "compositeresourcedefinitions", name=of.name),
        Right("get", "crdkeeper.dev", "compositions", name=which),
        Right("list", "crdkeeper.dev", "compositionrevisions"),
    ]
    rights = [*begin, to_get, to_list, *(Right(each, "", "configmaps") for each in WRITE)]
    (tmp_path / "composition.json").write_text(json.dumps(composing.designer.document("main", settings)))
    every = ("compose", "preview", "-f", str(tmp_path / "composition.json"))
    one = (*every, "--composite", "default/orders")
    without = {**dict.fromkeys(begin, (every, one)), to_get: (one,), to_list: (every,)}
    async with limited(admin, f"preview-{of.group.partition('.')[0]}") as account:
        shell = shells(account.kubeconfig)
        for missing, commands in without.items():
            await account.grant(rights, but=[missing])
            for command in commands:
                done = await shell.run(*command)
                assert done.exit_code == 2, (missing, done)
                assert rights_to_add(done.stderr) == unnamed([missing]), command
        await account.grant(rights)
        for command in (every, one):
            done = await shell.run(*command)
            assert (done.exit_code, done.stderr) == (0, ""), done
