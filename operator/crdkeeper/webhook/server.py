"""Serves conversions over TLS: POST /convert/<plural.group>, and nothing else on that port.

Probes and metrics have a separate port without TLS. The process keeps no state, so that any number of
replicas can serve, even while everything else is down.
"""

import asyncio
import gc
import logging
import resource
import signal
import ssl
import sys
import time
from asyncio import sslproto
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography import x509

from crdkeeper.supervision import TaskEnded, supervise
from crdkeeper.webhook.conversion.converting import Converting
from crdkeeper.webhook.http.http1 import Http1Server
from crdkeeper.webhook.http.types import TEXT, Body, HttpLimits, Response
from crdkeeper.webhook.metrics import WebhookMetrics
from crdkeeper.webhook.rules.rulebook import RuleSource

_log = logging.getLogger(__name__)

_REFRESH_SECONDS = 2.0
_SWITCH_SECONDS = 0.0005
"""How long a thread that compiles rules may block requests at a time. With 5 ms, some waited 150 ms."""
_TLS_BUFFER_BYTES = 32 << 10
"""asyncio's read buffer per connection. With its default of 256 KiB, 1,000 connections take 256 MiB."""
_SHUTDOWN_SECONDS = 25.0
_NOTICE_SECONDS = 5.0
"""How long a Service takes to stop sending connections here after SIGTERM."""
DRAIN_SECONDS = 95.0
"""API servers close what was idle for 90 s. If we closed first, a request could be on its way just then."""
_OTHER_DESCRIPTORS = 250
"""Besides conversions: probes, the API server, files."""
_PATH = "/convert/"
_ALLOW_GET, _ALLOW_POST = TEXT + b"Allow: GET\r\n", TEXT + b"Allow: POST\r\n"


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


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # API servers do not resume sessions.
    context.num_tickets = 0
    return context


@dataclass(slots=True)
class _Certificate:
    """The certificate, loaded again when its files change; open connections keep the old one."""

    options: WebhookOptions
    context: ssl.SSLContext = field(default_factory=_context)
    """Listens with the certificate that is current at each handshake."""
    expires: float = 0.0
    _latest: ssl.SSLContext = field(default_factory=_context)
    _loaded: bytes = b""

    def __post_init__(self) -> None:
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        connection.context = self._latest

    def found(self) -> bool:
        """Load the files; False if they do not exist yet. Raises what `refresh` raises."""
        try:
            self.refresh()
        except FileNotFoundError:
            return False
        return True

    def refresh(self) -> None:
        """Load changed files. Raises OSError, SSLError or ValueError if they are unusable."""
        content = self.options.certificate.read_bytes()
        both = content + self.options.key.read_bytes()
        if both == self._loaded:
            return
        # A context that was given a mismatched certificate and key ends up without a key.
        latest = _context()
        latest.load_cert_chain(self.options.certificate, self.options.key)
        self.expires = x509.load_pem_x509_certificate(content).not_valid_after_utc.timestamp()
        self._latest, self._loaded = latest, both
        _log.info(
            "Serving with the certificate that expires on %s.", time.strftime("%F", time.gmtime(self.expires))
        )


class WebhookProcess:
    """One process of the webhook."""

    def __init__(self, options: WebhookOptions, rules: RuleSource) -> None:
        self._options = options
        self._rules = rules
        self._metrics = WebhookMetrics()
        self._certificate = _Certificate(options)
        self._loaded = asyncio.Event()
        """All rules that existed at startup are compiled."""
        self._mounted = asyncio.Event()
        """There is a certificate."""
        self._listening = False
        self._broken = ""
        """The task that ended, and with it the process."""
        self._converting = Converting(rules, self._metrics)
        limits = HttpLimits(body_bytes=options.max_bytes, held_bytes=2 * options.max_bytes)
        limits = replace(limits, connections=_affordable(limits))
        self._conversions = Http1Server(self._convert, limits, _gate, self._unread)
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
            await self._conversions.stop(_SHUTDOWN_SECONDS)
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
            "the worker": self._converting.run(),
        }
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
        await self._conversions.start(options.host, options.port, self._certificate.context)
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
                await asyncio.sleep(_REFRESH_SECONDS)
        while True:
            self._metrics.expiry.set(self._certificate.expires)
            await asyncio.sleep(_REFRESH_SECONDS)
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
        notice = min(_NOTICE_SECONDS, seconds)
        await asyncio.sleep(notice)
        await self._conversions.left(seconds - notice)

    def _convert(
        self, _: str, path: str, body: Body, source: str
    ) -> Response | Coroutine[Any, Any, Response]:
        return self._converting.answer(path.removeprefix(_PATH), body, source)

    def _unread(self, _: Response) -> None:
        self._metrics.refused("")

    def _probe(self, method: str, path: str, _: Body, __: str) -> Response:
        if method != "GET":
            return Response(b"only GET is known here\n", 405, _ALLOW_GET)
        match path:
            case "/healthz":
                return Response(b"alive\n")
            case "/readyz":
                return self._readyz()
            case "/metrics":
                self._metrics.problems.set(len(self._rules.problems))
                self._metrics.stale.set(self._rules.unseen()[0])
                self._metrics.connections_are(self._conversions.accepted)
                headers = f"Content-Type: {self._metrics.content_type}\r\n"
                return Response(self._metrics.exposition(), headers=headers.encode())
        return Response(b"not found\n", 404)

    def _readyz(self) -> Response:
        if self._broken:
            return Response(f"{self._broken}\n".encode(), 503)
        if self._conversions.draining:
            return Response(b"stopping\n", 503)
        rules = self._rules
        seconds, why = rules.unseen()
        if not self._loaded.is_set():
            return Response(f"the rules are not compiled yet: {why}\n".encode(), 503)
        unserved = sorted(rules.problems.keys() - rules.conversions.keys())
        if unserved:
            return Response("".join(f"{each}: {rules.problems[each]}\n" for each in unserved).encode(), 503)
        if rules.conversions and not self._listening:
            return Response(f"waiting for {self._options.certificate}\n".encode(), 503)
        stale = f"; changes to the rules may have been missed for {seconds:.0f} s: {why}" if why else ""
        return Response(f"converting {', '.join(sorted(rules.conversions)) or 'nothing'}{stale}\n".encode())


def _affordable(limits: HttpLimits) -> int:
    """How many connections this process may have: one without a file descriptor cannot be accepted.

    Containers often start with a soft limit of 1,024, which may be raised up to the hard limit.
    """
    others = limits.handshakes + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + others
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return limits.connections if soft == resource.RLIM_INFINITY else max(1, min(soft, wanted) - others)


def _gate(method: str, path: str) -> Response | None:
    name = path.removeprefix(_PATH)
    if name == path or not name or "/" in name:
        return Response(b"only conversions are served here\n", 404)
    if method != "POST":
        return Response(b"only POST is known here\n", 405, _ALLOW_POST)
    return None


async def run_webhook(options: WebhookOptions, rules: RuleSource) -> int:
    """Run until SIGTERM or SIGINT (0), or a task ends that must not (1). Raises as `WebhookProcess.run`."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    sslproto.SSLProtocol.max_size = _TLS_BUFFER_BYTES
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await WebhookProcess(options, rules).run(stop)
    except TaskEnded as error:
        _log.error("A task ended, exiting for a fresh start: %s", error, exc_info=error.__cause__)
        return 1
    return 0
