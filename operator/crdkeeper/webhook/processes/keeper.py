"""The process that follows rules, certificate and policies for all others, and speaks for them on its port.

It also has what a replica has once: the workers for large conversions, and the judge of changes of CRDs. What
it has told the others stays with them when it ends, and the next keeper tells them again.
"""

import asyncio
import logging
import os
import signal
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson

from crdkeeper.cluster.transport.client import ApiError, NoCredentials
from crdkeeper.cluster.transport.connection import ConfigurationError
from crdkeeper.core.conversion.review import BadReview
from crdkeeper.supervision import supervise
from crdkeeper.webhook.certificate import CertificateFiles
from crdkeeper.webhook.changes.clusterpolicies import PolicySource
from crdkeeper.webhook.changes.judging import ChangeJudging
from crdkeeper.webhook.conversion.worker import Busy, Worker, WorkerFailed
from crdkeeper.webhook.http.http1 import Http1Server
from crdkeeper.webhook.http.types import Body, HttpLimits, Response
from crdkeeper.webhook.metrics import Tally, WebhookMetrics, added
from crdkeeper.webhook.probes import probed, readiness
from crdkeeper.webhook.processes import messages as say
from crdkeeper.webhook.processes.board import Board
from crdkeeper.webhook.processes.channel import Channel
from crdkeeper.webhook.processes.orders import follow_orders
from crdkeeper.webhook.processes.relay import Answer
from crdkeeper.webhook.processes.serving import BEAT_SECONDS, first_of
from crdkeeper.webhook.processes.stalls import Stalls
from crdkeeper.webhook.rules.rulebook import RuleSource, Served
from crdkeeper.webhook.server import REFRESH_SECONDS, WebhookOptions

_log = logging.getLogger(__name__)

STALLED_SECONDS: Final = 10.0
"""After which /healthz names a process that hangs. The parent replaces it some time later."""
_AGAIN_SECONDS: Final = 30.0
BROKEN: Final = signal.SIGUSR1
"""Tells the parent that a task has ended which must not: all processes end, for a fresh start."""


class _Rules(NamedTuple):
    """Those of a serving process: they may be other ones than the keeper's, just after a change."""

    digest: str
    bundle: bytes


class _Peer:
    """A serving process, as its keeper sees it."""

    def __init__(self) -> None:
        self.channel: Channel | None = None
        self.told: dict[str, Served] = {}
        self.certificate: tuple[bytes, bytes] = (b"", b"")
        self.token = ""
        self.whole = False
        """Whether it has been told everything once."""
        self.serving = False
        self.counted: Tally = []
        self.answering: dict[int, asyncio.Task[Answer]] = {}
        """The questions that are not answered yet."""

    def leave(self) -> None:
        """It is gone, and its clients with it."""
        self.serving = False
        self.channel = None
        for each in self.answering.values():
            each.cancel()


