"""One operator process: probes and metrics over HTTP, leadership, and Kopf while it leads."""

import asyncio
import gc
import logging
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field

import kopf
from aiohttp import web

from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import Kind
from crdkeeper.cluster.resources.kinds import installed
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.cluster.transport.lease import Lease, LeaseLost
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.entry import Controller
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.misseddeletions import find_missed_deletions
from crdkeeper.controllers.readiness import Readiness
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.freedmemory import give_back_freed_memory
from crdkeeper.handlers import operator_settings, register
from crdkeeper.listening import listening
from crdkeeper.supervision import TaskEnded, supervise

_log = logging.getLogger(__name__)

_KINDS_POLL_SECONDS = 2.0
_BEAT_SECONDS = 1.0
_STALLED_SECONDS = 30.0
_OUT_OF_CONTACT_SECONDS = 30.0
_SHUTDOWN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """How to run: the Lease and our identity, where to serve HTTP, how many migrations at once.

    The Lease's times are client-go's, in seconds: lease duration > renew deadline > retry period.
    """

    connection: Connection
    namespace: str
    identity: str
    controllers: tuple[Controller, ...]
    webhook: WebhookAddress
    """Where API servers reach `crdkeeper webhook`."""
    host: str = ""
    port: int = 8080
    at_once: int = 4
    settle_seconds: float = 5.0
    lease_name: str = "crdkeeper-operator"
    lease_duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    pages_per_second: float = 10.0
    """How many pages of objects' metadata reports may request."""
    watch_labels: bool = False
    kinds: tuple[type[Kind], ...] = KINDS
    """Without these kinds it does not begin."""


@dataclass(slots=True)
class Health:
    """What the probes report. `waiting_for` names what keeps a leader from working; empty if nothing does."""

    lease: Lease
    waiting_for: str = "leadership"
    leading: bool = False
    broken: str = ""
    """The task that ended, and with it the process."""
    beat: float = field(default_factory=time.monotonic)

    async def beating(self) -> None:
        """Record that the event loop turns."""
        while True:
            self.beat = time.monotonic()
            await asyncio.sleep(_BEAT_SECONDS)

    def alive(self) -> tuple[bool, str]:
        """/healthz: False makes the kubelet restart the container."""
        stalled = time.monotonic() - self.beat
        return stalled < _STALLED_SECONDS, f"event loop turned {stalled:.1f} s ago"

    def ready(self) -> tuple[bool, str]:
        """/readyz: a leader that works, or a standby that could take over now."""
        if self.broken:
            return False, self.broken
        silent = time.monotonic() - self.lease.contacted_at
        if silent > _OUT_OF_CONTACT_SECONDS:
            return False, f"no response from the API server for {silent:.0f} s"
        if not self.leading:
            return True, "standby"
        return not self.waiting_for, f"waiting for {self.waiting_for}" if self.waiting_for else "leading"

    def broke(self, what: str) -> None:
        """Record that a task ended which must not."""
        self.broken = what


async def run_operator(options: OperatorOptions) -> int:
    """Run until a signal (0) or the loss of leadership (1: the container restarts, as a standby)."""
    give_back_freed_memory()
    # Code is never garbage: looking for some in it again and again takes a twentieth of all CPU.
    gc.freeze()
    metrics = OperatorMetrics()
    metrics.leader.set(0)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if not await _loaded(options.connection, stop):
        return 0
    async with Client(options.connection) as client:
        lease = Lease(
            client,
            options.namespace,
            options.lease_name,
            options.identity,
            duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry=options.retry_period,
        )
        health = Health(lease)
        runner = await _serve(options, health, metrics)
        beating = asyncio.create_task(health.beating())
        try:
            return await _lead(client, lease, options, health, metrics, stop)
        finally:
            beating.cancel()
            await runner.cleanup()


