"""Faults of requests for pins, and for objects that stay, are created again, or are only read."""

import asyncio
import os
import re
import threading
from functools import partial
from typing import Any

import pytest

from tests.cluster.composition.authoring import Author, stay
from tests.cluster.composition.composing import CONFIG_MAPS, Composing
from tests.cluster.composition.faultycomposing import FAULTS, met_in_each
from tests.cluster.composition.faultyfeatures import MANUAL, REQUESTS, FeatureLives, resources
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

Json = Any
LONG = bool(os.environ.get("CRDKEEPER_COMPOSING_FAULTS"))
MET = list(FAULTS) if LONG else ["429", "lost", "cut"]
DELETE = "DELETE", r"/configmaps/{name}-b([?]|$)"
HUNG = "pin", "recreate", "delete", "release"
GONE = "delete.hung", "release.hung"
SECONDS = 400.0 if LONG else 120.0
"""A request that hangs is given up after 40 seconds, and the composite rests for three times as long."""


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind the proxy."""
    return proxied_author


@pytest.mark.timeout(600 if LONG else 300)
async def test_any_request_for_a_feature_may_fail(
    composing: Composing, proxied: Operator, proxy: FaultProxy
) -> None:
    await composing.compose(*resources("1"))
    pid, log = proxied.pid, proxied.log_size()
    lives = FeatureLives(composing, proxy, [f"{request}.{fault}" for request in REQUESTS for fault in MET])
    await lives.prepare()
    async with lives.watched():
        steps = (
            partial(lives.turn, "Postgres"),
            # All have named their revision by now.
            partial(composing.compose, *resources("2"), number=2),
            partial(lives.turn, "MySQL"),
            partial(lives.move, "south"),
            lives.drift,
            lives.delete,
        )
        assert await met_in_each(lives, *steps) == []
    assert proxied.pid == pid and proxied.running
    assert "Traceback" not in proxied.log_since(log)


@pytest.mark.timeout(1200 if LONG else 300)
async def test_what_hangs_and_is_carried_out_late_changes_nothing(
    composing: Composing, proxied: Operator, proxy: FaultProxy
) -> None:
    await composing.compose(*resources("1"))
    log, go_on = proxied.log_size(), threading.Event()
    lives = FeatureLives(composing, proxy, [f"{each}.hung" for each in HUNG])
    lives.requests = {**REQUESTS, "delete": DELETE}
    await lives.prepare()
    # Only the first request of each hangs.
    pin, recreate, delete, release = lives.meet(held=go_on, times=1)
    try:
        await lives.set("Postgres")
        await _hang(pin)
        await asyncio.gather(*map(lives.ready, lives.names[1:]))
        await lives.set("MySQL")
        await _hang(recreate)
        kept = await lives.kept()
        assert len(kept) == len(HUNG) - 1
        for each in GONE:
            await lives.ready(each)
            await composing.delete(each)
        await _hang(delete, release)
        await _quick(composing)
        if not LONG:
            proxied.kill()
            proxied.start()
        for each in GONE:
            await composing.author.gone(composing.path(each), seconds=SECONDS)
            await lives.make(each, {})
        await lives.all_ready(SECONDS)
        paths = [f"{CONFIG_MAPS}/{name}-{each}" for name in lives.names for each in lives.parts]
        paths += map(composing.path, lives.names)
        before, since = [await composing.author.get(each) for each in paths], len(proxy.requests)
    finally:
        go_on.set()

    async def carried_out() -> list[int]:
        late = [
            each.code
            for fault in (pin, recreate, delete, release)
            for each in proxy.requests[since:]
            if each.method == fault.method and re.search(fault.pattern, each.path)
        ]
        return late if len(late) >= len(HUNG) else []

    assert await eventually(carried_out) == [409] * len(HUNG)
    await stay(composing.author, *paths, seconds=1.0)
    assert [await composing.author.get(each) for each in paths] == before
    # What was left by the composites before was adopted, not created again.
    assert {uid for uid, _ in (await lives.kept()).values()} >= {uid for uid, _ in kept.values()}
    await lives.delete()
    assert "Traceback" not in proxied.log_since(log)


async def _hang(*faults: Fault) -> None:
    """Return once these have met a request."""

    async def met() -> bool:
        return all(each.met for each in faults)

    await eventually(met, otherwise=lambda: f"not sent: {[each for each in faults if not each.met]}")


async def _quick(composing: Composing) -> None:
    """A composite of another namespace waits for nothing that hangs: it comes, is changed, and goes."""
    author, space = composing.author, "/namespaces/kube-public/"
    quick, objects = (
        each.replace("/namespaces/default/", space) for each in (composing.path("quick"), CONFIG_MAPS)
    )
    zones = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "quick-zones"}}
    await author.put(f"{objects}/quick-zones", {**zones, "data": {"zone": "north"}})
    value = composing.definition.composite("quick")
    engine = "MySQL"

    async def has() -> bool:
        found = await author.get(f"{objects}/quick-again")
        return found is not None and bool(found["data"]["engine"] == engine)

    for engine in ("MySQL", "Postgres"):
        await author.put(quick, {**value, "spec": {"engine": engine, "crdkeeper": MANUAL}})
        await eventually(has)
    await author.delete(quick)
    await author.gone(quick)
    for each in ("kept", "zones"):
        await author.delete(f"{objects}/quick-{each}")