class KeeperProcess:
    """The one keeper of several serving processes."""

    def __init__(
        self,
        options: WebhookOptions,
        rules: RuleSource,
        policies: PolicySource | None,
        board: Board,
        serving: int,
    ) -> None:
        self._options, self._rules, self._policies, self._board = options, rules, policies, board
        self._row = serving
        self._peers = {row: _Peer() for row in range(serving)}
        self._stalls = Stalls(serving, STALLED_SECONDS / BEAT_SECONDS)
        self._metrics = WebhookMetrics()
        self._past: Tally = []
        """What processes counted that are gone."""
        self._certificate = CertificateFiles(options.certificate, options.key)
        self._worker = Worker(serving)
        self._judging = ChangeJudging(policies, self._metrics, rules) if policies is not None else None
        self._probes = Http1Server(self._probe, HttpLimits(body_bytes=1024, connections=100))
        self._loaded = self._stopping = False
        self._broken = ""

    async def run(self, orders: socket.socket, parent: int) -> None:
        """Run until the parent, which has this process id, ends or lets go of it.

        Raises OSError, ssl.SSLError or ValueError if the certificate or the port of the probes is unusable.
        """
        loop = asyncio.get_running_loop()
        released, told = asyncio.Event(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, told.set)
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C is meant for the parent
        try:
            self._certificate.found()
        except (OSError, ssl.SSLError, ValueError) as error:
            if not self._board.was_ready(self._row):
                raise
            _log.error("The certificate cannot be used; others still serve with the old one: %s", error)
        await self._probes.start(self._options.host, self._options.probe_port)
        follow_orders(orders, self._meet, released.set)
        tasks = {
            "probes": self._probes.served(),
            "rules": self._follow_rules(),
            "certificate": self._follow_certificate(),
            "the worker": self._worker.run(),
            "the beat": self._beat(),
        }
        if self._judging is not None:
            tasks["changes"] = self._judging.run()
        working = asyncio.create_task(supervise(tasks, self._broke))
        try:
            await first_of(working, told.wait(), released.wait())
            self._stopping = True
            if working.done() and os.getppid() == parent:
                os.kill(parent, BROKEN)
            await first_of(released.wait(), self._until_uninstalled())
            await released.wait()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await self._probes.stop(0.0)
            await self._rules.close()

    def _broke(self, what: str) -> None:
        self._broken = what
        _log.error("A task ended, ending for a fresh start: %s", what)

    async def _until_uninstalled(self) -> None:
        if self._broken:
            # Permanently refused credentials would look like a deleted account.
            await asyncio.Event().wait()
        await self._rules.uninstalled()
        for each in self._peers.values():
            if each.channel is not None:
                each.channel.send({say.LEAVE: True})

    async def _follow_rules(self) -> None:
        while True:
            try:
                await self._rules.run(self._have_loaded)
            except (ApiError, NoCredentials, ConfigurationError) as error:
                # Rules that this process does not have serve in the others.
                if not self._board.was_ready(self._row):
                    raise
                _log.error("The rules cannot be read; others still serve those that they have: %s", error)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _have_loaded(self) -> None:
        self._loaded = True
        self._tell_all()

    async def _follow_certificate(self) -> None:
        if self._certificate.content[0] == b"":
            _log.info("Waiting for %s and %s.", self._options.certificate, self._options.key)
        while True:
            self._metrics.expiry.set(self._certificate.serving.expires)
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                if self._certificate.found():
                    self._tell_all()
            except (OSError, ssl.SSLError, ValueError) as error:
                _log.error("The new certificate cannot be used; still serving with the old one: %s", error)

    async def _beat(self) -> None:
        while True:
            self._board.beat(self._row)
            self._stalls.look(self._board.beats)
            # The token of API servers may have changed.
            self._tell_all()
            await asyncio.sleep(BEAT_SECONDS)

    def _meet(self, row: int, end: socket.socket) -> None:
        """There is a new process, which knows nothing, or one that knew the keeper before this one."""
        peer = self._peers[row]
        if peer.channel is not None:
            peer.channel.close()
        peer.leave()
        self._past = added([self._past, peer.counted])
        peer = self._peers[row] = _Peer()
        peer.channel = Channel(end, lambda said, carried: self._hear(peer, said, carried), peer.leave)
        self._tell(peer)

    def _tell_all(self) -> None:
        for each in self._peers.values():
            self._tell(each)

    def _tell(self, peer: _Peer) -> None:
        """Tell it what it does not know yet; of the rules nothing before all are known here.

        Certificate and token do not wait for the rules: without those, a replica may serve on until its
        certificate expires.
        """
        channel = peer.channel
        if channel is None:
            return
        if self._certificate.content != peer.certificate:
            peer.certificate = self._certificate.content
            channel.send({say.CERTIFICATE: len(peer.certificate[0])}, b"".join(peer.certificate))
        token = self._policies.token if self._policies is not None else ""
        if token != peer.token:
            peer.token = token
            channel.send({say.TOKEN: token})
        if not self._loaded:
            return
        conversions = self._rules.conversions
        for name, served in conversions.items():
            if peer.told.get(name) is not served:
                channel.send({say.RULES: name, say.DIGEST: served.digest}, served.bundle)
        for name in peer.told.keys() - conversions.keys():
            channel.send({say.DROP: name})
        peer.told = dict(conversions)
        if not peer.whole:
            peer.whole = True
            channel.send({say.WHOLE: True})

    def _hear(self, peer: _Peer, said: Mapping[str, Any], carried: bytes) -> None:
        if say.SERVING in said:
            peer.serving = said[say.SERVING]
        elif say.COUNTED in said:
            peer.counted = orjson.loads(carried)
        elif say.FORGET in said:
            answering = peer.answering.get(said[say.FORGET])
            if answering is not None:
                answering.cancel()
        else:
            number = said[say.ID]
            peer.answering[number] = answering = asyncio.create_task(self._found(peer, said, carried))
            answering.add_done_callback(lambda task: self._answer(peer, number, task))

    def _answer(self, peer: _Peer, number: int, task: asyncio.Task[Answer]) -> None:
        """Also what was forgotten has an answer: then it holds no memory here."""
        del peer.answering[number]
        answer: dict[str, Any] = {}
        content = b""
        if not task.cancelled():
            error = task.exception()
            if error is None:
                answer, content = task.result()
            else:
                _log.error("A question of another process cannot be answered.", exc_info=error)
        if peer.channel is not None:
            peer.channel.send({**answer, say.ID: number}, content)

    async def _found(self, peer: _Peer, said: Mapping[str, Any], carried: bytes) -> Answer:
        if say.LOOK in said:
            await self._rules.look_again(said[say.LOOK])
            self._tell(peer)
            return {say.LOOK: True}, b""
        if say.CONVERT in said:
            return await self._converted(said, carried)
        if self._judging is None:
            return {}, b""
        made = await self._judging.answer(carried)
        return {say.STATUS: made.status, say.HEADERS: made.headers.decode("latin-1")}, made.body

    async def _converted(self, said: Mapping[str, Any], carried: bytes) -> Answer:
        length = said[say.CONVERT]
        rules = _Rules(said[say.DIGEST], carried[:length])
        try:
            reply = await self._worker.convert(rules, carried[length:], said[say.SOURCE])
        except BadReview as error:
            return {say.BAD: str(error)}, b""
        except WorkerFailed:
            return {say.FAILED: True}, b""
        except Busy:
            return {}, b""
        heard = reply._asdict()
        return {say.REPLY: heard}, heard.pop("content")

    def _probe(self, method: str, path: str, _: Body, __: str) -> Response:
        return probed(method, path, self._healthz, self._readyz, self._exposition)

    def _healthz(self) -> Response:
        hanging = self._stalls.rows()
        if hanging:
            return Response(f"hanging: {', '.join(f'server {row}' for row in hanging)}\n".encode(), 503)
        return Response(b"alive\n")

    def _readyz(self) -> Response:
        # What this keeper finds bad, the one before it may have found after the others had their rules.
        served = self._board.was_ready(self._row) and self._serving() > 0
        made = readiness(
            self._rules,
            broken=self._broken,
            stopping=self._stopping,
            loaded=self._loaded,
            served=served,
            judging=bool(self._policies is not None and self._policies.content),
            listening=self._serving() > 0,
            certificate=self._options.certificate,
        )
        if made.status == HTTPStatus.OK:
            self._board.note_ready(self._row)
        rest = f"{self._serving()} of {len(self._peers)} processes serve\n".encode()
        return made._replace(body=made.body + rest)

    def _serving(self) -> int:
        hanging = self._stalls.rows()
        return sum(each.serving and row not in hanging for row, each in self._peers.items())

    def _exposition(self) -> Response:
        self._metrics.problems.set(len(self._rules.problems))
        self._metrics.stale.set(self._rules.unseen()[0])
        return self._metrics.answer([self._past, *(each.counted for each in self._peers.values())])
