"""A composer that is killed while a certain request of it is on its way, sent or answered."""

import re
import threading

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import (
    CONFIG_MAPS,
    FINALIZER,
    Composing,
    config_map,
    entries,
    pinned,
    replaced,
    used,
)
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

APPLIED = "crdkeeper.dev/applied"


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind the proxy."""
    return proxied_author


@pytest.fixture
async def composing(composing: Composing) -> Composing:
    """Composites whose objects stay, so that no garbage collector hides one."""
    await composing.compose(
        config_map("a", Deletion="Orphan"), config_map("b", of="${a.metadata.name}", Deletion="Orphan")
    )
    return composing


async def marked(composing: Composing) -> list[str]:
    """The ConfigMaps of the composite that bear the composer's marks."""
    items = (await composing.author.get(CONFIG_MAPS))["items"]
    metadata = [each["metadata"] for each in items if each["metadata"]["name"].startswith("orders-")]
    return sorted(each["name"] for each in metadata if APPLIED in (each.get("annotations") or {}))


class Stop:
    """Where the composer is killed: when it sends a request, before or after the API server has it."""

    def __init__(
        self,
        composer: Operator,
        proxy: FaultProxy,
        pattern: str,
        *,
        sent: bool,
        method: str = "PATCH",
        body: str = "",
    ) -> None:
        self._composer = composer
        self._proxy = proxy
        self._held = threading.Event()
        self._method = method
        self._pattern = pattern
        self._sent = sent
        self._since = len(proxy.requests)
        self._fault = Fault(method, pattern, body=body, after=True, times=1)
        # The answer is lost, and what it sends next waits, so that it gets no further.
        self._later = [
            Fault(each, ".", held=self._held, chance=lambda: self._fault.met > 0)
            for each in ("PATCH", "DELETE")
        ]
        if not sent:
            self._fault = Fault(method, pattern, body=body, held=self._held)
        proxy.faults[:] = [self._fault, *self._later]

    async def dead(self) -> None:
        """Return once it is dead; the caller lets it begin again."""

        async def met() -> bool:
            # The API server has a request that is sent once it has answered.
            return self._fault.met > 0 and (not self._sent or self._answered(self._pattern, self._method) > 0)

        await eventually(met)
        self._composer.kill()

    async def go_on(self) -> None:
        """Start it again, once what the dead one has sent is carried out."""
        # What is held is not among those that have been answered.
        held = sum(each.met for each in (self._fault, *self._later) if each.held is not None)
        goal = self._answered(".") + held
        self._proxy.faults.clear()
        self._held.set()

        async def carried_out() -> bool:
            return self._answered(".") >= goal

        await eventually(carried_out)
        self._composer.start()

    def _answered(self, pattern: str, *methods: str) -> int:
        since = self._proxy.requests[self._since :]
        among = methods or ("PATCH", "DELETE")
        return sum(each.method in among and bool(re.search(pattern, each.path)) for each in since)


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
    await stop.go_on()
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
    await stop.go_on()
    await composing.author.gone(composing.path("orders"))
    assert await marked(composing) == []
    for each in ("orders-a", "orders-b"):
        await composing.author.delete(f"{CONFIG_MAPS}/{each}")


@pytest.mark.parametrize("sent", [False, True], ids=["before", "after"])
async def test_a_revision_is_named_once(
    composing: Composing, proxied: Operator, proxy: FaultProxy, sent: bool
) -> None:
    first, second = (f"{composing.designer.name('main')}-{number}" for number in (1, 2))
    await composing.compose(config_map("a", version="2"), number=2)
    # Else the composites of the composer may not have heard of it yet, and it would name the first one.
    await composing.create("early")
    await composing.runs_by("early", 2)
    stop = Stop(proxied, proxy, "/things/orders[?]", sent=sent, body="compositionRevisionRef")
    manual = {"compositionUpdatePolicy": "Manual"}
    await composing.create("orders", crdkeeper=manual)
    await stop.dead()
    assert pinned(await composing.author.get(composing.path("orders"))) == (second if sent else "")
    if not sent:
        # Somebody names another one before the API server has what the dead composer has sent.
        await composing.create("orders", crdkeeper={**manual, "compositionRevisionRef": {"name": first}})
    await composing.designer.put("main", config_map("a", version="3"))
    await stop.go_on()
    await composing.designer.ready("main", 3)
    found = await composing.ready("orders")
    wanted = second if sent else first
    assert (pinned(found), used(found)) == (wanted, wanted)
    assert await composing.data("orders-a") == ({"version": "2"} if sent else {})


@pytest.mark.parametrize("sent", [False, True], ids=["before", "after"])
async def test_what_was_deleted_to_be_created_again_is_created(
    composing: Composing, proxied: Operator, proxy: FaultProxy, sent: bool
) -> None:
    author, paths = composing.author, [f"{CONFIG_MAPS}/orders-{each}" for each in "ab"]
    again = replaced("a", engine="${composite.spec.engine}")
    await composing.compose(again, config_map("b", of="${a.metadata.name}"), number=2)
    await composing.create("orders")
    await composing.runs_by("orders", 2)
    before = [(await author.get(each))["metadata"]["uid"] for each in paths]
    stop = Stop(proxied, proxy, "/configmaps/orders-a([?]|$)", sent=sent, method="DELETE")
    await composing.create("orders", engine="Postgres")
    await stop.dead()
    assert (await author.get(paths[0]) is None) is sent
    assert entries(await author.get(composing.path("orders"))) == ["orders-a", "orders-b"]
    await stop.go_on()
    await composing.ready("orders")
    assert await composing.data("orders-a") == {"engine": "Postgres"}
    after = [(await author.get(each))["metadata"]["uid"] for each in paths]
    assert (after[0] == before[0], after[1] == before[1]) == (False, True)
