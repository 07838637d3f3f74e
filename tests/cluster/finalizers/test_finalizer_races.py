"""One release on a real API server, while others write, recreate or release the same object."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from crdkeeper.cluster.resources.finalizers import Freeing, release_finalizer
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.finalizers.holding import Held, held
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    create_held,
    finalizers_of,
    held_objects,
    let_release,
    write,
)
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind
from tests.cluster.harness.admission import allow_updates, deny_updates


@pytest.fixture
async def account(admin: Admin) -> AsyncIterator[Client]:
    """A client with the operator's account."""
    kubeconfig = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    async with Client(Connection(kubeconfig)) as client:
        yield client


@pytest.fixture
async def kind(admin: Admin, group: str) -> AsyncIterator[CustomKind]:
    """A kind with an object that two finalizers hold in deletion."""
    made = CustomKind(group)
    async with held_objects(admin, made):
        await create_held(admin, made, ["one"], [NAMED, OTHER])
        yield made


async def seen(admin: Admin, kind: CustomKind) -> Held:
    """The object as a look shows it."""
    found = held((await admin.get(kind.path("one")))["metadata"], admin.client.now())
    assert found is not None
    return found


async def attempt(client: Client, kind: CustomKind, found: Held, name: str = NAMED) -> Freeing:
    return (await release_finalizer(client, endpoint(kind), found, name)).freeing


def endpoint(kind: CustomKind) -> Endpoint:
    return Endpoint(kind.group, kind.served_version, kind.plural)


async def test_nothing_else_changes(admin: Admin, account: Client, kind: CustomKind) -> None:
    await let_release(admin, kind.group)
    before = await admin.get(kind.path("one"))
    assert await attempt(account, kind, await seen(admin, kind)) is Freeing.RELEASED

    def others(found: dict[str, Any]) -> dict[str, Any]:
        ours = {"finalizers", "resourceVersion", "managedFields"}
        metadata = {key: each for key, each in found["metadata"].items() if key not in ours}
        managers = [(each["manager"], each["time"]) for each in found["metadata"]["managedFields"]]
        return {**found, "metadata": metadata, "managers": managers}

    after = await admin.get(kind.path("one"))
    assert after["metadata"]["finalizers"] == [OTHER]
    assert others(after) == others(before)
    assert await attempt(account, kind, await seen(admin, kind), OTHER) is Freeing.RELEASED
    assert await finalizers_of(admin, kind) == {}


async def test_somebody_writes_in_between(admin: Admin, account: Client, kind: CustomKind) -> None:
    await let_release(admin, kind.group)
    found = await seen(admin, kind)
    await write(admin, kind, "one", "cleaner", "1")
    assert await attempt(account, kind, found) is Freeing.CHANGED
    assert await finalizers_of(admin, kind) == {"one": [NAMED, OTHER]}


async def test_its_manager_is_faster(admin: Admin, account: Client, kind: CustomKind) -> None:
    """Where the finalizer was is now another one."""
    await let_release(admin, kind.group)
    found = await seen(admin, kind)
    await admin.merge(kind.path("one"), {"metadata": {"finalizers": [OTHER]}})
    assert await attempt(account, kind, found) is Freeing.CHANGED
    assert await finalizers_of(admin, kind) == {"one": [OTHER]}


async def test_another_object_of_the_same_name(admin: Admin, account: Client, kind: CustomKind) -> None:
    await let_release(admin, kind.group)
    found = await seen(admin, kind)
    await admin.merge(kind.path("one"), {"metadata": {"finalizers": []}})
    assert await attempt(account, kind, found) is Freeing.GONE
    again = kind.instance("one")
    again["metadata"]["finalizers"] = [NAMED, OTHER]
    await admin.create_instances(kind, [again])
    assert await attempt(account, kind, found) is Freeing.GONE
    assert await finalizers_of(admin, kind) == {"one": [NAMED, OTHER]}


async def test_a_refusal_is_no_race(admin: Admin, account: Client, kind: CustomKind) -> None:
    await let_release(admin, kind.group)
    await deny_updates(admin, kind, "false", example="one")
    found = await release_finalizer(account, endpoint(kind), await seen(admin, kind), NAMED)
    assert found.freeing is Freeing.REFUSED
    assert "this object is protected" in found.message
    await allow_updates(admin, kind, example="one")


async def test_without_the_right(admin: Admin, account: Client, kind: CustomKind) -> None:
    found = await release_finalizer(account, endpoint(kind), await seen(admin, kind), NAMED)
    assert found.freeing is Freeing.FORBIDDEN
    assert "cannot patch resource" in found.message
