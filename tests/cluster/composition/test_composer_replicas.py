"""Two composers, of which one is frozen with requests on their way: what arrives late changes nothing."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from tests.cluster.composition.authoring import ACCOUNT, Author, stay
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy
from tests.cluster.harness.operator import SHIPPED_LEASE
from tests.controlplane.cluster import Cluster

Json = Any
ADOPT: Final = {"annotations": {"crdkeeper.dev/adopt": "kept"}}


@pytest.fixture(scope="module")
def lease() -> Mapping[str, str]:
    """Of two composers, the other one takes over as soon as with the manifests."""
    return SHIPPED_LEASE


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind the proxy."""
    return proxied_author


@pytest.fixture
async def composing(composing: Composing) -> AsyncIterator[Composing]:
    """Composites of up to four objects, one of which outlives them."""
    await composing.compose(
        config_map("a", engine="${composite.spec.engine}"),
        config_map("b", of="${a.metadata.name}"),
        config_map(
            "optional",
            engine="${composite.spec.engine}",
            IncludeWhen=["${composite.spec.?enabled.orValue(false)}"],
        ),
        config_map("kept", Deletion="Orphan"),
    )
    yield composing
    await composing.clean_up()
    for each in (await composing.author.get(CONFIG_MAPS))["items"]:
        if each["metadata"]["name"].endswith("-kept"):
            await composing.author.delete(f"{CONFIG_MAPS}/{each['metadata']['name']}")


