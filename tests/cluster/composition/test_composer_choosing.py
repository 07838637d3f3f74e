"""By which CompositionRevision composites run when somebody deletes one, or drops what they have chosen."""

from typing import Any

from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.transport.client import MERGE_PATCH
from crdkeeper.core.conversion.nesting import dumps
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, pinned, used
from tests.cluster.harness import eventually

Json = Any


async def test_nothing_goes_when_the_newest_revision_is_deleted_by_hand(composing: Composing) -> None:
    await composing.compose(config_map("settings", version="1"))
    await composing.compose(config_map("settings", version="2"), config_map("data"), number=2)
    await composing.create("orders")
    await composing.runs_by("orders", 2)
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
    await composing.ready("orders")

    async def replaced() -> bool:
        found = await composing.author.get(composing.path("orders"))
        del found["spec"]["crdkeeper"]["compositionRevisionRef"]
        answer = await composing.author.client.send("PUT", composing.path("orders"), content=dumps(found))
        # The composer may write the status in between.
        assert answer.code in (200, 409), answer.content
        return answer.code == 200

    await eventually(replaced)
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
