"""What the API server does to requests of composing: refuses, loses or delays them, or others are faster."""

import threading
from typing import Any

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map
from tests.cluster.composition.faultycomposing import FAULTS, REQUESTS, RESOURCES, Lives, live
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

Json = Any


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind the proxy."""
    return proxied_author


def _seen(found: Json) -> Json:
    metadata = found["metadata"]
    return found["data"], metadata.get("labels"), metadata["resourceVersion"], metadata["uid"]


@pytest.mark.parametrize("conflicts", ["Refuse", "Force"])
async def test_an_object_that_somebody_creates_first_is_not_touched(
    composing: Composing, proxied: Operator, proxy: FaultProxy, conflicts: str
) -> None:
    author, go_on = composing.author, threading.Event()
    # Also what the composer sends again because it has no answer.
    fault = Fault("PATCH", "/configmaps/orders-a[?]", held=go_on)
    proxy.faults.append(fault)
    await composing.compose(config_map("a", Conflicts=conflicts, of="us"))
    await composing.create("orders")

    async def is_sent() -> bool:
        return fault.met > 0

    try:
        await eventually(is_sent)
        theirs = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "orders-a"},
            "data": {"by": "them"},
        }
        await author.put(f"{CONFIG_MAPS}/orders-a", theirs)
        before = await author.get(f"{CONFIG_MAPS}/orders-a")
    finally:
        go_on.set()
    await composing.says("orders", "Synced", "False", "NotOurs", "orders-a")
    assert _seen(await author.get(f"{CONFIG_MAPS}/orders-a")) == _seen(before)
    await composing.delete("orders")
    await author.gone(composing.path("orders"))
    assert _seen(await author.get(f"{CONFIG_MAPS}/orders-a")) == _seen(before)
    await author.delete(f"{CONFIG_MAPS}/orders-a")


async def test_what_happens_to_composites_while_their_objects_are_applied_is_seen_to(
    composing: Composing, proxied: Operator, proxy: FaultProxy
) -> None:
    author, go_on = composing.author, threading.Event()
    names = "changed", "paused", "deleted"
    fault = Fault("PATCH", f"/configmaps/({'|'.join(names)})-a[?]", held=go_on, times=len(names))
    proxy.faults.append(fault)
    await composing.compose(config_map("a", engine="${composite.spec.engine}"))
    for each in names:
        await composing.create(each)

    async def are_sent() -> bool:
        return fault.met == len(names)

    def pause(value: str | None) -> Json:
        return {"metadata": {"annotations": {"crdkeeper.dev/paused": value}}}

    try:
        await eventually(are_sent)
        await composing.patch(composing.path("changed"), {"spec": {"engine": "Postgres"}})
        await composing.patch(composing.path("paused"), pause("true"))
        await composing.delete("deleted")
    finally:
        go_on.set()
    await composing.ready("changed")
    assert await composing.data("changed-a") == {"engine": "Postgres"}
    await composing.says("paused", "Synced", "False", "ReconcilePaused")
    await author.gone(composing.path("deleted"))
    await composing.gone("deleted-a")
    await composing.patch(composing.path("paused"), pause(None))
    await composing.ready("paused")


@pytest.mark.timeout(300)
async def test_any_request_for_a_composite_may_fail(
    composing: Composing, proxied: Operator, proxy: FaultProxy
) -> None:
    await composing.compose(*RESOURCES)
    pid, log = proxied.pid, proxied.log_size()
    names = [f"{request}.{fault}" for request in REQUESTS for fault in FAULTS]
    assert await live(Lives(composing, proxy, [*names, "none"])) == []
    assert proxied.pid == pid and proxied.running
    assert "Traceback" not in proxied.log_since(log)
