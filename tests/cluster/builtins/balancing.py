"""A load balancer before several API servers: each new connection leads to the next one of them.

In a thread of its own, because a test that restarts an API server blocks its own event loop for seconds, and
an operator without an answer for so long gives its Lease up.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from threading import Thread

from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.plane import ControlPlane

_PIECE = 1 << 16


@contextmanager
def balanced(plane: ControlPlane, directory: Path, account: Path | None = None) -> Iterator[Path]:
    """The kubeconfig of an account at the first API server, with the balancer as the server.

    By default it is the operator's.
    """
    balancer = _Balancer([int(each.url.rpartition(":")[2]) for each in plane.api_servers])
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(balancer.start(), loop).result(10.0)
        original = account or plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
        kubeconfig = directory / "balanced.kubeconfig"
        kubeconfig.write_text(original.read_text().replace(plane.url, f"https://127.0.0.1:{port}"))
        yield kubeconfig
    finally:
        asyncio.run_coroutine_threadsafe(balancer.close(), loop).result(10.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10.0)
        loop.close()


class _Balancer:
    def __init__(self, ports: list[int]) -> None:
        self._ports = cycle(ports)
        self._tasks = set[asyncio.Task[None]]()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listens; returns the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", next(self._ports))
        except OSError:
            writer.close()
            return
        for pump in (_pump(reader, back), _pump(there, writer)):
            task = asyncio.create_task(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                writer.write(piece)
                await writer.drain()
    finally:
        writer.close()
