"""A process that runs the real migrations, and that ends without warning when it is killed."""

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random
from typing import Literal, Protocol

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.definitions import get_definition
from crdkeeper.cluster.resources.kinds import create_migration, get_migration, list_migrations_of
from crdkeeper.cluster.resources.statusrecord import StatusRecord
from crdkeeper.cluster.transport.client import Answer, ApiError, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.policy.labels import migration_rules
from crdkeeper.core.policy.migrations import wanted_migration
from crdkeeper.operations.migration.run import MigrationRun
from tests.property.simulation.apiserver import CRD, EPOCH, GROUP, REVIEWS, Server, error
from tests.virtualtime import now

Request = Literal["observe", "list", "look", "rewrite", "save", "trim", "other"]
"""The subject of a request: the moments at which chance may strike."""

_CLIENT_TIMEOUT = 75.0
_RESYNC = 10.0


class Network(Protocol):
    """The network between an operator and the API servers."""

    def route(self) -> Server:
        """The API server for the next request."""

    def trouble(self) -> Literal["throttled", "failing", "lost"] | None:
        """What goes wrong with the next request."""

    def seconds(self, kind: Request) -> float:
        """How long the next request takes."""

    def sent(self, kind: Request) -> None:
        """Someone has just sent a request."""


class SimulatedClient(Client):
    """The real client except for its last step. What a dead process has sent is executed all the same."""

    def __init__(self, network: Network) -> None:
        super().__init__(Connection())
        self.dead = False
        self._network = network
        self._in_flight: set[asyncio.Task[Answer]] = set()

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=now())

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
    ) -> Answer:
        if self.dead:
            raise Unreachable("killed")
        kind = _kind(method, path)
        self._network.sent(kind)
        if path == REVIEWS:
            return Answer(201, b'{"status": {"allowed": true}}')
        trouble = self._network.trouble()
        if trouble == "throttled":
            await asyncio.sleep(0.001)
            return error(429, "TooManyRequests", "storage is (re)initializing")
        if trouble == "failing":
            await asyncio.sleep(0.001)
            return error(500, "", "etcdserver: leader changed")
        task = asyncio.create_task(
            self._network.route().handle(method, path, content, self._network.seconds(kind))
        )
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        try:
            async with asyncio.timeout(_CLIENT_TIMEOUT):
                answer = await asyncio.shield(task)
        except TimeoutError as timeout:
            raise Unreachable("no response in time") from timeout
        if trouble == "lost":
            raise Unreachable("connection reset by peer")
        return answer


class Operator:
    """Creates the migrations that the policy wants, and runs them, until killed."""

    def __init__(self, network: Network, policy: DefinitionPolicy, random: Random) -> None:
        self._client = SimulatedClient(network)
        self._policy = policy
        self._random = random
        self._run: MigrationRun | None = None
        self._news = asyncio.Event()
        self.outcomes: Counter[str] = Counter()
        self._task = asyncio.create_task(self._work())

    async def kill(self) -> None:
        """As kill -9."""
        self._client.dead = True
        self._task.cancel()
        (end,) = await asyncio.gather(self._task, return_exceptions=True)
        if isinstance(end, Exception):
            raise end  # it had crashed

    def definition_changed(self) -> None:
        """Its watch reports a change of the CRD, a little later."""
        asyncio.get_running_loop().call_later(self._random.uniform(0, 0.5), self._heed)

    def _heed(self) -> None:
        self._news.set()
        if self._run is not None:
            self._run.wake()

    async def _work(self) -> None:
        while True:
            with suppress(ApiError, Unreachable):
                await self._migrate()
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_RESYNC):
                    await self._news.wait()

    async def _migrate(self) -> None:
        definition = await get_definition(self._client, CRD)
        stored = await list_migrations_of(self._client) or []
        wanted = None
        if definition is not None:
            rules = migration_rules([self._policy], definition, watch_labels=False)
            wanted = wanted_migration(rules, definition, stored) if rules is not None else None
        if wanted is not None:
            stored = [await create_migration(self._client, wanted)]
        for each in stored:
            if each.status.completion_time is None:
                migration = await get_migration(self._client, each.metadata.name)
                if migration is not None:
                    await self._carry_out(migration)

    async def _carry_out(self, migration: StorageMigration) -> None:
        self._run = MigrationRun(
            self._client,
            migration,
            save=StatusRecord(self._client, migration).save,
            announce=_tell_nobody,
            observer=lambda outcome, _code, _seconds: self.outcomes.update([outcome.value]),
            slots=asyncio.Semaphore(1),
        )
        try:
            await self._run.run()
        finally:
            self._run = None


async def _tell_nobody(*_: object) -> None:
    """Nobody listens to Events here."""


def _kind(method: str, path: str) -> Request:
    if "/customresourcedefinitions/" in path:
        return "observe" if method == "GET" else "trim"
    if path.startswith(f"/apis/{GROUP}/"):
        if method == "PATCH":
            return "rewrite"
        return "list" if "limit=" in path else "look"
    return "save" if path.endswith("/status") or "/status?" in path else "other"
