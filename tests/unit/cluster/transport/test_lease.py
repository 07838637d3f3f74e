"""Leader election with a Lease: on a local server, and for its deadlines in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.cluster.transport.lease import Lease, LeaseLost
from tests import virtualtime
from tests.unit.cluster.transport.leasestore import LeaseStore
from tests.unit.cluster.transport.localserver import client_of, failure
from tests.virtualtime import now

PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"


async def test_a_lease_that_does_not_exist_is_made(tmp_path: Path) -> None:
    store = LeaseStore()
    async with client_of(tmp_path, store.handle) as (server, client):
        await Lease(client, "ns", "l", "me").acquire()
    assert server.seen == [("GET", f"{PATH}/l"), ("POST", PATH)]
    assert store.spec["holderIdentity"] == "me"
    assert (store.spec["leaseDurationSeconds"], store.spec["leaseTransitions"]) == (15, 0)
    assert store.spec["acquireTime"] == store.spec["renewTime"]


async def test_a_lease_that_was_given_up_is_taken_at_once(tmp_path: Path) -> None:
    store = LeaseStore("", leaseTransitions=3)
    async with client_of(tmp_path, store.handle) as (_, client):
        await Lease(client, "ns", "l", "me").acquire()
    assert (store.spec["holderIdentity"], store.spec["leaseTransitions"]) == ("me", 4)


async def test_ones_own_lease_is_taken_up_again(tmp_path: Path) -> None:
    store = LeaseStore("me", leaseTransitions=3, acquireTime="then")
    async with client_of(tmp_path, store.handle) as (_, client):
        await Lease(client, "ns", "l", "me").acquire()
    assert (store.spec["leaseTransitions"], store.spec["acquireTime"]) == (3, "then")


async def test_release(tmp_path: Path) -> None:
    store = LeaseStore("")
    async with client_of(tmp_path, store.handle) as (_, client):
        lease = Lease(client, "ns", "l", "me")
        await lease.acquire()
        await lease.release()
    assert (store.spec["holderIdentity"], store.spec["leaseDurationSeconds"]) == ("", 1)


async def test_somebody_elses_lease_is_not_released(tmp_path: Path) -> None:
    store = LeaseStore("other")
    async with client_of(tmp_path, store.handle) as (_, client):
        await Lease(client, "ns", "l", "me").release()
    assert store.spec["holderIdentity"] == "other"


@pytest.mark.parametrize("answer", [failure(409, "Conflict"), failure(403, "Forbidden")], ids=["409", "403"])
async def test_a_release_that_fails_hurts_nobody(tmp_path: Path, answer: Any) -> None:
    async with client_of(tmp_path, answer) as (_, client):
        await Lease(client, "ns", "l", "me").release()


async def test_a_release_reads_again_when_the_lease_was_written_in_between(tmp_path: Path) -> None:
    store, writes = LeaseStore("me"), 3

    async def interfere(request: web.Request) -> web.Response:
        nonlocal writes
        if request.method == "PUT" and writes:
            writes -= 1
            store.answer("PUT", store.lease)
        return await store.handle(request)

    async with client_of(tmp_path, interfere) as (_, client):
        await Lease(client, "ns", "l", "me").release()
    assert (store.spec["holderIdentity"], writes) == ("", 0)


class VirtualClient(Client):
    """A client of a LeaseStore in virtual time; each request takes `seconds`, or for ever.

    What was sent is answered, and stored, also if the client no longer waits for it.
    """

    def __init__(self, store: LeaseStore) -> None:
        super().__init__(Connection())
        self.store = store
        self.seconds = 0.01
        self.trouble: Exception | None = None
        self.hangs = False
        self.written: list[float] = []

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        once: bool = False,
        most: int | None = None,
        lean: bool = False,
    ) -> dict[str, Any]:
        sent = asyncio.create_task(self._answer(method, deepcopy(body)))
        return await asyncio.shield(sent)

    async def _answer(self, method: str, body: Any) -> dict[str, Any]:
        await asyncio.sleep(self.seconds)
        if self.hangs:
            await asyncio.Event().wait()
        if self.trouble is not None:
            raise self.trouble
        answer = self.store.answer(method, body)
        if method != "GET":
            self.written.append(now())
        return deepcopy(answer)


Story = Callable[[VirtualClient, Lease], Coroutine[Any, Any, None]]


def tell(story: Story, store: LeaseStore | None = None) -> None:
    """Run a test in virtual time."""

    async def main() -> None:
        client = VirtualClient(store or LeaseStore())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("crdkeeper.cluster.transport.lease.time", SimpleNamespace(monotonic=now))
            clocks = SimpleNamespace(clock_gettime=lambda _: now())
            patch.setattr("crdkeeper.cluster.transport.fence.time", clocks)
            await story(client, Lease(client, "ns", "l", "me"))

    virtualtime.run(main())


async def lost_after(client: VirtualClient, lease: Lease) -> float:
    """Hold until it is lost; returns how long after the last renewal that was."""
    # Another task: without it, a hanging request would end virtual time.
    other = asyncio.create_task(asyncio.sleep(1e6))
    with pytest.raises(LeaseLost):
        await lease.hold()
    other.cancel()
    return now() - client.written[-1]


def test_a_holder_renews_in_time() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        with suppress(TimeoutError):
            async with asyncio.timeout(100):
                await lease.hold()
        gaps = [later - before for before, later in zip(client.written, client.written[1:], strict=False)]
        assert len(gaps) > 40
        assert max(gaps) < 3

    tell(story)


@pytest.mark.parametrize(
    "trouble",
    [Unreachable("refused"), ApiError(500, {"message": "etcdserver: leader changed"}), ApiError(409, {})],
    ids=["refused", "500", "409"],
)
def test_a_holder_that_cannot_renew_gives_up_before_others_take_over(trouble: Exception) -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        client.trouble = trouble
        assert await lost_after(client, lease) <= 10

    tell(story)


@pytest.mark.parametrize("moment", [0.0, 0.5, 1.9, 2.0, 7.3])
def test_a_holder_whose_request_hangs_gives_up_before_others_take_over(moment: float) -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        asyncio.get_running_loop().call_later(moment, setattr, client, "hangs", True)
        assert await lost_after(client, lease) <= 10

    tell(story)


def test_a_slow_renewal_counts_from_when_it_was_sent() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        client.seconds = 2.4
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(9.0, setattr, client, "hangs", True)
        assert await lost_after(client, lease) <= 10

    tell(story)


def test_a_short_outage_is_survived() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        client.trouble = Unreachable("refused")
        asyncio.get_running_loop().call_later(8.0, setattr, client, "trouble", None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await lease.hold()

    tell(story)


def test_a_holder_notices_that_another_took_over() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        client.store.answer("PUT", {**(client.store.lease or {}), "spec": {"holderIdentity": "other"}})
        with pytest.raises(LeaseLost, match="other holds the Lease instead of me"):
            await lease.hold()
        assert now() < 3

    tell(story)


def test_a_lease_that_was_deleted_is_made_again() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        client.store.lease = None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await lease.hold()
        assert client.store.spec["holderIdentity"] == "me"

    tell(story)


def test_a_candidate_waits_until_the_lease_stood_still_for_its_duration() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        # Only its own clock counts: according to renewTime, from another clock, it expired long ago.
        assert 15 <= now() <= 18
        assert client.store.spec["holderIdentity"] == "me"

    tell(story, LeaseStore("other", renewTime="2001-01-01T00:00:00.000000Z"))


def test_a_candidate_does_not_disturb_a_holder() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        async def renew() -> None:
            while True:
                await asyncio.sleep(14)
                client.store.answer("PUT", client.store.lease)

        other = asyncio.create_task(renew())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(200):
                await lease.acquire()
        other.cancel()
        assert client.store.spec["holderIdentity"] == "other"

    tell(story, LeaseStore("other"))


def test_of_two_candidates_one_wins() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        rival = Lease(client, "ns", "l", "rival")
        contest = {each: asyncio.create_task(each.acquire()) for each in (lease, rival)}
        await asyncio.wait(contest.values(), timeout=10)
        assert sum(each.done() for each in contest.values()) == 1
        for each in contest.values():
            each.cancel()

    tell(story, LeaseStore(""))


def test_a_candidate_outlives_trouble() -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        client.hangs = True
        asyncio.get_running_loop().call_later(30.0, setattr, client, "hangs", False)
        await lease.acquire()
        assert 30 <= now() <= 40
        assert lease.contacted_at > 30

    tell(story)


@pytest.mark.parametrize("moment", [0.0, 0.1, 0.4, 0.5, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("holder", [None, "", "me"])
def test_a_release_while_it_is_acquired(holder: str | None, moment: float) -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        client.seconds = 0.5
        await ends_released(client, lease, asyncio.create_task(lease.acquire()), moment)

    tell(story, LeaseStore(holder))


@pytest.mark.parametrize("moment", [0.0, 1.9, 2.0, 2.1, 2.4, 2.5, 2.6, 2.9, 3.0])
def test_a_release_while_it_is_renewed(moment: float) -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        client.seconds = 0.5
        await ends_released(client, lease, asyncio.create_task(lease.hold()), moment)

    tell(story, LeaseStore("me"))


async def ends_released(
    client: VirtualClient, lease: Lease, taking: asyncio.Task[None], moment: float
) -> None:
    """Check that a release at that moment is final, and that the process is not held up."""
    await asyncio.sleep(moment)
    began = now()
    await lease.release()
    assert now() - began <= 2
    taking.cancel()
    await asyncio.sleep(20)
    assert client.store.lease is None or client.store.spec["holderIdentity"] == ""


def test_a_release_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def story(client: VirtualClient, lease: Lease) -> None:
        await lease.acquire()
        client.hangs = True
        holding = asyncio.create_task(lease.hold())
        await asyncio.sleep(3)
        async with asyncio.timeout(10.5):
            await lease.release()
        holding.cancel()

    tell(story)
    assert "The Lease was not released" in caplog.text
