"""A composer that is killed while a certain request of it is on its way, sent or answered."""

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import (
    CONFIG_MAPS,
    FINALIZER,
    Composing,
    all_of,
    config_map,
    rights_on,
)
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

Json = Any
APPLIED = "crdkeeper.dev/applied"


@pytest.fixture
async def composing(proxied_author: Author, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API whose objects are ConfigMaps, and stay: no garbage collector hides one."""
    async with rights_on(proxied_author, f"compose-{group}", all_of(group), all_of("", "configmaps")):
        composing = Composing(proxied_author, group)
        await composing.define()
        await composing.compose(
            config_map("a", Deletion="Orphan"),
            config_map("b", of="${a.metadata.name}", Deletion="Orphan"),
        )
        yield composing
        await composing.clean_up()


def entries(found: Json) -> list[str]:
    """The objects that a composite's status lists."""
    state = (found.get("status") or {}).get("crdkeeper") or {}
    return [each["object"]["name"] for each in state.get("resources") or ()]


async def marked(composing: Composing) -> list[str]:
    """The ConfigMaps that bear the composer's marks."""
    items = (await composing.author.get(CONFIG_MAPS))["items"]
    return sorted(
        each["metadata"]["name"] for each in items if APPLIED in (each["metadata"].get("annotations") or {})
    )


class Stop:
    """Where the composer is killed: when it sends a request, before or after the API server has it."""

    def __init__(self, composer: Operator, proxy: FaultProxy, pattern: str, *, sent: bool) -> None:
        self._composer = composer
        self._proxy = proxy
        self._held = threading.Event()
        self._fault = Fault("PATCH", pattern, after=True, times=1)
        # The answer is lost, and what it sends next waits, so that it gets no further.
        later = Fault("PATCH", ".", held=self._held, chance=lambda: self._fault.met > 0)
        if not sent:
            self._fault = Fault("PATCH", pattern, held=self._held)
        proxy.faults[:] = [self._fault, later]

    async def dead(self) -> None:
        """Return once it is dead; the caller lets it begin again."""

        async def met() -> bool:
            return self._fault.met > 0

        await eventually(met)
        self._composer.kill()

    def go_on(self) -> None:
        """Start it again."""
        self._proxy.faults.clear()
        self._held.set()
        self._composer.start()


@pytest.mark.parametrize("sent", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("which", ["a", "b"])
async def test_what_is_created_is_listed_before(
    composing: Composing, proxied: Operator, proxy: FaultProxy, sent: bool, which: str
) -> None:
    name = f"orders-{which}"
    stop = Stop(proxied, proxy, f"/configmaps/{name}[?]", sent=sent)
    await composing.create("orders")
    await stop.dead()
    found = await composing.author.get(composing.path("orders"))
    assert name in entries(found) and FINALIZER in found["metadata"]["finalizers"]
    assert (name in await marked(composing)) is sent
    await composing.delete("orders")
    stop.go_on()
    await composing.author.gone(composing.path("orders"))
    assert await marked(composing) == []
    for each in ("orders-a", "orders-b"):
        await composing.author.delete(f"{CONFIG_MAPS}/{each}")


@pytest.mark.parametrize("sent", [False, True], ids=["before", "after"])
async def test_a_deletion_goes_on_in_order(
    composing: Composing, proxied: Operator, proxy: FaultProxy, sent: bool
) -> None:
    await composing.create("orders")
    await composing.ready("orders")
    stop = Stop(proxied, proxy, "/configmaps/orders-b[?]", sent=sent)
    await composing.delete("orders")
    await stop.dead()
    assert await marked(composing) == (["orders-a"] if sent else ["orders-a", "orders-b"])
    assert FINALIZER in (await composing.author.get(composing.path("orders")))["metadata"]["finalizers"]
    stop.go_on()
    await composing.author.gone(composing.path("orders"))
    assert await marked(composing) == []
    for each in ("orders-a", "orders-b"):
        await composing.author.delete(f"{CONFIG_MAPS}/{each}")
