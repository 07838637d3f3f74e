"""Two composers, and requests that fail: everything ends as the definitions say."""

import itertools
import random
import threading
from collections.abc import Callable, Mapping

import pytest

from tests.cluster.composition.authoring import (
    ACCOUNT,
    FINALIZER,
    OWNER,
    Author,
    Definition,
)
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy
from tests.cluster.harness.operator import SHIPPED_LEASE
from tests.controlplane.cluster import Cluster
from tests.dice import drawn_seed
from tests.faults.replicas import until_ended, until_leading

DEFINITIONS = 4
COMPOSITES = 300
DELETED = 40
"""Before the composer is frozen."""
COMPOSE = ("compose", "run")


@pytest.fixture(scope="module")
def lease() -> Mapping[str, str]:
    """Of two composers, the other one takes over as soon as with the manifests."""
    return SHIPPED_LEASE


@pytest.fixture
def start_successor(
    plane: Cluster, start_operator: Callable[..., Operator], lease: Mapping[str, str]
) -> Callable[[], Operator]:
    """Starts a second replica, which leads once the Lease of the frozen one has expired."""

    def start() -> Operator:
        return start_operator(
            plane, identity="successor", account=ACCOUNT, command=COMPOSE, flags=lease, wait=False
        )

    return start


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose requests fail."""
    return proxied_author


def once_and(dice: random.Random) -> Callable[[], bool]:
    """True the first time, so that each fault is met, and then at random."""
    chances = itertools.chain((True,), (dice.random() < 0.07 for _ in itertools.count()))
    return lambda: next(chances)


async def test_requests_that_fail_at_random(author: Author, proxy: FaultProxy, group: str) -> None:
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed}")
    dice = random.Random(seed)
    all_ = [Definition(group, f"thing{each}") for each in range(DEFINITIONS)]
    work = r"customresourcedefinitions|compositeresourcedefinitions|" + group
    for method in ("GET", "PATCH", "DELETE"):
        for code, after in ((409, False), (429, False), (500, True), (503, False), (0, False), (0, True)):
            if method == "GET" and code in (0, 409):
                continue
            retry = 1 if code == 429 else 0
            # No watches, which another file of tests is about.
            pattern = rf"^(?!.*watch=).*({work})"
            proxy.faults.append(Fault(method, pattern, code, retry, after, chance=once_and(dice)))
    for each in all_:
        await author.apply(each, deletion="Cascade")
    for each in all_:
        await author.ready(each, seconds=120)
        await author.make_composites(each, ["a", "b"])
        await author.apply(each, "more", deletion="Cascade")
    for each in all_:
        await author.ready(each, seconds=120)

        async def applied(each: Definition = each) -> bool:
            return await author.fields(each) == ["more"]

        await eventually(applied, seconds=120)
        assert (await author.get(each.path))["metadata"]["finalizers"] == [FINALIZER]
    for each in all_:
        await author.delete(each.path)
    for each in all_:
        await author.gone(each.path, seconds=120)
        await author.gone(each.crd)
    met = {(each.method, each.code, each.after): each.met for each in proxy.faults}
    print(f"faults: {met}")
    assert 0 not in met.values()


async def test_a_write_of_a_composer_that_lost_its_lease_is_too_late(
    author: Author,
    proxy: FaultProxy,
    proxied: Operator,
    start_successor: Callable[[], Operator],
    group: str,
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    held = threading.Event()
    proxy.faults.append(Fault("PATCH", rf"^{thing.crd}\?", times=1, held=held))
    await author.apply(thing, "first")

    async def under_way() -> bool:
        return proxy.faults[0].met == 1

    await eventually(under_way)
    proxied.pause()
    successor = start_successor()
    await until_leading(successor)
    await author.apply(thing, "second")
    await author.ready(thing)
    assert await author.fields(thing) == ["second"]
    before = await author.get(thing.crd)

    since = len(proxy.requests)
    held.set()

    async def arrived() -> bool:
        return bool(proxy.writes(since))

    await eventually(arrived)
    assert [each.code for each in proxy.writes(since)] == [409]
    proxied.resume()
    assert await until_ended(proxied) == 1
    assert "Lost leadership" in proxied.log_since()
    assert len(proxy.writes(since)) == 1, "it wrote after it had lost the Lease"
    assert await author.get(thing.crd) == before
    successor.stop()


async def test_a_composer_that_wakes_up_too_late_deletes_no_composite(
    author: Author,
    proxy: FaultProxy,
    proxied: Operator,
    start_successor: Callable[[], Operator],
    group: str,
) -> None:
    """It is frozen in the middle of a Cascade; then the user wants to keep the rest."""
    thing = Definition(group, "thing")
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    names = [f"a{each:03}" for each in range(COMPOSITES)]
    await author.make_composites(thing, names)
    held, numbers = threading.Event(), itertools.count()
    proxy.faults.append(
        Fault("DELETE", rf"/{thing.plural}/", held=held, chance=lambda: next(numbers) >= DELETED)
    )
    await author.delete(thing.path)

    async def under_way() -> bool:
        return proxy.faults[0].met >= 8

    await eventually(under_way)
    proxied.pause()
    left = await author.names(thing)
    # Eight at once: not exactly the first ones.
    assert len(left) == COMPOSITES - DELETED
    await author.apply(thing, deletion="Orphan")
    successor = start_successor()
    await author.gone(thing.path, seconds=120)
    assert OWNER not in ((await author.get(thing.crd))["metadata"].get("annotations") or {})
    # Users are at work again.
    for name in left[:8]:
        await author.put(f"{thing.objects}/{name}", thing.composite(name, labels={"kept": "true"}))

    since = len(proxy.requests)
    held.set()

    # What has no answer for long is sent again.
    sent = proxy.faults[0].met

    async def arrived() -> bool:
        return len(proxy.writes(since)) == sent

    await eventually(arrived)
    proxied.resume()
    assert await until_ended(proxied) == 1
    assert [(each.method, each.code) for each in proxy.writes(since)] == [("DELETE", 409)] * sent
    assert await author.names(thing) == left
    successor.stop()


async def test_delayed_writes_of_a_crd_are_too_late(
    author: Author,
    proxy: FaultProxy,
    proxied: Operator,
    start_successor: Callable[[], Operator],
    group: str,
) -> None:
    """A deletion and a release are under way when a composer is frozen; then the users decide otherwise."""
    empty, orphan = Definition(group, "empty"), Definition(group, "orphan")
    await author.apply(empty)
    await author.apply(orphan, deletion="Orphan")
    for each in (empty, orphan):
        await author.ready(each)
    await author.make_composites(orphan, ["a"])
    held, numbers = threading.Event(), itertools.count()
    # Before the deletion comes its dry run.
    second = Fault("DELETE", rf"^{empty.crd}(\?|$)", times=1, held=held, chance=lambda: next(numbers) == 1)
    for fault, each in (
        (second, empty),
        (Fault("PATCH", rf"^{orphan.crd}(\?|$)", times=1, held=held), orphan),
    ):
        proxy.faults.append(fault)
        await author.delete(each.path)

    async def under_way() -> bool:
        return all(each.met == 1 for each in proxy.faults)

    await eventually(under_way)
    proxied.pause()
    await author.apply(empty, deletion="Orphan")
    await author.apply(orphan)
    successor = start_successor()
    await author.says(orphan, "Established", "1 composite", "Protect", seconds=120)
    await author.gone(empty.path)
    await author.make_composites(empty, ["a"])

    since = len(proxy.requests)
    held.set()

    async def arrived() -> bool:
        return len(proxy.writes(since)) == 2

    await eventually(arrived)
    assert [each.code for each in proxy.writes(since)] == [409, 409]
    proxied.resume()
    assert await until_ended(proxied) == 1
    for each in (empty, orphan):
        crd = (await author.get(each.crd))["metadata"]
        assert "deletionTimestamp" not in crd
        assert (OWNER in crd.get("annotations", {})) == (each is orphan)
        assert await author.names(each) == ["a"]
    await author.delete(f"{orphan.objects}/a")
    await author.gone(orphan.path)
    await author.gone(orphan.crd)
    successor.stop()
