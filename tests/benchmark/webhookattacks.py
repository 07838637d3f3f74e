"""What a network neighbour of the conversion webhook can do to the requests of API servers, in figures.

`python -m tests.benchmark.webhookattacks` starts `crdkeeper webhook` for each attack, lets it serve a client
that behaves like an API server, and prints what that client noticed and what memory the webhook used.
"""

import argparse
import asyncio
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.benchmark import conversionsubject as subject
from tests.benchmark.command import noise_shown
from tests.benchmark.conversioncontestants import LOOPBACK, Ours
from tests.benchmark.load import post
from tests.benchmark.meter import peak_memory, reset_peak_memory, resident_memory
from tests.certificates import Authority

NEIGHBOUR: Final = "127.0.0.2"
"""The source address of attacks."""
_CONNECTIONS: Final = 25
"""Kept by an API server (client-go's webhook.ClientManager)."""
_PATIENCE: Final = 30.0
"""Seconds that an API server waits for an answer."""
_MIB: Final = 1 << 20


@dataclass(slots=True)
class Client:
    """Small reviews over connections that are mostly idle, as from an API server with little to do."""

    ours: Ours
    tls: ssl.SSLContext
    address: str = LOOPBACK
    pause: float = 1.0
    """Seconds between two requests of a connection, on average."""
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Sends requests until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_CONNECTIONS):
                group.create_task(self._ask(number))

    async def _ask(self, number: int) -> None:
        random = Random(number)
        review = subject.review(self.ours.group, "v1alpha1", [subject.stored(self.ours.group, "v1", number)])
        request = post(self.ours.path, review)
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(_PATIENCE):
                    if streams is None:
                        streams = await connect(self.ours, self.tls, self.address)
                    await _answered(*streams, request)
                self.latencies.append(time.monotonic() - began)
            except (OSError, EOFError, ValueError) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                if streams is not None:
                    streams[1].transport.abort()
                    streams = None
            await asyncio.sleep(random.uniform(0.0, 2 * self.pause))