async def _loaded(connection: Connection, stop: asyncio.Event) -> bool:
    """Read the configuration; False if stopped before: an exec plugin of a kubeconfig may never end."""
    loading = asyncio.create_task(connection.load())
    tasks = (loading, asyncio.create_task(stop.wait()))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            loading.result()
        return loading.done()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _lead(
    client: Client,
    lease: Lease,
    options: OperatorOptions,
    health: Health,
    metrics: OperatorMetrics,
    stop: asyncio.Event,
) -> int:
    stopping = asyncio.create_task(stop.wait())
    acquiring = asyncio.create_task(lease.acquire())
    await asyncio.wait({acquiring, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not acquiring.done():
        await _release(lease, acquiring)
        return 0
    acquiring.result()
    health.leading, health.waiting_for = True, "the kinds of crdkeeper.dev to be installed"
    metrics.leader.set(1)
    holding = asyncio.create_task(lease.hold())
    working = asyncio.create_task(_work(client, options, health, metrics, stop))
    await asyncio.wait({holding, working}, return_when=asyncio.FIRST_COMPLETED)
    metrics.leader.set(0)
    lost = holding.done()
    stop.set()
    if lost:
        # Not only when Kopf has ended: nothing can be written any more.
        working.cancel()
    _, pending = await asyncio.wait({working}, timeout=_SHUTDOWN_SECONDS if not lost else 1.0)
    for each in pending:
        each.cancel()
    status = 0
    try:
        if working.done() and not working.cancelled():
            working.result()
        if lost:
            holding.result()
    except LeaseLost as error:
        _log.error("Lost leadership, exiting: %s", error)
        return 1
    except TaskEnded as error:
        _log.error("A task ended, exiting for a fresh start: %s", error, exc_info=error.__cause__)
        status = 1
    except Exception as error:
        # Kopf has logged the cause: a watch was refused permanently. A new process starts from scratch.
        _log.error("The watches ended, exiting for a fresh start: %s", error)
        status = 1
    await _release(lease, holding)
    return status


async def _release(lease: Lease, taking: asyncio.Task[None]) -> None:
    """Release the Lease; `taking` acquires or holds it until then."""
    await lease.release()
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)


async def _work(
    client: Client, options: OperatorOptions, health: Health, metrics: OperatorMetrics, stop: asyncio.Event
) -> None:
    if not await _kinds_installed(client, options.kinds, stop):
        return
    health.waiting_for = "the watches to start"
    state = ClusterState()
    metrics.registry.register(Readiness(state))
    context = Context(
        client,
        state,
        metrics,
        identity=options.identity,
        namespace=options.namespace,
        webhook=options.webhook,
        at_once=options.at_once,
        settle_seconds=options.settle_seconds,
        pages_per_second=options.pages_per_second,
        watch_labels=options.watch_labels,
    )
    registry = kopf.OperatorRegistry()
    ready = asyncio.Event()

    async def end() -> None:
        stop.set()  # Kopf received the signal, but keeps waiting for this
        for each in (supervised, announcing):
            # Once: a second time would interrupt the controllers' shutdown.
            if not each.cancelling():
                each.cancel()
        await asyncio.wait({supervised, announcing})

    shown = register(registry, options.connection, state, options.controllers, on_exit=end)
    tasks = {each.name: each.begin(context) for each in options.controllers}
    tasks["deletions"] = find_missed_deletions(client, shown)
    supervised = asyncio.create_task(supervise(tasks, health.broke))
    announcing = asyncio.create_task(_announce_ready(ready, health))
    watching = asyncio.create_task(
        kopf.operator(
            # Kopf would look up the name of our user, and containers have none. Its type is not exported.
            identity=options.identity,  # type: ignore[arg-type]
            registry=registry,
            settings=operator_settings(),
            clusterwide=True,
            standalone=True,
            ready_flag=ready,
            stop_flag=stop,
        )
    )
    try:
        await asyncio.wait({watching, supervised}, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            stop.set()
            await asyncio.wait({watching}, timeout=_SHUTDOWN_SECONDS)
        if supervised.done() and not supervised.cancelled():
            supervised.result()
        if watching.done():
            watching.result()
    finally:
        watching.cancel()
        await end()
        await asyncio.gather(watching, return_exceptions=True)


async def _kinds_installed(client: Client, kinds: tuple[type[Kind], ...], stop: asyncio.Event) -> bool:
    """Wait for our CRDs; Kopf looks for them only once. False if stopped before."""
    told = False
    while not stop.is_set():
        try:
            if all([await installed(client, each.plural) for each in kinds]):
                return True
            if not told:
                _log.warning("The kinds of crdkeeper.dev are not installed: apply crds/. Waiting.")
                told = True
        except (ApiError, Unreachable) as error:
            _log.warning("The kinds of crdkeeper.dev cannot be listed: %s", error)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _KINDS_POLL_SECONDS)
    return False


async def _announce_ready(ready: asyncio.Event, health: Health) -> None:
    await ready.wait()
    health.waiting_for = ""


async def _serve(options: OperatorOptions, health: Health, metrics: OperatorMetrics) -> web.AppRunner:
    async def healthz(_: web.Request) -> web.Response:
        return _answer(*health.alive())

    async def readyz(_: web.Request) -> web.Response:
        return _answer(*health.ready())

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": metrics.content_type})

    application = web.Application()
    application.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposition)]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listening(options.host, options.port)).start()
    return runner


def _answer(good: bool, text: str) -> web.Response:
    return web.Response(status=200 if good else 503, text=text + "\n")
