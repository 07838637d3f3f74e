"""What a tenant tries by a composite whose ServiceAccount may do less than the composer."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.composing import CONFIG_MAPS, FINALIZER, Composing, config_map, secret
from tests.cluster.composition.delegating import WRITE, Delegate, tokens_of

Json = Any
SECRETS: Final = "/api/v1/namespaces/default/secrets"
HIDDEN: Final = "not for tenants"
pytestmark = pytest.mark.composes("configmaps", "secrets")


@pytest.fixture
async def tenant(composing: Composing, group: str) -> AsyncIterator[Delegate]:
    """An account without rights, which the composer may be."""
    account = Delegate(composing.author, f"tenant-{group.replace('.', '-')}")
    async with tokens_of(composing.author, account.name):
        await account.create()
        yield account
        await account.may(configmaps=WRITE, secrets=WRITE)
        await composing.clean_up()
    await account.clean_up()


def _unchanged(found: Json) -> Json:
    metadata = found["metadata"]
    keys = ("uid", "resourceVersion", "labels", "annotations", "ownerReferences", "deletionTimestamp")
    return found.get("data"), {key: metadata.get(key) for key in keys}


async def test_nothing_is_created_or_adopted(composing: Composing, tenant: Delegate) -> None:
    author, theirs = composing.author, f"{SECRETS}/orders"
    free = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders"}, "stringData": {"a": HIDDEN}}
    await author.put(theirs, free)
    before = await author.get(theirs)
    await tenant.may(configmaps=WRITE)
    # The composer itself could do all of this.
    shown = config_map("shown", of="${password.metadata.uid}")
    status = {"address": "${password.metadata.uid}"}
    await composing.compose(secret(conflicts="Force"), shown, serviceAccountName=tenant.name, status=status)
    adopt = {"annotations": {"crdkeeper.dev/adopt": "password"}}
    for name in ("orders", "bills"):
        await composing.create(name, metadata=adopt)
        said = await composing.says(name, "Synced", "False", "RightMissing", "secrets", tenant.name)
        assert FINALIZER not in said["metadata"].get("finalizers", ())
        assert "address" not in said["status"]
    assert _unchanged(await author.get(theirs)) == _unchanged(before)
    assert await author.get(f"{SECRETS}/bills") is None
    # To see it is not enough.
    await tenant.may(configmaps=WRITE, secrets=("get", "list"))
    for name in ("orders", "bills"):
        await composing.create(name, metadata=adopt, zone="a")
        await composing.says(name, "Synced", "False", "RightMissing", "cannot patch", tenant.name)
    assert _unchanged(await author.get(theirs)) == _unchanged(before)
    assert await author.get(f"{SECRETS}/bills") is None
    # To change it, but not to create one: adopted, as the account itself could.
    await tenant.may(configmaps=WRITE, secrets=("get", "list", "patch"))
    await composing.create("bills", metadata=adopt, zone="b")
    await composing.says("bills", "Synced", "False", "RightMissing", "cannot create", tenant.name)
    assert await author.get(f"{SECRETS}/bills") is None
    await author.delete(theirs)


async def test_nothing_is_read_in_other_namespaces(composing: Composing, tenant: Delegate) -> None:
    await tenant.may(configmaps=WRITE)
    name = composing.designer.name("zones")
    for space in ("default", "kube-system"):
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"of": space}}
        await composing.author.put(f"/api/v1/namespaces/{space}/configmaps/{name}", value)
    external: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": name}
    external["namespace"] = "${composite.spec.zone}"
    await composing.compose(
        {"name": "zones", "externalRef": external},
        config_map("copy", of="${zones.data.of}"),
        serviceAccountName=tenant.name,
        status={"address": "${zones.data.of}"},
    )
    await composing.create("mine", zone="default")
    await composing.ready("mine")
    await composing.has("mine-copy", of="default")
    await composing.create("theirs", zone="kube-system")
    rule = '{apiGroups: [""], resources: [configmaps], verbs: [get]}'
    said = await composing.says(
        "theirs", "Synced", "False", "RightMissing", "Role in the namespace kube-system", rule, tenant.name
    )
    assert "address" not in said["status"]
    assert await composing.data("theirs-copy") is None
    # It is read once, and not from the objects of another composite, nor because the composer may.
    await composing.create("mine", zone="kube-system")
    await composing.says("mine", "Synced", "False", "RightMissing", rule)
    assert await composing.data("mine-copy") == {"of": "default"}
    for space in ("default", "kube-system"):
        await composing.author.delete(f"/api/v1/namespaces/{space}/configmaps/{name}")


async def test_nothing_is_removed_or_created_again(composing: Composing, tenant: Delegate) -> None:
    author = composing.author
    may = ("get", "list", "create", "patch")
    await tenant.may(configmaps=may, secrets=may)
    account: Json = {"serviceAccountName": tenant.name}
    await composing.compose(secret(recreate=True), config_map("a"), config_map("b"), **account)
    await composing.create("orders")
    await composing.ready("orders")
    made = [f"{CONFIG_MAPS}/orders-a", f"{CONFIG_MAPS}/orders-b", f"{SECRETS}/orders"]
    before = [(await author.get(each))["metadata"]["uid"] for each in made]

    async def all_stay() -> None:
        found = [await author.get(each) for each in made]
        assert [each["metadata"]["uid"] for each in found] == before
        assert not any(each["metadata"].get("deletionTimestamp") for each in found)

    await composing.create("orders", engine="Postgres")
    await composing.says("orders", "Synced", "False", "RightMissing", "secrets", "cannot delete", tenant.name)
    await all_stay()
    await composing.create("orders")
    await composing.ready("orders")
    await composing.compose(secret(recreate=True), config_map("a"), number=2, **account)
    await composing.says(
        "orders", "Synced", "False", "RightMissing", "configmaps", "cannot delete", tenant.name
    )
    await all_stay()
    # A tenant says by the composite, and by its status, that there is no revision, or another one.
    forged: Json = {"status": {"crdkeeper": {"revision": "another-1"}}}
    path = f"{composing.path('orders')}/status?fieldManager=tenant"
    await author.client.request("PATCH", path, forged, content_type=MERGE_PATCH)
    await composing.create("orders", crdkeeper={"compositionRef": {"name": "another"}})
    await composing.says("orders", "Synced", "False", "NoRevision")
    await composing.delete("orders")
    await composing.says("orders", "Synced", "False", "RightMissing", "cannot delete", tenant.name)
    await all_stay()


async def test_a_composite_does_not_name_its_account(composing: Composing, tenant: Delegate) -> None:
    strong = Delegate(composing.author, f"strong-{tenant.name}")
    async with tokens_of(composing.author, strong.name):
        await strong.create()
        await strong.may(configmaps=WRITE)
        await tenant.may()
        await composing.compose(config_map("settings"), serviceAccountName=tenant.name)
        annotations = dict.fromkeys(("crdkeeper.dev/account", "serviceAccountName"), strong.name)
        await composing.create("orders", metadata={"annotations": annotations})
        await composing.says("orders", "Synced", "False", "RightMissing", f"name: {tenant.name}")
        assert await composing.data("orders-settings") is None
    await strong.clean_up()
