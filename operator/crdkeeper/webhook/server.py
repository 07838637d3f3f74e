"""Serves conversions over TLS: POST /convert/<plural.group>, and nothing else on that port.

Probes and metrics are on a port of their own without TLS. The process keeps no state, so that any number of
replicas can serve, also while everything else is down.
"""

import asyncio
import logging
import signal
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from aiohttp import web
from cryptography import x509

from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.review import Answer, BadReview, answer
from crdkeeper.webhook.metrics import Metrics
from crdkeeper.webhook.rulebook import Rules

_log = logging.getLogger(__name__)

_REFRESH_SECONDS = 2.0
_LARGE_BYTES = 256 * 1024
"""Requests above that are worked on in a thread, so that probes and small requests need not wait."""
_SHUTDOWN_SECONDS = 25.0
RULES_HEADER = "X-Crdkeeper-Rules"
"""Of an answer: the digest of the rules that made it."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Options:
    """Where to listen, with what certificate, and how long to go on after being told to stop."""

    certificate: Path
    key: Path
    host: str = "0.0.0.0"
    port: int = 9443
    probe_port: int = 8081
    max_bytes: int = 64 << 20
    drain_seconds: float = 5.0


@dataclass(slots=True)
class _Certificate:
    """The certificate, loaded anew when its files change; connections that are open keep the old one."""

    options: Options
    context: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    expires: float = 0.0
    _loaded: bytes = b""

    def __post_init__(self) -> None:
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2

    def refresh(self) -> None:
        """Load the files if they changed. Raises OSError, SSLError or ValueError if they cannot be used."""
        content = self.options.certificate.read_bytes()
        both = content + self.options.key.read_bytes()
        if both == self._loaded:
            return
        self.context.load_cert_chain(self.options.certificate, self.options.key)
        self.expires = x509.load_pem_x509_certificate(content).not_valid_after_utc.timestamp()
        self._loaded = both
        _log.info(
            "Serving with the certificate that expires on %s.", time.strftime("%F", time.gmtime(self.expires))
        )


class Webhook:
    """One process of the webhook."""

    def __init__(self, options: Options, rules: Rules) -> None:
        self._options = options
        self._rules = rules
        self._metrics = Metrics()
        self._certificate = _Certificate(options)
        self._started = False
        self._draining = False

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, then for as long as clients need to notice, then finish what is at work.

        Raises OSError, ssl.SSLError or ValueError if the port or the certificate cannot be used at the start.
        """
        self._certificate.refresh()
        conversions = web.Application(client_max_size=self._options.max_bytes, middlewares=[self._closing])
        conversions.add_routes([web.post("/convert/{name}", self._convert)])
        probes = web.Application()
        probes.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._exposition),
            ]
        )
        runners = [
            web.AppRunner(each, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
            for each in (conversions, probes)
        ]
        for each in runners:
            await each.setup()
        host = self._options.host
        background = [asyncio.create_task(self._refresh_certificate())]
        try:
            await web.TCPSite(runners[1], host, self._options.probe_port).start()
            await self._rules.start()
            self._started = True
            background.append(asyncio.create_task(self._follow_rules()))
            await web.TCPSite(
                runners[0], host, self._options.port, ssl_context=self._certificate.context
            ).start()
            _log.info("Listening on %s:%d.", host, self._options.port)
            await stop.wait()
            self._draining = True
            _log.info("Told to stop: serving for %.0f s more.", self._options.drain_seconds)
            await asyncio.sleep(self._options.drain_seconds)
        finally:
            for task in background:
                task.cancel()
            for each in runners:
                await each.cleanup()

    async def _refresh_certificate(self) -> None:
        while True:
            self._metrics.expiry.set(self._certificate.expires)
            await asyncio.sleep(_REFRESH_SECONDS)
            try:
                self._certificate.refresh()
            except (OSError, ssl.SSLError, ValueError) as error:
                _log.error("The new certificate cannot be used, the old one goes on serving: %s", error)

    async def _follow_rules(self) -> None:
        try:
            await self._rules.run()
        except Exception:
            # What is compiled goes on serving, and a new process looks afresh when this one ends.
            _log.exception("Changes of the rules are not followed any more.")

    @web.middleware
    async def _closing(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        if self._draining:
            # Clients open their next connection elsewhere.
            response.force_close()
        return response

    async def _convert(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        served = self._rules.conversions.get(name)
        if served is None:
            await self._rules.look_again(name)
            served = self._rules.conversions.get(name)
        if served is None:
            return self._refused("", 404, f"no rules for {name[:300]}")
        body = await request.read()
        start = time.monotonic()
        try:
            if len(body) > _LARGE_BYTES:
                content, done = await asyncio.to_thread(_answered, body, served.conversion)
            else:
                content, done = _answered(body, served.conversion)
        except (BadReview, orjson.JSONDecodeError) as error:
            return self._refused(name, 400, f"no ConversionReview: {error}")
        metrics = self._metrics
        metrics.seconds.labels(name).observe(time.monotonic() - start)
        metrics.requests.labels(name, "failed" if done.error else "converted").inc()
        metrics.objects.labels(name).inc(done.objects)
        if done.error:
            _log.warning("%s: %s", name, done.error)
        return web.Response(
            body=content, content_type="application/json", headers={RULES_HEADER: served.digest}
        )

    def _refused(self, name: str, code: int, message: str) -> web.Response:
        self._metrics.requests.labels(name, "refused").inc()
        return web.Response(status=code, text=message + "\n")

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if self._draining:
            return web.Response(status=503, text="stopping\n")
        if not self._started:
            return web.Response(status=503, text="the rules are not compiled yet\n")
        rules = self._rules
        unserved = sorted(rules.problems.keys() - rules.conversions.keys())
        if unserved:
            return web.Response(
                status=503, text="".join(f"{each}: {rules.problems[each]}\n" for each in unserved)
            )
        return web.Response(text=f"converting {', '.join(sorted(rules.conversions)) or 'nothing'}\n")

    async def _exposition(self, _: web.Request) -> web.Response:
        self._metrics.problems.set(len(self._rules.problems))
        return web.Response(
            body=self._metrics.exposition(), headers={"Content-Type": self._metrics.content_type}
        )


def _answered(body: bytes, conversion: Conversion) -> tuple[bytes, Answer]:
    done = answer(orjson.loads(body), conversion)
    return orjson.dumps(done.review), done


async def run_webhook(options: Options, rules: Rules) -> None:
    """Run until SIGTERM or SIGINT. Raises as `Webhook.run` does."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Webhook(options, rules).run(stop)