@pytest.fixture
def standby(
    proxied: Operator, plane: Cluster, start_operator: Callable[..., Operator], lease: Mapping[str, str]
) -> Iterator[Operator]:
    """A second replica, which waits for the Lease."""
    assert proxied.leading()
    standby = start_operator(
        plane, identity="standby", account=ACCOUNT, command=("compose", "run"), flags=lease
    )
    yield standby
    standby.stop()
    if proxied.running:
        proxied.kill()
    proxied.start()


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Holds requests, at most until the end of the test."""
    held = threading.Event()
    yield held
    held.set()


class Late:
    """Requests of the composer that leads, which arrive when another one does."""

    def __init__(self, proxy: FaultProxy, held: threading.Event, *requests: tuple[str, str]) -> None:
        self._proxy = proxy
        self._held = held
        self._requests = requests
        self._faults = [Fault(method, path, held=self._held, times=1) for method, path in requests]
        proxy.faults[:] = self._faults

    async def sent(self) -> None:
        """Return once all are on their way."""

        async def met() -> bool:
            return all(each.met for each in self._faults)

        def otherwise() -> str:
            return f"not sent: {[each.pattern for each in self._faults if not each.met]}"

        await eventually(met, otherwise=otherwise)

    async def frozen(self, leader: Operator, standby: Operator) -> None:
        """Freeze the leader when it has sent them all; return once the other one leads."""
        await self.sent()
        leader.pause()

        async def leads() -> bool:
            return await asyncio.to_thread(standby.leading)

        await eventually(leads)

    async def arrive(self) -> dict[str, int]:
        """Let the API server have them, and return its answers by path."""
        since = len(self._proxy.requests)
        self._held.set()

        async def answered() -> dict[str, int] | None:
            found: dict[str, int] = {}
            for each in self._proxy.requests[since:]:
                for method, path in self._requests:
                    if each.method == method and re.search(path, each.path):
                        found.setdefault(path, each.code)
            return found if len(found) == len(self._requests) else None

        return await eventually(answered)


async def nothing_changes_late(composing: Composing, late: Late, leader: Operator) -> None:
    """Checks that what was sent is void, and so is what the leader would still do."""
    author = composing.author
    objects = [each["metadata"]["name"] for each in (await author.get(CONFIG_MAPS))["items"]]
    paths = [f"{CONFIG_MAPS}/{each}" for each in objects]
    composites = await author.names(composing.definition)
    paths += [composing.path(each) for each in composites]
    before = [await author.get(each) for each in paths]
    answers = await late.arrive()
    assert all(code in (404, 409) for code in answers.values()), answers
    leader.resume()

    async def ended() -> bool:
        return not leader.running

    await eventually(ended)
    assert leader.exit_status == 1
    # As long as the garbage collector may need to see an owner that is gone.
    await stay(author, *paths, seconds=2.0)
    assert [await author.get(each) for each in paths] == before


async def test_what_is_applied_late(
    composing: Composing, proxied: Operator, standby: Operator, proxy: FaultProxy, held: threading.Event
) -> None:
    for each in ("changed", "told"):
        await composing.create(each)
        await composing.ready(each)
    late = Late(
        proxy,
        held,
        ("PATCH", "/configmaps/changed-a[?]"),
        ("PATCH", "/things/told/status[?]"),
        ("PATCH", "/configmaps/created-a[?]"),
        ("PATCH", "/things/held[?]"),
    )
    for each in ("changed", "told", "created", "held"):
        await composing.create(each, engine="Postgres")
    await late.frozen(proxied, standby)
    # Its objects are nobody's. With a controller reference again, they would be deleted.
    await composing.delete("changed", propagationPolicy="Orphan")
    await composing.author.gone(composing.path("changed"))
    await composing.create("told", enabled=True)
    await composing.delete("created")
    await composing.author.gone(composing.path("created"))
    await composing.create("created", metadata=ADOPT)
    for each in ("told", "created", "held"):
        await composing.ready(each)
    await nothing_changes_late(composing, late, proxied)
    for which in ("a", "b"):
        await composing.author.delete(f"{CONFIG_MAPS}/changed-{which}")


async def test_what_is_removed_late(
    composing: Composing, proxied: Operator, standby: Operator, proxy: FaultProxy, held: threading.Event
) -> None:
    for each in ("deleted", "pruned", "released", "ended"):
        await composing.create(each, enabled=True)
        await composing.ready(each)
    late = Late(
        proxy,
        held,
        ("DELETE", "/configmaps/deleted-b[?]?"),
        ("DELETE", "/configmaps/pruned-optional[?]?"),
        ("PATCH", "/configmaps/released-kept[?]"),
        ("PATCH", "/things/ended[?]"),
    )
    for each in ("deleted", "released", "ended"):
        await composing.delete(each)
    await composing.create("pruned", enabled=False)
    await late.frozen(proxied, standby)
    await composing.create("pruned", enabled=True, engine="Postgres")
    await composing.says("pruned", "Ready", "True", "Available")
    for each in ("deleted", "released", "ended"):
        await composing.author.gone(composing.path(each))
        await composing.create(each, metadata=ADOPT)
        await composing.ready(each)
    await nothing_changes_late(composing, late, proxied)


async def overtaken(
    composing: Composing, proxy: FaultProxy, held: threading.Event, path: str, other: str
) -> list[str]:
    """Change the composite, and this as somebody else while a request of the composer is on its way.

    Returns what the composer sends then, until the composite is ready.
    """
    late = Late(proxy, held, ("PATCH", path))
    await composing.create("orders", engine="Postgres")
    await late.sent()
    since = len(proxy.requests)
    await composing.patch(other, {"metadata": {"annotations": {"example.com/changed": "true"}}})
    assert set((await late.arrive()).values()) == {409}
    await composing.ready("orders")
    concerned = re.compile("/configmaps|/things/orders")
    return [str(each) for each in proxy.requests[since:] if concerned.search(each.path)]


async def test_what_changes_at_the_moment_of_an_apply_is_looked_at_again(
    composing: Composing, proxied: Operator, proxy: FaultProxy, held: threading.Event
) -> None:
    await composing.create("orders")
    await composing.ready("orders")
    path = f"{CONFIG_MAPS}/orders-a"
    sent = await overtaken(composing, proxy, held, "/configmaps/orders-a[?]", path)
    assert sent[:3] == [f"PATCH {path} 409", f"GET {path} 200", f"PATCH {path} 200"]


async def test_a_status_is_written_although_the_composite_has_changed(
    composing: Composing, proxied: Operator, proxy: FaultProxy, held: threading.Event
) -> None:
    await composing.create("orders")
    await composing.ready("orders")
    path = composing.path("orders")
    sent = await overtaken(composing, proxy, held, "/things/orders/status[?]", path)
    assert sent[:3] == [f"PATCH {path}/status 409", f"GET {path} 200", f"PATCH {path}/status 200"]