async def connect(
    ours: Ours, tls: ssl.SSLContext | None, address: str = NEIGHBOUR
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection from that address. Raises OSError."""
    return await asyncio.open_connection(LOOPBACK, ours.port, ssl=tls, local_addr=(address, 0))


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    if not head.startswith(b"HTTP/1.1 200 ") or b'"Success"' not in body:
        raise ValueError((head.partition(b"\r\n")[0] + b" " + body[:80]).decode())


Attack = Callable[[Ours, ssl.SSLContext, float], Awaitable[str]]
"""Runs for some seconds, and returns what it did."""


async def trailers(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """18 clients send headers after a body in chunks, and do not stop."""
    head = f"POST {ours.path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n"
    return await _flood(ours, tls, seconds, 18, head.encode() + b"X: ", b"y" * 65536)


async def _flood(
    ours: Ours, tls: ssl.SSLContext, seconds: float, clients: int, begin: bytes, more: bytes
) -> str:
    sent = 0

    async def one() -> None:
        nonlocal sent
        while True:
            with suppress(OSError):
                reader, writer = await connect(ours, tls)
                writer.write(begin)
                while not reader.at_eof():
                    writer.write(more)
                    await writer.drain()
                    sent += len(more)
                    await asyncio.sleep(0)
            await asyncio.sleep(0.1)

    await _for(seconds, *(one() for _ in range(clients)))
    return f"{sent / _MIB:,.0f} MiB sent by {clients} clients"


async def connects(ours: Ours, _: ssl.SSLContext, seconds: float) -> str:
    """150 TCP connections per second that send nothing."""
    return await _connects(ours, seconds, 150)


async def _connects(ours: Ours, seconds: float, rate: int) -> str:
    made: list[asyncio.StreamWriter] = []

    async def open_them() -> None:
        began = time.monotonic()
        while True:
            while len(made) < rate * (time.monotonic() - began):
                made.append((await connect(ours, None))[1])
            await asyncio.sleep(0.01)

    await _for(seconds, open_them())
    for each in made:
        each.transport.abort()
    return f"{len(made):,} connections"


async def established(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """As many TLS connections as possible, each idle after one good request."""
    review = subject.review(ours.group, "v1alpha1", [subject.stored(ours.group, "v1", 0)])
    made: list[asyncio.StreamWriter] = []

    async def open_them() -> None:
        while True:
            with suppress(OSError, EOFError):
                reader, writer = await connect(ours, tls)
                made.append(writer)
                await _answered(reader, writer, post(ours.path, review))
            await asyncio.sleep(0.001)

    await _for(seconds, *(open_them() for _ in range(4)))
    for each in made:
        each.transport.abort()
    return f"{len(made):,} connections"


async def pauses(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """Two clients send 16 MiB less a byte, wait until they are refused, and begin again."""
    size = 16 * _MIB
    begun = 0

    async def one() -> None:
        nonlocal begun
        while True:
            with suppress(OSError):
                reader, writer = await connect(ours, tls)
                begun += 1
                writer.write(
                    f"POST {ours.path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode()
                )
                writer.write(b"y" * (size - 1))
                await writer.drain()
                await reader.read()
            await asyncio.sleep(0.1)

    await _for(seconds, one(), one())
    return f"{begun} requests begun by 2 clients"


async def bursts(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """900 clients send 256 KiB of a body at once and pause, so that every buffer is as large as possible."""
    writers: list[asyncio.StreamWriter] = []

    async def open_them() -> None:
        with suppress(OSError):
            _, writer = await connect(ours, tls)
            writers.append(writer)
            head = f"POST {ours.path} HTTP/1.1\r\nHost: a\r\nContent-Length: 260000\r\n\r\n"
            writer.write(head.encode() + b"y" * 259_999)

    async def all_of_them() -> None:
        for _ in range(900):
            await open_them()
        await asyncio.sleep(3600)

    await _for(seconds, all_of_them())
    for each in writers:
        each.transport.abort()
    return f"{len(writers)} connections"


async def slow_readers(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """200 clients request large answers and do not read them."""
    objects = [{"apiVersion": f"{ours.group}/v1", "kind": "CronTab", "spec": {"host": "h" * 250_000}}]
    review = post(ours.path, subject.review(ours.group, "v1alpha1", objects * 20))
    writers: list[asyncio.StreamWriter] = []

    async def ask() -> None:
        while True:
            with suppress(OSError):
                _, writer = await connect(ours, tls)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writers.append(writer)
                writer.write(review)
                await writer.drain()
                await asyncio.sleep(3600)

    await _for(seconds, *(ask() for _ in range(200)))
    for each in writers:
        each.transport.abort()
    return f"{len(writers)} answers of {len(review) / _MIB:.1f} MiB not taken"


async def values(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """One client sends reviews of nearly 500,000 values in 1.5 MB, one after the other."""
    objects = b",".join([b'{"apiVersion":"%s/v1"}' % ours.group.encode()] * 240_000)
    body = (
        b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"a",'
        b'"desiredAPIVersion":"%s/v1alpha1","objects":[%s]}}' % (ours.group.encode(), objects)
    )
    return await _repeat(ours, tls, seconds, post(ours.path, body), 1)


async def medium(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """Four clients send reviews of 250 KB, one after the other."""
    objects = [subject.stored(ours.group, "v1", number) for number in range(150)]
    return await _repeat(
        ours, tls, seconds, post(ours.path, subject.review(ours.group, "v1alpha1", objects)), 4
    )


async def _repeat(ours: Ours, tls: ssl.SSLContext, seconds: float, request: bytes, clients: int) -> str:
    answered, refused = 0, 0

    async def one() -> None:
        nonlocal answered, refused
        while True:
            try:
                reader, writer = await connect(ours, tls)
                while True:
                    await _answered(reader, writer, request)
                    answered += 1
            except (OSError, EOFError):
                await asyncio.sleep(0.1)
            except ValueError:
                refused += 1
                writer.transport.abort()
                await asyncio.sleep(0.1)

    await _for(seconds, *(one() for _ in range(clients)))
    return f"{len(request):,} bytes: {answered} answered, {refused} refused"


async def quadratic(ours: Ours, tls: ssl.SSLContext, seconds: float) -> str:
    """One client sends an object of 60 KB whose list comes back with every item changed."""
    containers = [{"name": "a", "memory": f"{number}.5Gi"} for number in range(1800)]
    return await _repeat(ours, tls, seconds, post(ours.path, _review_of(ours, {"containers": containers})), 1)


def _review_of(ours: Ours, spec: object) -> bytes:
    object_ = {"apiVersion": f"{ours.group}/v1", "kind": "CronTab", "metadata": {"name": "a"}, "spec": spec}
    return subject.review(ours.group, "v1alpha1", [object_])


async def _for(seconds: float, *work: Awaitable[None]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*work)


ATTACKS: Final[dict[str, Attack]] = {
    each.__name__: each
    for each in (
        trailers,
        connects,
        established,
        pauses,
        bursts,
        slow_readers,
        values,
        medium,
        quadratic,
    )
}


async def figures(ours: Ours, attack: Attack, seconds: float, address: str) -> str:
    """One line about an attack on a newly started webhook."""
    tls = ssl.create_default_context(cafile=str(ours.ca_file))
    client = Client(ours, tls, address)
    working = asyncio.create_task(client.run())
    await asyncio.sleep(2.0)
    pid = ours.process.pid
    client.latencies.clear()
    before = resident_memory(pid)
    reset_peak_memory(pid)
    did = await attack(ours, tls, seconds)
    memory = peak_memory(pid)
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    latencies = sorted(client.latencies) or [0.0]
    sent = len(client.latencies) + len(client.failures)
    said = max(set(client.failures), key=client.failures.count) if client.failures else ""
    return (
        f"{did}; the API server: {len(client.failures)} of {sent:,} requests failed {said!r}, "
        f"p50 {1000 * latencies[len(latencies) // 2]:.1f} ms, slowest {1000 * latencies[-1]:,.0f} ms; "
        f"memory {before // _MIB} to {memory // _MIB} MiB"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each attack."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark.webhookattacks", description=__doc__)
    parser.add_argument(
        "attacks", nargs="*", choices=[*ATTACKS, []], metavar="ATTACK", help=", ".join(ATTACKS)
    )
    parser.add_argument("--seconds", type=float, default=15.0, help="for each attack")
    parser.add_argument(
        "--same-address",
        action="store_true",
        help="the API server's requests come from the attacker's address",
    )
    options = parser.parse_args(arguments)
    address = NEIGHBOUR if options.same_address else LOOPBACK
    with noise_shown():
        for name in options.attacks or ATTACKS:
            with tempfile.TemporaryDirectory(prefix="crdkeeper-attack-") as directory:
                ours = Ours(Authority(), Path(directory))
                try:
                    ours.start()
                    line = asyncio.run(figures(ours, ATTACKS[name], options.seconds, address))
                finally:
                    ours.close()
            print(f"{name}: {line}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
