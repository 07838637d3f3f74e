"""Requests that all composites need, which fail or hang: discovery, schemas, revisions, lists, watches."""

import asyncio
import os
import threading

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing
from tests.cluster.composition.faultycomposing import FAULTS, REQUESTS, RESOURCES, Lives
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

LONG = bool(os.environ.get("CRDKEEPER_COMPOSING_FAULTS"))
TIMES = 2
READ_FAULTS = [each for each in FAULTS if each != "409"]
"""No read is in conflict with anything."""
HUNG = [each for each in REQUESTS if each != "delete"]
SHARED = {
    "list composites": r"/{group}/v1/things[?](?!.*watch=true)",
    "watch composites": r"/{group}/v1/things[?].*watch=true",
    "list objects": r"/api/v1/configmaps[?](?!.*watch=true)",
    "watch objects": r"/api/v1/configmaps[?].*watch=true",
    "discovery": r"/api/v1([?]|$)",
    "schemas": r"/openapi/v3",
    "list revisions": r"/compositionrevisions[?](?!.*watch=true)",
    "watch revisions": r"/compositionrevisions[?].*watch=true",
    "read a revision": r"/compositionrevisions/",
}


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind the proxy."""
    return proxied_author


@pytest.mark.timeout(900 if LONG else 300)
@pytest.mark.parametrize("fault", READ_FAULTS if LONG else ["429", "503", "cut"])
async def test_what_all_composites_need_may_fail(
    composing: Composing, proxied: Operator, proxy: FaultProxy, group: str, fault: str
) -> None:
    await composing.compose(*RESOURCES)
    await composing.create("before")
    await composing.ready("before")
    proxied.kill()
    faults = [
        Fault("GET", each.format(group=group), times=TIMES, **FAULTS[fault]) for each in SHARED.values()
    ]
    proxy.faults[:] = faults
    await composing.create("orders")
    await composing.patch(f"{CONFIG_MAPS}/before-a", {"data": {"engine": "theirs"}})
    log = proxied.log_size()
    proxied.start()
    await composing.ready("orders")
    await composing.has("before-a", engine="MySQL")

    async def all_met() -> bool:
        return all(not each.times for each in faults)

    # A watch whose answer is lost is silent: the client gives each up after 75 seconds.
    seconds = 240.0 if fault == "lost" else 60.0
    await eventually(all_met, seconds=seconds, otherwise=lambda: str([each for each in faults if each.times]))
    watches = [each.format(group=group) for name, each in SHARED.items() if name.startswith("watch")]

    async def all_watched() -> bool:
        return all(map(proxy.has_watch, watches))

    await eventually(all_watched, seconds=seconds)
    proxy.faults[:] = [Fault("GET", each, times=TIMES, **FAULTS[fault]) for each in watches]
    for each in watches:
        assert proxy.end_watches(each)
    await composing.patch(f"{CONFIG_MAPS}/orders-b", {"data": {"engine": "theirs"}})
    await composing.create("late")
    # Nobody hears of anything until the watches are given up.
    await composing.says("late", "Ready", "True", "Available", seconds=seconds)
    await composing.has("orders-b", engine="MySQL", of="orders-a")
    await composing.compose(*RESOURCES[:1], number=2)
    for each in ("before", "orders", "late"):
        await composing.gone(f"{each}-b")
    assert "Traceback" not in proxied.log_since(log)


@pytest.mark.timeout(600)
async def test_requests_that_hang_hold_up_only_their_own_composites(
    composing: Composing, proxied: Operator, proxy: FaultProxy
) -> None:
    await composing.compose(*RESOURCES)
    names = [f"{each}.hung" for each in (HUNG if LONG else ("look", "apply-a", "status"))]
    lives, go_on = Lives(composing, proxy, names), threading.Event()
    await lives.prepare()
    # What is sent again hangs, too, until the other composite is made.
    faults = lives.meet(held=go_on, times=-1)
    author, others = composing.author, composing.definition.objects.replace("/default/", "/kube-public/")
    try:
        await lives.set("Postgres")

        async def met() -> bool:
            return sum(bool(each.met) for each in faults) >= 3

        await eventually(met)
        await asyncio.sleep(3.5)
        await author.put(f"{others}/quick", composing.definition.composite("quick"))

        async def is_made() -> bool:
            return (
                await author.get(f"{CONFIG_MAPS.replace('/default/', '/kube-public/')}/quick-b") is not None
            )

        await eventually(is_made)
        for each in faults:
            each.times = 0
        if LONG:
            # A composite rests for three times as long as its requests took.
            await lives.all_ready(seconds=400.0)
        else:
            proxied.kill()
    finally:
        # What was on its way for so long is carried out now.
        go_on.set()
    if not LONG:
        proxied.start()
        await lives.all_ready()
    await lives.set("MySQL")
    await lives.all_ready()
    await author.delete(f"{others}/quick")
    await author.gone(f"{others}/quick")
    await lives.delete()
