"""A composer with nothing to do for a composite: it looks, and writes nothing."""

import asyncio
import itertools
import time

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, heard, secret
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import FaultProxy


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose requests are recorded."""
    return proxied_author


async def test_what_others_add_leads_to_a_look_and_to_no_write(
    composing: Composing, proxy: FaultProxy
) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    await composing.ready("orders")
    await heard(composing, proxy, "orders", f"{CONFIG_MAPS}/orders-settings")
    for path in (f"{CONFIG_MAPS}/orders-settings", composing.path("orders")):
        since = len(proxy.requests)
        await composing.patch(path, {"metadata": {"labels": {"theirs": "x"}}})

        async def looked(since: int = since) -> bool:
            asked = [each.path for each in proxy.requests[since:] if each.method == "GET"]
            return composing.path("orders") in asked

        await eventually(looked)
        await asyncio.sleep(1.0)
        assert [str(each) for each in proxy.writes(since)] == []


async def test_what_it_has_written_leads_to_no_look(composing: Composing, proxy: FaultProxy) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    await composing.ready("orders")
    await heard(composing, proxy, "orders", f"{CONFIG_MAPS}/orders-settings")
    since = len(proxy.requests)
    await composing.patch(f"{CONFIG_MAPS}/orders-settings", {"data": {"engine": "another"}})
    await composing.has("orders-settings", engine="MySQL")
    await asyncio.sleep(2.0)
    asked = [each.path for each in proxy.requests[since:] if each.method == "GET"]
    assert asked.count(composing.path("orders")) == 1


@pytest.mark.composes("secrets")
async def test_a_change_that_is_refused_is_not_sent_again_and_again(
    composing: Composing, proxy: FaultProxy
) -> None:
    await composing.compose(secret())
    await composing.create("orders")
    await composing.ready("orders")
    begun, refused = len(proxy.requests), "PATCH /api/v1/namespaces/default/secrets/orders 422"
    await composing.create("orders", engine="Postgres")
    await composing.says("orders", "Synced", "False", "Refused", "Secret default/orders", "immutable")

    async def said() -> bool:
        return [str(each) for each in proxy.writes(begun)].count(refused) >= 2

    # By the second time, the proxy has the answer to the status of the first.
    await eventually(said)
    since, began = len(proxy.requests), time.monotonic()
    numbers = itertools.count()

    def looks() -> int:
        return sum(each.path == composing.path("orders") for each in proxy.requests[since:])

    async def looked_often() -> bool:
        # What others do to the composite lets the composer look, and is no reason to try again.
        number = next(numbers)
        await composing.patch(composing.path("orders"), {"metadata": {"labels": {"theirs": f"{number}"}}})
        return number >= 20 and looks() >= 5 and len(proxy.writes(since)) >= 2

    await eventually(looked_often, every=0.5)
    # After pauses that double from half a second; the same is not said again.
    sent = [str(each) for each in proxy.writes(since)]
    assert set(sent) == {refused}
    assert 2 ** (len(sent) - 2) <= time.monotonic() - began + 1
    # Another change is another matter.
    await composing.create("orders", engine="MySQL")
    await composing.ready("orders")
