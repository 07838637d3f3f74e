"""Executes a plan, then lets everything recover, and reports the result."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, Literal, assert_never
from unittest import mock

from crdkeeper.api.definitionpolicy import DefinitionPolicy, DefinitionPolicySpec, MigrationPolicy
from crdkeeper.api.meta import ObjectMeta
from crdkeeper.api.storagemigration import MigrationRetry, MigrationTemplate
from tests import virtualtime
from tests.property.simulation import plan
from tests.property.simulation.apiserver import Physics, Refusal, Server
from tests.property.simulation.etcd import Etcd, Key
from tests.property.simulation.operator import Operator, Request
from tests.property.simulation.plan import OBJECTS, SERVERS, After, Event, Moment, Plan
from tests.virtualtime import now

_PATIENCE = 40.0
"""How long to wait for a moment that never comes."""
_HEALING = 3 * 3600.0
"""A run that has not ended this long after the last problem never will."""


@dataclass(frozen=True, slots=True)
class Result:
    """`loss` is empty if nothing was lost; `finished` says whether the migration completed."""

    loss: str
    finished: bool
    trims: int
    history: list[str]
    outcomes: Counter[str]


@dataclass(slots=True)
class World:
    """A cluster, its users, and chance. For the operators, it is the network."""

    physics: Physics
    random: Random
    policy: DefinitionPolicy
    etcd: Etcd = field(default_factory=Etcd)
    servers: list[Server] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    _refused: dict[Key, Refusal] = field(default_factory=dict)
    _trouble: Literal["throttled", "failing", "lost"] | None = None
    _trouble_until: float = 0.0
    _sent: Counter[Request] = field(default_factory=Counter)
    _any_sent: asyncio.Event = field(default_factory=asyncio.Event)
    _snapshots: dict[int, dict[Key, int]] = field(default_factory=dict)
    _lasting: list[asyncio.Task[Any]] = field(default_factory=list)
    _background: set[asyncio.Task[Any]] = field(default_factory=set)

    async def live(self, events: tuple[tuple[Moment, Event], ...]) -> Result:
        """Execute the events."""
        self.etcd.define("v1")
        for index in range(OBJECTS):
            self.etcd.put(_key(index), "v1", 0, "the beginning")
        for index in range(SERVERS):
            server = Server(
                f"server-{index}", self.etcd, self.physics, self.random, self._refused.get, self._snapshots
            )
            self.servers.append(server)
            self._start(server.watch())
            self._start(server.renew_lease())
        if self.physics.writers:
            self._start(self._write_for_ever())
        self._start(self._tell_operators())
        self._start_operator()
        for moment, event in events:
            await self._until(moment)
            if self.etcd.loss:
                break
            self.etcd.note(f"EVENT {event}")
            await self._happen(event)
        finished = not self.etcd.loss and await self._heal()
        for each in self.operators:
            await each.kill()
            self.outcomes.update(each.outcomes)
        left = [*self._background, *self._lasting]
        for task in left:
            task.cancel()
        for end in await asyncio.gather(*left, return_exceptions=True):
            if isinstance(end, Exception):
                raise end
        return Result(self.etcd.loss, finished, self.etcd.trims, self.etcd.history, self.outcomes)

    def route(self) -> Server:
        """A load balancer that mostly knows which servers are alive."""
        awake = [each for each in self.servers if not each.frozen]
        if awake and self.random.random() < 0.97:
            return self.random.choice(awake)
        return self.random.choice(self.servers)

    def trouble(self) -> Literal["throttled", "failing", "lost"] | None:
        return self._trouble if now() < self._trouble_until and self.random.random() < 0.5 else None

    def seconds(self, kind: Request) -> float:
        # The trim is the one request for which a delay is dangerous, so it has many.
        slow = self.random.random() < (0.3 if kind == "trim" else 0.01)
        return self.random.uniform(0, self.physics.request_timeout / 2 if slow else 0.02)

    def sent(self, kind: Request) -> None:
        self._sent[kind] += 1
        self._any_sent.set()
        self._any_sent.clear()

    async def _until(self, moment: Moment) -> None:
        if isinstance(moment, After):
            await asyncio.sleep(moment.seconds)
            return
        goal = self._sent[moment.request] + moment.nth
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while self._sent[moment.request] < goal:
                    await self._any_sent.wait()

    async def _happen(self, event: Event) -> None:
        match event:
            case plan.Flip(to):
                self.etcd.flip(to)
                self._write_through_all()
            case plan.Rollback(to, seconds):
                self._last(self._roll_back(to, seconds))
            case plan.Label():
                self.etcd.label()
            case plan.Recreate(storage, after):
                await self._recreate(storage, after)
            case plan.TrimByOthers():
                if self.etcd.definition is not None:
                    self.etcd.trim([self.etcd.definition.storage], ours=False)
            case plan.Freeze(index, seconds, writing):
                self._last(self._freeze(self.servers[index], seconds, writing))
            case plan.Write(server, verb, index, seconds):
                self._start(self.servers[server].write(_key(index), verb, seconds))
            case plan.Kill(next_after):
                self._last(self._replace_operator(next_after))
            case plan.Refuse(refusal, objects, seconds):
                self._last(self._refuse(refusal, objects, seconds))
            case plan.Compact():
                self._snapshots.clear()
            case plan.Trouble(kind, seconds):
                self._trouble, self._trouble_until = kind, now() + seconds
            case _:
                assert_never(event)

    async def _freeze(self, server: Server, seconds: float, writing: float) -> None:
        if not await server.freeze():
            return
        await asyncio.sleep(seconds)
        self._start(server.write(_key(OBJECTS + 1), "create", writing))
        self._start(server.write(_key(0), "update", writing))
        server.wake()

    async def _roll_back(self, to: str, seconds: float) -> None:
        if self.etcd.definition is None:
            return
        back = self.etcd.definition.storage
        self.etcd.flip(to)
        self._write_through_all()
        await asyncio.sleep(seconds)
        self.etcd.flip(back)

    async def _recreate(self, storage: str, after: float) -> None:
        self.etcd.terminate()
        await asyncio.sleep(1.0)
        if self.etcd.definition is not None:
            self.etcd.remove()
        await asyncio.sleep(after)
        self.etcd.define(storage)

    def _write_through_all(self) -> None:
        if not self.physics.writers:
            return
        for number, server in enumerate(self.servers):
            for _ in range(2):
                index = self.random.randrange(OBJECTS)
                self._start(self._write_soon(server, index, number))

    async def _write_soon(self, server: Server, index: int, number: int) -> None:
        await asyncio.sleep(self.random.uniform(0, self.physics.lag))
        verb = self.random.choice(("create", "update"))
        await server.write(_key(index + number), verb, self._how_long())

    def _how_long(self) -> float:
        slow = self.random.random() < 0.3
        return self.random.uniform(0, self.physics.request_timeout) if slow else 0.01

    async def _write_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(0.5))
            server = self.random.choice(self.servers)
            verb = self.random.choice(("create", "update", "update", "delete"))
            index = self.random.randrange(OBJECTS + 2)
            self._start(server.write(_key(index), verb, self._how_long()))

    async def _tell_operators(self) -> None:
        while True:
            await self.etcd.changed.wait()
            for each in self.operators:
                each.definition_changed()

    async def _replace_operator(self, next_after: float) -> None:
        old = self.operators[-1]
        if next_after < 0:
            self._start_operator()
            await asyncio.sleep(-next_after)
        self.etcd.note("an operator is killed")
        await old.kill()
        if next_after >= 0:
            await asyncio.sleep(next_after)
            self._start_operator()

    def _start_operator(self) -> None:
        self.etcd.note("an operator starts")
        self.operators.append(Operator(self, self.policy, self.random))

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _last(self, work: Coroutine[Any, Any, Any]) -> None:
        """Something that lasts for a while, and that recovery waits for."""
        self._lasting.append(asyncio.create_task(work))

    async def _refuse(self, refusal: Refusal, objects: frozenset[int], seconds: float) -> None:
        for each in objects:
            self._refused[_key(each)] = refusal
        await asyncio.sleep(seconds)
        for each in objects:
            self._refused.pop(_key(each), None)

    async def _heal(self) -> bool:
        """Whether the work completes once nothing goes wrong any more."""
        await asyncio.gather(*self._lasting)
        # Leadership comes to rest with the last one.
        for each in self.operators[:-1]:
            await each.kill()
        self.etcd.note("nothing happens any more")
        deadline = now() + _HEALING
        while now() < deadline and not self.etcd.loss:
            await asyncio.sleep(30.0)
            if self._done():
                # What was in flight when the last migration ended still has to arrive.
                await asyncio.sleep(self.physics.request_timeout)
                return not self.etcd.loss
        return False

    def _done(self) -> bool:
        current = self.etcd.definition
        if current is None or current.stored != (current.storage,):
            return False
        return all(each.get("status", {}).get("completionTime") for each in self.etcd.migrations.values())


def _key(index: int) -> Key:
    return ("ab"[index % 2], f"thing-{index:02d}")


def policy(physics: Physics, **template: Any) -> DefinitionPolicy:
    """Migrates automatically, with `template`."""
    how = MigrationTemplate(
        settle_seconds=physics.settle,
        retry=MigrationRetry(backoff_seconds=5, max_backoff_seconds=60),
        **template,
    )
    return DefinitionPolicy(
        metadata=ObjectMeta(name="all"),
        spec=DefinitionPolicySpec(storage_migration=MigrationPolicy(template=how)),
    )


def simulate(schedule: Plan, physics: Physics | None = None, **template: Any) -> Result:
    """The result of this plan."""
    physics = physics or Physics()

    async def main() -> Result:
        how = {"verify": "Full" if schedule.full else "Remaining", **template}
        world = World(physics, Random(schedule.seed), policy(physics, **how))
        return await world.live(schedule.events)

    clock = SimpleNamespace(monotonic=now)
    with (
        mock.patch("crdkeeper.operations.migration.run.time", clock),
        mock.patch("crdkeeper.operations.migration.sweep.time", clock),
        # A page has only a few objects here, so fewer than a page must suffice to detect an outage.
        mock.patch("crdkeeper.operations.migration.sweep._OUTAGE", 5),
    ):
        return virtualtime.run(main())
