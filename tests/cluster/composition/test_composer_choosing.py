"""By which CompositionRevision composites run when somebody deletes one, or drops what they have chosen."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, all_of, config_map, rights_on

Json = Any


@pytest.fixture
async def composing(author: Author, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API whose objects are ConfigMaps."""
    async with rights_on(author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        composing = Composing(author, group)
        await composing.define()
        yield composing
        await composing.clean_up()


async def test_nothing_goes_when_the_newest_revision_is_deleted_by_hand(composing: Composing) -> None:
    await composing.compose(config_map("settings", version="1"))
    await composing.compose(config_map("settings", version="2"), config_map("data"), number=2)
    await composing.create("orders")
    await composing.ready("orders")
    before = await composing.author.get(f"{CONFIG_MAPS}/orders-data")
    name = composing.designer.name("main")
    await composing.author.delete(f"{REVISIONS}/{name}-2")
    # The Composition makes another one of the same content.
    await composing.until("orders", lambda found: used(found) == f"{name}-3")
    now = await composing.author.get(f"{CONFIG_MAPS}/orders-data")
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert await composing.data("orders-settings") == {"version": "2"}

    # While the Composition is not valid, nobody makes one: the composite waits until somebody decides.
    await composing.designer.put("main", config_map("settings", version="${composite.spec.wrong}"))
    await composing.designer.says("main", "Valid", "False", "Invalid", judged="Failed")
    await composing.author.delete(f"{REVISIONS}/{name}-3")
    await composing.says("orders", "Synced", "False", "NoRevision", f"{name}-3", f"go back to {name}-1")
    now = await composing.author.get(f"{CONFIG_MAPS}/orders-data")
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    manual = {"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": f"{name}-1"}}
    await composing.create("orders", crdkeeper=manual)
    await composing.has("orders-settings", version="1")
    await composing.gone("orders-data")


async def test_manual_stays_when_a_client_replaces_the_composite(composing: Composing) -> None:
    await composing.compose(config_map("settings", version="1"), config_map("data"))
    await composing.create("orders")
    await composing.ready("orders")
    name = composing.designer.name("main")
    await composing.create("orders", crdkeeper={"compositionUpdatePolicy": "Manual"})
    await composing.until("orders", lambda found: pinned(found) == f"{name}-1")
    await composing.compose(config_map("settings", version="2"), number=2)
    before = await composing.author.get(f"{CONFIG_MAPS}/orders-data")
    # As `kubectl replace` does with what is in a repository.
    found = await composing.ready("orders")
    del found["spec"]["crdkeeper"]["compositionRevisionRef"]
    await composing.author.client.request("PUT", composing.path("orders"), found)
    await composing.until("orders", lambda found: bool(pinned(found)))
    found = await composing.ready("orders")
    assert (pinned(found), used(found)) == (f"{name}-1", f"{name}-1")
    now = await composing.author.get(f"{CONFIG_MAPS}/orders-data")
    assert now["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_status_that_somebody_else_writes_is_put_back(composing: Composing) -> None:
    await composing.compose(config_map("settings", ReadyWhen=["${has(settings.data.done)}"]))
    await composing.create("orders")
    await composing.says("orders", "Ready", "False", "Creating")
    for _ in range(2):
        found = await composing.author.get(composing.path("orders"))
        for each in found["status"]["conditions"]:
            each |= {"status": "True", "reason": "Available"}
        path = f"{composing.path('orders')}/status?fieldManager=tenant"
        forged = {"status": {"conditions": found["status"]["conditions"]}}
        await composing.author.client.request("PATCH", path, forged, content_type=MERGE_PATCH)
        await composing.says("orders", "Ready", "False", "Creating")


def pinned(found: Json) -> str:
    """The revision that a composite names."""
    given = found["spec"].get("crdkeeper") or {}
    return str((given.get("compositionRevisionRef") or {}).get("name", ""))


def used(found: Json) -> str:
    """The revision in a composite's status."""
    state = (found.get("status") or {}).get("crdkeeper") or {}
    return str(state.get("revision"))
