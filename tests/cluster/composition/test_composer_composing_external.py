"""What externalRefs read is watched by name."""

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import FaultProxy

ZONES = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones", "namespace": "default"}


WATCH = r"/namespaces/default/configmaps[?].*fieldSelector=metadata\.name(=|%3D)zones"


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose watches can be seen."""
    return proxied_author


async def test_what_others_change_is_followed_at_once(composing: Composing, proxy: FaultProxy) -> None:
    author = composing.author
    await composing.compose(
        {"name": "zones", "externalRef": ZONES}, config_map("a", zone="${zones.data.first}")
    )
    await composing.create("orders")
    await composing.says("orders", "Ready", "False", "Creating", "zones")
    zones = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zones"}}

    async def watched() -> bool:
        return proxy.has_watch(WATCH)

    await eventually(watched)
    for each in ("north", "south", "east", "west"):
        await author.put(f"{CONFIG_MAPS}/zones", {**zones, "data": {"first": each}})
        await composing.has("orders-a", zone=each)
    await author.delete(f"{CONFIG_MAPS}/zones")
    await composing.says("orders", "Synced", "True", "ReconcileSuccess")
    await composing.until("orders", lambda found: "zones" in str(found["status"]["conditions"]))
