"""Messages between processes arrive whole, in order, whatever their size."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crdkeeper.webhook.processes import channel
from crdkeeper.webhook.processes.channel import Channel, pair

Message = tuple[dict[str, Any], bytes]


class Ends:
    """Two channels, and what has arrived at the second one."""

    def __init__(self) -> None:
        one, other = pair()
        self.lost = asyncio.Event()
        self.heard: asyncio.Queue[Message] = asyncio.Queue()
        self.sender = Channel(one, lambda *_: None, lambda: None)
        self.receiver = Channel(other, lambda *message: self.heard.put_nowait(message), self.lost.set)

    async def next(self) -> Message:
        async with asyncio.timeout(60.0):
            return await self.heard.get()


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    made = Ends()
    yield made
    made.sender.close()
    made.receiver.close()


@pytest.mark.parametrize(
    ("said", "carried"),
    [
        ({}, b""),
        ({"a": 1}, b"x"),
        ({"a": "x" * 300_000}, b""),
        ({"a": "x" * 300_000}, b"y" * 3),
        ({"a": 1}, bytes(range(256)) * 200_000),
    ],
    ids=["empty", "small", "much is said", "much is said and carried", "much is carried"],
)
async def test_a_message_arrives_whole(ends: Ends, said: dict[str, Any], carried: bytes) -> None:
    ends.sender.send(said, carried)
    assert await ends.next() == (said, carried)


async def test_messages_arrive_in_order_also_if_the_other_end_is_slow(ends: Ends) -> None:
    count = 3000
    for number in range(count):
        ends.sender.send({"number": number}, b"x" * (number % 3))
    assert not ends.sender.idle, "all fit: nothing had to wait"
    for number in range(count):
        assert await ends.next() == ({"number": number}, b"x" * (number % 3))
    assert ends.sender.idle


async def test_too_many_files_on_their_way_are_waited_for(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, full = socket.send_fds, True

    def refuse(*arguments: Any) -> int:
        if full:
            raise OSError(109, "Too many references: cannot splice")
        return send(*arguments)

    monkeypatch.setattr(channel, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(socket, "send_fds", refuse)
    ends.sender.send({"a": 1}, b"x")
    await asyncio.sleep(0.02)
    assert not ends.sender.idle
    full = False
    assert await ends.next() == ({"a": 1}, b"x")


async def test_the_other_end_is_lost_when_its_process_ends(ends: Ends) -> None:
    ends.sender.send({"last": 1})
    ends.sender.close()
    ends.sender.send({"too late": 1})
    async with asyncio.timeout(60.0):
        await ends.lost.wait()
    assert ends.heard.get_nowait() == ({"last": 1}, b"")
    assert ends.heard.empty()
    ends.receiver.send({"nobody": "hears this"})
