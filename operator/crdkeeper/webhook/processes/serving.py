"""A process that serves: it accepts connections from the socket that all of them share, and converts.

It takes all that it must know from the keeper, and goes on serving while there is none.
"""

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

import orjson

from crdkeeper.supervision import supervise
from crdkeeper.webhook.certificate import PortCertificate
from crdkeeper.webhook.conversion.converting import Converting
from crdkeeper.webhook.http.http1 import Http1Server
from crdkeeper.webhook.http.types import HttpLimits, Response
from crdkeeper.webhook.metrics import WebhookMetrics
from crdkeeper.webhook.processes.board import Beside, Board
from crdkeeper.webhook.processes.orders import follow_orders
from crdkeeper.webhook.processes.relay import Relay
from crdkeeper.webhook.routes import Routes, affordable, prepare_to_serve
from crdkeeper.webhook.server import NOTICE_SECONDS, SHUTDOWN_SECONDS, WebhookOptions

_log = logging.getLogger(__name__)

BEAT_SECONDS: Final = 0.5


class ServingProcess:
    """One of several processes that serve the same port."""

    def __init__(self, options: WebhookOptions, board: Board, row: int, serving: int) -> None:
        self._options, self._board, self._row = options, board, row
        self._certificate = PortCertificate()
        self._metrics = WebhookMetrics()
        limits = HttpLimits(body_bytes=options.max_bytes, held_bytes=2 * options.max_bytes)
        self._relay = Relay(self._certificate, limits.held_bytes)
        converting = Converting(self._relay, self._metrics, self._relay)
        routes = Routes(converting.answer, self._relay)
        # A source has its part of each process: those that connect more often than others give way in each.
        limits = replace(
            limits, connections=-(-limits.connections // serving), handshakes=-(-limits.handshakes // serving)
        )
        beside = Beside(board, row, serving)
        self._server = Http1Server(
            routes.answer, affordable(limits), routes.gate, self._unread, neighbors=beside
        )

    async def run(self, listener: socket.socket, orders: socket.socket) -> None:
        """Serve until SIGTERM, then until clients have left; or, if the parent ends, no longer than needed.

        Raises TaskEnded if a task ended that must not.
        """
        prepare_to_serve()
        loop = asyncio.get_running_loop()
        told, orphaned = asyncio.Event(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, told.set)
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C is meant for the parent
        follow_orders(orders, lambda _, end: self._relay.connect(end), orphaned.set)
        tasks = {
            "conversions": self._serve(listener),
            "the rules": self._relay.run(),
            "the beat": self._beat(),
        }
        working = asyncio.create_task(supervise(tasks, lambda what: None))
        try:
            await first_of(working, told.wait(), orphaned.wait())
            if not working.done() and not orphaned.is_set():
                await first_of(working, self._drain(), orphaned.wait())
        finally:
            await self._server.stop(SHUTDOWN_SECONDS)
            self._tell_counted()
            if working.done():
                working.result()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _serve(self, listener: socket.socket) -> None:
        await self._relay.whole.wait()
        # What exists by now stays: scanning it for garbage again and again delays answers.
        gc.freeze()
        self._server.serve(listener, self._certificate.context)
        self._relay.tell_serving(True)
        _log.info("Serving.")
        await self._server.served()

    async def _beat(self) -> None:
        while True:
            self._board.beat(self._row)
            self._tell_counted()
            await asyncio.sleep(BEAT_SECONDS)

    def _tell_counted(self) -> None:
        self._metrics.connections_are(self._server.accepted)
        self._relay.tell_counted(lambda: orjson.dumps(self._metrics.tally()))

    async def _drain(self) -> None:
        """Return once all clients have left, or nobody needs this webhook any more."""
        self._server.draining = True
        await first_of(self._relay.uninstalled.wait(), self._leave())

    async def _leave(self) -> None:
        seconds = self._options.drain_seconds
        notice = min(NOTICE_SECONDS, seconds)
        await asyncio.sleep(notice)
        await self._server.left(seconds - notice)

    def _unread(self, _: Response) -> None:
        self._metrics.refused("")


async def first_of(*works: asyncio.Task[Any] | Coroutine[Any, Any, Any]) -> None:
    """Return when the first of them ends, and cancel the others, except for tasks."""
    given = {each for each in works if isinstance(each, asyncio.Task)}
    made = {asyncio.create_task(each) for each in works if not isinstance(each, asyncio.Task)}
    try:
        await asyncio.wait(given | made, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in made:
            each.cancel()
