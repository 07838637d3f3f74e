"""Many composites for which the API server is not asked by label: what is composed is found all the same."""

import asyncio
import re
import time
from typing import Any

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, heard
from tests.cluster.composition.delegating import WRITE, Delegate, tokens_of
from tests.cluster.composition.faultycomposing import RESOURCES
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import FaultProxy

NAMES = [f"many{number}" for number in range(12)]


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind the proxy."""
    return proxied_author


def lists(proxy: FaultProxy) -> list[str]:
    """The collections that were listed by a label, page by page, as often as that was done."""
    asked = [each.path for each in proxy.requests if each.method == "GET" and "labelSelector=" in each.path]
    first = [each for each in asked if "watch=true" not in each and "continue=" not in each]
    return [path.partition("?")[0] for path in first if re.search("/configmaps[?]", path)]


async def all_ready(composing: Composing) -> None:
    await asyncio.gather(*(composing.ready(each) for each in NAMES))


async def test_one_list_for_each_start_and_what_no_status_lists_is_found(
    composing: Composing, proxied: Operator, proxy: FaultProxy
) -> None:
    await composing.compose(*RESOURCES)
    proxied.kill()
    proxy.requests.clear()
    proxied.start()
    for each in NAMES:
        await composing.create(each)
    await all_ready(composing)
    assert lists(proxy) == ["/api/v1/configmaps"]

    proxied.kill()
    for each in NAMES:
        # What is composed is listed nowhere, and half of it is not wanted any more.
        lost: Any = {"status": {"crdkeeper": None, "conditions": None}}
        await composing.patch(f"{composing.path(each)}/status", lost)
    await composing.designer.put("main", *RESOURCES[:1])
    proxy.requests.clear()
    proxied.start()
    for each in NAMES:
        await composing.gone(f"{each}-b")
    await all_ready(composing)
    assert lists(proxy) == ["/api/v1/configmaps"]

    proxied.kill()
    for each in NAMES:
        await composing.patch(f"{composing.path(each)}/status", {"status": {"crdkeeper": None}})
        await composing.delete(each)
    proxy.requests.clear()
    proxied.start()
    for each in NAMES:
        await composing.author.gone(composing.path(each))
        assert await composing.data(f"{each}-a") is None
    assert lists(proxy) == ["/api/v1/configmaps"]


@pytest.mark.composes
async def test_composites_of_an_account_share_lists_of_their_namespace(
    composing: Composing, proxied: Operator, proxy: FaultProxy, group: str
) -> None:
    delegate = Delegate(composing.author, f"lister-{group.replace('.', '-')}")
    async with tokens_of(composing.author, delegate.name):
        await delegate.create()
        await delegate.may(configmaps=WRITE)
        await composing.compose(*RESOURCES, serviceAccountName=delegate.name)
        proxied.kill()
        proxy.requests.clear()
        began = time.monotonic()
        proxied.start()
        for each in NAMES:
            await composing.create(each)
        await all_ready(composing)
        await composing.patch(f"{CONFIG_MAPS}/{NAMES[0]}-b", {"data": {"engine": "theirs"}})
        await composing.has(f"{NAMES[0]}-b", engine="MySQL", of=f"{NAMES[0]}-a")
        own = [each for each in lists(proxy) if each == CONFIG_MAPS]
        # One counts for 15 seconds; refused ones of the composer itself are of all namespaces.
        assert 1 <= len(own) <= 1 + (time.monotonic() - began) / 15.0
        for each in NAMES:
            await composing.delete(each)

        async def gone() -> bool:
            return not await composing.author.names(composing.definition)

        await eventually(gone)
        assert await composing.data(f"{NAMES[0]}-a") is None
    await delegate.clean_up()


async def test_a_deletion_reads_no_object_that_a_watch_shows(
    composing: Composing, proxied: Operator, proxy: FaultProxy
) -> None:
    await composing.compose(*RESOURCES)
    name = NAMES[0]
    await composing.create(name)
    await composing.ready(name)
    # What is put back was seen by the watch.
    for each in ("a", "b"):
        await composing.patch(f"{CONFIG_MAPS}/{name}-{each}", {"data": {"engine": "theirs"}})
    await composing.has(f"{name}-a", engine="MySQL")
    await composing.has(f"{name}-b", engine="MySQL", of=f"{name}-a")
    await composing.ready(name)

    def asked() -> list[tuple[str, str]]:
        found = [each for each in proxy.requests if f"/configmaps/{name}-" in each.path]
        return [(each.method, each.path.rpartition("-")[2]) for each in found]

    # No pass for these changes is still to come, and the watch has shown the last write.
    await heard(composing, proxy, name, *(f"{CONFIG_MAPS}/{name}-{each}" for each in ("a", "b")))
    proxy.requests.clear()
    await composing.delete(name)
    await composing.author.gone(composing.path(name))
    assert asked() == [
        ("DELETE", "b"),
        ("DELETE", "a"),
    ]
