"""No write after the moment at which another process may write, even if nothing has run in between."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH, METADATA_ONLY, Client, Unreachable
from crdkeeper.cluster.transport.fence import Fence, Fenced, clock
from crdkeeper.cluster.transport.http1 import Http1Pool
from crdkeeper.cluster.transport.lease import Lease, LeaseLost
from tests import virtualtime
from tests.unit.cluster.transport.leasestore import LeaseStore
from tests.unit.cluster.transport.localserver import client_of, json
from tests.unit.cluster.transport.test_lease import VirtualClient
from tests.virtualtime import now

Write = Callable[[Client], Awaitable[object]]
PATH = "/apis/x"


async def general(client: Client) -> object:
    """A write by the general client."""
    return await client.request("PATCH", PATH, {}, content_type=MERGE_PATCH)


async def lean(client: Client) -> object:
    """A write by the client of migrations."""
    return await client.send_lean(
        "PATCH", PATH, content=b"{}", content_type=MERGE_PATCH, accept=METADATA_ONLY
    )


WRITES = pytest.mark.parametrize("write", [general, lean])


def freeze(seconds: float) -> None:
    """Like SIGSTOP and SIGCONT: no task and no timer of the loop runs meanwhile."""
    time.sleep(seconds)


@WRITES
async def test_the_clock_closes_it(tmp_path: Path, write: Write) -> None:
    async with client_of(tmp_path, json({"a": 1})) as (server, client):
        await write(client)
        client.fence.close_at(clock() + 0.05, "the Lease has ended")
        freeze(0.06)
        with pytest.raises(Unreachable, match=f"PATCH {PATH} is not sent: the Lease has ended"):
            await write(client)
        assert await client.request("GET", PATH) == {"a": 1}
    assert [method for method, _ in server.seen] == ["PATCH", "GET"]


@WRITES
async def test_it_can_be_closed_later_or_at_once(tmp_path: Path, write: Write) -> None:
    async with client_of(tmp_path, json({})) as (server, client):
        client.fence.close_at(clock() - 1.0, "over")
        client.fence.close_at(clock() + 60.0, "over")
        await write(client)
        client.fence.close("another leads")
        with pytest.raises(Unreachable, match="another leads"):
            await write(client)
    assert len(server.seen) == 1


async def test_frozen_while_it_connects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = aiohttp.TCPConnector.connect

    async def slow(*arguments: Any) -> object:
        connection = await connect(*arguments)
        freeze(0.25)
        return connection

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", slow)
    async with client_of(tmp_path, json({})) as (server, client):
        client.fence.close_at(clock() + 0.2, "over")
        with pytest.raises(Unreachable, match="over"):
            await general(client)
        assert await client.request("GET", PATH) == {}
    assert [method for method, _ in server.seen] == ["GET"]


async def test_frozen_while_the_lean_client_connects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = Http1Pool._connect

    async def slow(pool: Http1Pool) -> object:
        connection = await connect(pool)
        freeze(0.25)
        return connection

    monkeypatch.setattr(Http1Pool, "_connect", slow)
    async with client_of(tmp_path, json({})) as (server, client):
        client.fence.close_at(clock() + 0.2, "over")
        with pytest.raises(Unreachable, match="over"):
            await lean(client)
    assert server.seen == []


def test_a_lease_closes_it_unless_it_is_renewed() -> None:
    async def story() -> None:
        client = VirtualClient(LeaseStore())
        lease = Lease(client, "ns", "l", "me")
        await lease.acquire()
        holding = asyncio.create_task(lease.hold())
        await asyncio.sleep(100.0)
        client.fence.check("PATCH")
        holding.cancel()
        await asyncio.sleep(11.0)
        with pytest.raises(Fenced, match="me could not renew the Lease for 10 s"):
            client.fence.check("PATCH")
        client.fence.check("GET")

    with in_virtual_time():
        virtualtime.run(story())


def test_a_lease_has_ended_when_a_machine_that_was_suspended_wakes_up() -> None:
    """Its monotonic clock, and with it that of the loop, stood still meanwhile."""

    async def story() -> None:
        client = VirtualClient(LeaseStore())
        lease = Lease(client, "ns", "l", "me")
        await lease.acquire()
        holding = asyncio.create_task(lease.hold())
        await asyncio.sleep(100.0)
        client.fence.check("PATCH")
        with in_virtual_time(suspended=60.0):
            with pytest.raises(Fenced, match="me could not renew the Lease for 10 s"):
                client.fence.check("PATCH")
            with pytest.raises(LeaseLost):
                await holding

    with in_virtual_time():
        virtualtime.run(story())


@contextmanager
def in_virtual_time(suspended: float = 0.0) -> Iterator[None]:
    """The clocks of a Lease and its fence, on a machine that was suspended for so long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crdkeeper.cluster.transport.lease.time", SimpleNamespace(monotonic=now))
        clocks = SimpleNamespace(clock_gettime=lambda _: now() + suspended)
        patch.setattr("crdkeeper.cluster.transport.fence.time", clocks)
        yield


def test_a_fence_is_open_at_first() -> None:
    Fence().check("DELETE")
