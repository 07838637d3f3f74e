"""Composites by the rights of a ServiceAccount: what it needs, what is said without it, and its end."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cluster.composition.authoring import condition
from tests.cluster.composition.composing import (
    CONFIG_MAPS,
    FINALIZER,
    Composing,
    all_of,
    config_map,
    rights_on,
)
from tests.cluster.composition.delegating import RBAC, WRITE, Delegate, tokens_of
from tests.cluster.harness import Operator, eventually

Json = Any
pytestmark = pytest.mark.composes()


@pytest.fixture
async def delegate(composing: Composing, composer: Operator, group: str) -> AsyncIterator[Delegate]:
    """The account of composites whose objects the composer itself may not even read."""
    account = Delegate(composing.author, f"builder-{group.replace('.', '-')}")
    yield account
    async with tokens_of(composing.author, account.name):
        await account.create()
        await account.may(configmaps=WRITE)
        await composing.clean_up()
    await account.clean_up()
    # Tokens are JSON that is encoded, and begins alike.
    assert "eyJ" not in composer.log.read_text()


async def test_what_is_missing_is_told_step_by_step(composing: Composing, delegate: Delegate) -> None:
    account = delegate.name
    settings = config_map("settings", engine="${composite.spec.engine}")
    await composing.compose(settings, serviceAccountName=account)
    await composing.create("orders")
    of = f"resources: [serviceaccounts/token], resourceNames: [{account}], verbs: [create]"
    rule = f'{{apiGroups: [""], {of}}}'
    await composing.says("orders", "Synced", "False", "RightMissing", rule, "aggregate-to-composer")
    async with tokens_of(composing.author, account):
        await composing.says("orders", "Synced", "False", "ServiceAccountMissing", account, "default")
        await delegate.create()
        rule = '{apiGroups: [""], resources: [configmaps], verbs: [get, list, create, patch, delete]}'
        subject = f"{{kind: ServiceAccount, name: {account}, namespace: default}}"
        role = "Create a Role in the namespace default with this rule"
        said = await composing.says("orders", "Synced", "False", "RightMissing", role, rule, subject)
        assert FINALIZER not in said["metadata"].get("finalizers", ())
        await delegate.may(configmaps=WRITE)
        await composing.ready("orders")
        await composing.has("orders-settings", engine="MySQL")
        # Nobody but the account may watch or read them: drift is found by looking.
        path = f"{CONFIG_MAPS}/orders-settings"
        await composing.patch(path, {"data": {"engine": "theirs"}})
        await composing.has("orders-settings", engine="MySQL")
        await composing.says("orders", "Synced", "True", "ReconcileSuccess")
        await composing.delete("orders")
        await composing.author.gone(composing.path("orders"))
        await composing.gone("orders-settings")


async def ready_without_account(composing: Composing, delegate: Delegate) -> None:
    """A composite, orders, that was ready, and changed after its account had been deleted."""
    await delegate.create()
    await delegate.may(configmaps=WRITE)
    await composing.compose(
        config_map("settings", engine="${composite.spec.engine}"), serviceAccountName=delegate.name
    )
    await composing.create("orders")
    await composing.ready("orders")
    await delegate.delete()
    await composing.create("orders", engine="Postgres")
    # API servers accept a token for some seconds more.
    await composing.says("orders", "Synced", "False", "ServiceAccountMissing")


async def test_an_account_that_is_deleted_and_created_again(composing: Composing, delegate: Delegate) -> None:
    async with tokens_of(composing.author, delegate.name):
        await ready_without_account(composing, delegate)
        held = await composing.author.get(f"{CONFIG_MAPS}/orders-settings")
        assert held is not None
        await delegate.create()
        await composing.says("orders", "Synced", "True", "ReconcileSuccess")
        await composing.has("orders-settings", engine="Postgres")
        found = await composing.author.get(f"{CONFIG_MAPS}/orders-settings")
        assert found["metadata"]["uid"] == held["metadata"]["uid"]


async def test_a_right_that_one_account_lacks_is_not_lacking_for_another_one(
    composing: Composing, delegate: Delegate
) -> None:
    weak = Delegate(composing.author, f"weak-{delegate.name}")
    async with tokens_of(composing.author, delegate.name, weak.name):
        for each in (delegate, weak):
            await each.create()
        await delegate.may(configmaps=WRITE)
        await composing.compose(
            config_map("settings", of="a"), which="strong", serviceAccountName=delegate.name
        )
        await composing.compose(config_map("settings", of="b"), which="weak", serviceAccountName=weak.name)

        async def choose(name: str, which: str) -> None:
            reference = {"compositionRef": {"name": composing.designer.name(which)}}
            await composing.create(name, crdkeeper=reference)

        for i in range(3):
            await choose(f"weak{i}", "weak")
            await choose(f"strong{i}", "strong")
        for i in range(3):
            await composing.says(f"weak{i}", "Synced", "False", "RightMissing", f"name: {weak.name}")
            await composing.ready(f"strong{i}")
            assert await composing.data(f"weak{i}-settings") is None
        # The same object, by another account.
        await choose("weak0", "strong")
        await composing.ready("weak0")
        await composing.has("weak0-settings", of="a")
        await choose("strong0", "weak")
        await composing.says("strong0", "Synced", "False", "RightMissing", f"name: {weak.name}")
        await composing.has("strong0-settings", of="a")
        await choose("strong0", "strong")
        await composing.ready("strong0")
    await weak.clean_up()


async def test_objects_of_an_account_that_is_gone_are_deleted_by_the_composer(
    composing: Composing, delegate: Delegate
) -> None:
    async with tokens_of(composing.author, delegate.name):
        await ready_without_account(composing, delegate)
        await composing.delete("orders")
        rule = '{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}'
        await composing.says("orders", "Synced", "False", "RightMissing", rule, "There is no ServiceAccount")
        assert await composing.data("orders-settings") is not None
        async with rights_on(composing.author, f"composer-{delegate.name}", all_of("", "configmaps")):
            await composing.author.gone(composing.path("orders"))
            await composing.gone("orders-settings")


@pytest.mark.composes(defined=False)
async def test_composites_in_no_namespace_have_a_fixed_account(
    composing: Composing, delegate: Delegate, group: str
) -> None:
    author, account = composing.author, delegate.name
    await composing.define(scope="Cluster")
    settings = config_map("settings", of="${composite.spec.engine}")
    settings["template"]["metadata"]["namespace"] = "default"
    await composing.designer.put("main", settings, serviceAccountName=account)
    said = "spec.serviceAccountName: composites are cluster-scoped"
    await composing.designer.says("main", "Valid", "False", "Invalid", said, judged="Failed")
    named: Json = {"serviceAccountName": account, "serviceAccountNamespace": "default"}
    await composing.compose(settings, **named)
    path = f"/apis/{group}/v1/{composing.definition.plural}/orders"
    async with tokens_of(author, account):
        await delegate.create()
        await author.put(path, {**composing.definition.composite("orders"), "spec": {"engine": "MySQL"}})

        async def lacks() -> bool:
            status, reason, message = condition(await author.get(path), "Synced")
            return (status, reason) == (
                "False",
                "RightMissing",
            ) and "Create a ClusterRole with this" in message

        await eventually(lacks)
        binding = f"{RBAC}/clusterrolebindings/{account}"
        value = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        }
        await author.put(binding, value)
        await composing.has("orders-settings", of="MySQL")
        await author.delete(path)
        await author.gone(path)
        await composing.gone("orders-settings")
        await author.delete(binding)


async def test_a_namespace_is_deleted_with_its_account(
    composing: Composing, delegate: Delegate, group: str
) -> None:
    author, space = composing.author, f"tenant-{group.replace('.', '-')}"
    account = Delegate(author, delegate.name, space)
    namespace = f"/api/v1/namespaces/{space}"
    await author.put(namespace, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    async with tokens_of(author, account.name):
        await account.create()
        await account.may(configmaps=WRITE)
        await composing.compose(
            config_map("a"), config_map("b", of="${a.metadata.name}"), serviceAccountName=account.name
        )
        path = f"/apis/{group}/v1/namespaces/{space}/{composing.definition.plural}/orders"
        await author.put(path, {**composing.definition.composite("orders"), "spec": {"engine": "MySQL"}})

        async def is_made() -> bool:
            found = await author.get(f"{namespace}/configmaps/orders-b")
            return found is not None and FINALIZER in (await author.get(path))["metadata"]["finalizers"]

        await eventually(is_made)
        await author.delete(namespace)
        await author.gone(namespace)
