"""Serves over TLS: POST /convert/<plural.group> converts, POST /changes/<token> judges changes of CRDs.

Probes and metrics have a separate port without TLS. The process keeps no state, so that any number of
replicas can serve, even while everything else is down.
"""

import asyncio
import gc
import logging
import signal
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crdkeeper.supervision import TaskEnded, supervise
from crdkeeper.webhook.certificate import CertificateFiles
from crdkeeper.webhook.changes.clusterpolicies import PolicySource
from crdkeeper.webhook.changes.judging import ChangeJudging
from crdkeeper.webhook.conversion.converting import Converting
from crdkeeper.webhook.conversion.worker import Worker
from crdkeeper.webhook.http.http1 import Http1Server
from crdkeeper.webhook.http.types import Body, HttpLimits, Response
from crdkeeper.webhook.metrics import WebhookMetrics
from crdkeeper.webhook.probes import probed, readiness
from crdkeeper.webhook.routes import Routes, affordable, prepare_to_serve
from crdkeeper.webhook.rules.rulebook import RuleSource

_log = logging.getLogger(__name__)

REFRESH_SECONDS = 2.0
SHUTDOWN_SECONDS = 25.0
NOTICE_SECONDS = 5.0
"""How long a Service takes to stop sending connections here after SIGTERM."""
DRAIN_SECONDS = 95.0
"""API servers close what was idle for 90 s. If we closed first, a request could be on its way just then."""


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Where to listen, with which certificate, and how long to continue after being told to stop."""

    certificate: Path
    key: Path
    host: str = ""
    """The address to listen on; by default all addresses: see `listening`."""
    port: int = 9443
    probe_port: int = 8081
    max_bytes: int = 16 << 20
    drain_seconds: float = DRAIN_SECONDS


class WebhookProcess:
    """One process of the webhook."""

    def __init__(
        self, options: WebhookOptions, rules: RuleSource, policies: PolicySource | None = None
    ) -> None:
        """Without a source of policies, changes are not judged."""
        self._options = options
        self._rules = rules
        self._metrics = WebhookMetrics()
        self._certificate = CertificateFiles(options.certificate, options.key)
        self._loaded = asyncio.Event()
        """All rules that existed at startup are compiled."""
        self._mounted = asyncio.Event()
        """There is a certificate."""
        self._listening = False
        self._broken = ""
        """The task that ended, and with it the process."""
        self._worker = Worker()
        self._converting = Converting(rules, self._metrics, self._worker)
        self._judging = ChangeJudging(policies, self._metrics, rules) if policies is not None else None
        self._routes = Routes(self._converting.answer, self._judging)
        limits = affordable(HttpLimits(body_bytes=options.max_bytes, held_bytes=2 * options.max_bytes))
        self._conversions = Http1Server(self._routes.answer, limits, self._routes.gate, self._unread)
        self._probes = Http1Server(self._probe, HttpLimits(body_bytes=1024, connections=100))

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, then as long as clients need to notice, then finish requests in progress.

        Waits for the certificate's files: the operator creates them with the first VersionConversion. If the
        task that follows the rules or the certificate ends, the process ends as if it were told to stop.

        Raises OSError, ssl.SSLError or ValueError if the port of the probes or the certificate cannot be used
        at startup, and TaskEnded if a task ended that must not.
        """
        if self._certificate.found():
            self._mounted.set()
        tasks: list[asyncio.Task[Any]] = []
        try:
            await self._probes.start(self._options.host, self._options.probe_port)
            serving, following, _ = tasks = [
                asyncio.create_task(each) for each in (self._serve(), self._follow(), stop.wait())
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._listening and not serving.done():
                await self._drain(serving)
            for each in (serving, following):
                if each.done():
                    each.result()
        finally:
            await self._conversions.stop(SHUTDOWN_SECONDS)
            await self._probes.stop(0.0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._rules.close()

    async def _serve(self) -> None:
        """Run everything that answers, until cancelled. Raises TaskEnded."""
        tasks = {
            "probes": self._probes.served(),
            "conversions": self._serve_conversions(),
            "the worker": self._worker.run(),
        }
        if self._judging is not None:
            tasks["changes"] = self._judging.run()
        await supervise(tasks, self._broke)

    async def _follow(self) -> None:
        """Run everything that keeps rules and certificate up to date, until cancelled. Raises TaskEnded."""
        tasks = {"rules": self._rules.run(self._have_loaded), "certificate": self._follow_certificate()}
        await supervise(tasks, self._broke)

    def _broke(self, what: str) -> None:
        self._broken = self._broken or what

    def _have_loaded(self) -> None:
        if not self._loaded.is_set():
            self._loaded.set()
            # What exists by now stays: scanning it for garbage again and again delays answers.
            gc.freeze()

    async def _serve_conversions(self) -> None:
        await self._loaded.wait()
        await self._mounted.wait()
        options = self._options
        await self._conversions.start(options.host, options.port, self._certificate.serving.context)
        self._listening = True
        _log.info("Listening on %s.", self._conversions.address)
        await self._conversions.served()

    async def _follow_certificate(self) -> None:
        if not self._mounted.is_set():
            _log.info("Waiting for %s and %s.", self._options.certificate, self._options.key)
        while not self._mounted.is_set():
            if self._certificate.found():
                self._mounted.set()
            else:
                await asyncio.sleep(REFRESH_SECONDS)
        while True:
            self._metrics.expiry.set(self._certificate.serving.expires)
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                self._certificate.refresh()
            except (OSError, ssl.SSLError, ValueError) as error:
                _log.error("The new certificate cannot be used; still serving with the old one: %s", error)

    async def _drain(self, serving: asyncio.Task[Any]) -> None:
        """Return once all clients have left, or nobody needs this webhook any more, or it stops serving."""
        self._conversions.draining = True
        seconds = self._options.drain_seconds
        why = f"Ending by {self._broken}" if self._broken else "Told to stop"
        _log.info("%s: serving until all clients have disconnected, for at most %.0f s.", why, seconds)
        ends = [asyncio.create_task(self._leave(seconds))]
        if not self._broken:
            # Permanently refused credentials would look like a deleted account.
            ends.append(asyncio.create_task(self._rules.uninstalled()))
        try:
            await asyncio.wait([serving, *ends], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()

    async def _leave(self, seconds: float) -> None:
        notice = min(NOTICE_SECONDS, seconds)
        await asyncio.sleep(notice)
        await self._conversions.left(seconds - notice)

    def _unread(self, _: Response) -> None:
        self._metrics.refused("")

    def _probe(self, method: str, path: str, _: Body, __: str) -> Response:
        return probed(method, path, lambda: Response(b"alive\n"), self._readyz, self._exposition)

    def _exposition(self) -> Response:
        self._metrics.problems.set(len(self._rules.problems))
        self._metrics.stale.set(self._rules.unseen()[0])
        self._metrics.connections_are(self._conversions.accepted)
        return self._metrics.answer()

    def _readyz(self) -> Response:
        return readiness(
            self._rules,
            broken=self._broken,
            stopping=self._conversions.draining,
            loaded=self._loaded.is_set(),
            served=False,
            judging=self._judging is not None and bool(self._judging.policies.content),
            listening=self._listening,
            certificate=self._options.certificate,
        )


async def run_webhook(
    options: WebhookOptions, rules: RuleSource, policies: PolicySource | None = None
) -> int:
    """Run until SIGTERM or SIGINT (0), or a task ends that must not (1). Raises as `WebhookProcess.run`."""
    prepare_to_serve()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await WebhookProcess(options, rules, policies).run(stop)
    except TaskEnded as error:
        _log.error("A task ended, exiting for a fresh start: %s", error, exc_info=error.__cause__)
        return 1
    return 0
