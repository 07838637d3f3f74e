"""TokenRequests that the API server refuses, loses or does not answer."""

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import Composing, all_of, config_map, rights_on
from tests.cluster.composition.delegating import WRITE, Delegate, tokens_of
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

Json = Any


@pytest.fixture
async def composing(proxied_author: Author, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API whose objects are ConfigMaps, and whose composer is behind the proxy."""
    async with rights_on(proxied_author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        composing = Composing(proxied_author, group)
        await composing.define()
        yield composing
        await composing.clean_up()


@pytest.fixture
async def delegate(composing: Composing, proxy: FaultProxy, group: str) -> AsyncIterator[Delegate]:
    """An account that may do what its composites need."""
    account = Delegate(composing.author, f"builder-{group.replace('.', '-')}")
    async with tokens_of(composing.author, account.name):
        await account.create()
        await account.may(configmaps=WRITE)
        yield account
        proxy.faults.clear()
        await composing.clean_up()
    await account.clean_up()


@pytest.mark.parametrize("code", [429, 500, 0])
async def test_a_token_is_requested_again(
    composing: Composing, delegate: Delegate, proxy: FaultProxy, code: int
) -> None:
    fault = Fault("POST", f"/serviceaccounts/{delegate.name}/token", code=code)
    since = len(proxy.requests)
    proxy.faults.append(fault)
    await composing.compose(config_map("settings"), serviceAccountName=delegate.name)
    await composing.create("orders")
    await composing.says("orders", "Synced", "False", "Failed", delegate.name)

    async def again() -> bool:
        return fault.met >= 2

    await eventually(again)
    proxy.faults.remove(fault)
    await composing.ready("orders")
    path = f"/{delegate.name}/token"
    codes = [each.code for each in proxy.requests[since:] if each.path.endswith(path)]
    # Those that were lost, and then one for all that is done.
    assert codes == [code] * fault.met + [201]


async def test_tokens_that_are_not_given_hold_up_only_their_composites(
    composing: Composing, delegate: Delegate, proxy: FaultProxy
) -> None:
    go_on = threading.Event()
    proxy.faults.append(Fault("POST", f"/serviceaccounts/{delegate.name}/token", held=go_on))
    try:
        await composing.compose(config_map("a"), which="by", serviceAccountName=delegate.name)
        await composing.compose(config_map("a"), which="own")
        by, own = (composing.designer.name(each) for each in ("by", "own"))
        for each in range(20):
            await composing.create(f"by{each}", crdkeeper={"compositionRef": {"name": by}})
        await composing.says("by0", "Synced", "False", "Failed", "no answer within 10 seconds")
        await composing.create("own", crdkeeper={"compositionRef": {"name": own}})
        await composing.ready("own")
    finally:
        go_on.set()
    for each in range(20):
        await composing.says(f"by{each}", "Ready", "True", "Available", seconds=180)
