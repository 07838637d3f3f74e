"""One process of a migration that several share: it works on parts, and coordinates if nobody else does.

Who works on what is in `status.shards` of the StorageMigration. A process that shows no sign of life loses
its part and its office to whoever sees it first. If it was only paused, it does no harm when it wakes: its
claims are void, to rewrite an object twice changes nothing, and a trim rests only on a pass over all objects.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from crdkeeper.api.storagemigration import (
    MigrationClaim,
    MigrationLimits,
    MigrationPart,
    MigrationShards,
    MigrationTarget,
    StorageMigration,
)
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.cluster.resources.kinds import get_migration
from crdkeeper.cluster.resources.shards import COORDINATOR, divide, write_claim
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, may_pass
from crdkeeper.core.migration.evidence import lacks_right
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.migration.request import Request
from crdkeeper.core.migration.sharding import (
    DEAD_SECONDS,
    Liveness,
    Shard,
    begun,
    examples,
    next_part,
    pass_at_work,
    until_beat,
)
from crdkeeper.operations.migration.preparation import prepare_sweep
from crdkeeper.operations.migration.sweep import Interrupted, Sweep
from crdkeeper.operations.migration.waiting import end

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
_LAST_SAVE_SECONDS = 3.0

Coordinate = Callable[[StorageMigration], Awaitable[bool]]
"""Runs the migration. True at its end, or if only a person can help; False if someone else took it over."""


class _Lost(Exception):
    """Another process has the part by now."""


@dataclass(slots=True)
class _Claimed:
    """A claim or part that this process holds; `state` is what it wrote last."""

    client: Client
    migration: StorageMigration
    where: str
    state: MigrationClaim

    async def write(self, after: MigrationClaim) -> bool:
        """Write it. False if someone else has it. Raises ApiError or Unreachable."""
        held = await write_claim(self.client, self.migration, self.where, self.state, after)
        if held:
            self.state = after
        return held

    async def release(self, after: MigrationClaim, seconds: float = _LAST_SAVE_SECONDS) -> None:
        """Give it up, and try so long; otherwise others wait until it seems dead.

        With a new term, so that a beat that is still on its way does not take it back.
        """
        after = after.model_copy(update={"holder": "", "beat": after.beat + 1, "term": after.term + 1})
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for attempt in count():
                    try:
                        await self.write(after)
                        return
                    except (ApiError, Unreachable) as error:
                        if not may_pass(error):
                            return
                    await asyncio.sleep(backoff(attempt, 0.5, 4.0))


@dataclass(slots=True)
class Sharing:
    """`watch` gets the migration as others advance it, `say` gets other messages."""

    client: Client
    request: Request
    shard: Shard
    identity: str
    watch: Callable[[StorageMigration], None]
    say: Callable[[str], None]
    coordinate: Coordinate
    migration: StorageMigration
    """The latest state. At first as it was read, before anything was changed."""
    gone: bool = field(default=False, init=False)
    """Whether the object was deleted in the meantime."""
    _liveness: Liveness = field(default_factory=Liveness, init=False)
    _office: asyncio.Task[bool] | None = field(default=None, init=False)
    _work: asyncio.Task[None] | None = field(default=None, init=False)
    _doing: tuple[str | None, MigrationLimits] | None = field(default=None, init=False)
    _troubles: int = field(default=0, init=False)
    _not_before: float = field(default=0.0, init=False)

    async def run(self) -> None:
        """Return at the end of the migration, successful or not.

        Raises NotInstalled, OfAnotherRelease or ApiError.
        """
        ended_before, told = self.migration.status.completion_time, False
        try:
            while True:
                seen = await self._look()
                if self.gone:
                    return
                if seen is not None and await self._divided(seen):
                    if not told:
                        self._tell(seen)
                        told = True
                    if self._office is None and seen.status.completion_time not in (None, ended_before):
                        self.watch(seen)
                        return
                    await self._take_part_in(seen)
                tasks = [each for each in (self._office, self._work) if each is not None]
                await asyncio.wait(
                    [*tasks, pause := asyncio.create_task(asyncio.sleep(_LOOK_SECONDS))],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                pause.cancel()
                if self._has_ended():
                    return
        finally:
            await end(*(each for each in (self._work, self._office) if each is not None))

    async def _look(self) -> StorageMigration | None:
        """The current state; None without an answer."""
        try:
            seen = await get_migration(self.client, self.migration.metadata.name)
        except (ApiError, Unreachable) as error:
            self._bear(error)
            return None
        if seen is None or seen.metadata.uid != self.migration.metadata.uid:
            self.gone = True
            return None
        self.migration = seen
        return seen

    async def _divided(self, seen: StorageMigration) -> bool:
        """Whether there are parts already; divides the migration if not, which the next look shows."""
        if seen.status.shards is not None:
            return True
        try:
            await divide(self.client, seen, self.shard.count)
        except (ApiError, Unreachable) as error:
            self._bear(error)
        return False

    def _bear(self, error: ApiError | Unreachable) -> None:
        """Say what may pass by itself, so that the next attempt may succeed. Raises anything else."""
        if not may_pass(error):
            raise error
        self.say(f"The API server does not respond: {error}")

    def _tell(self, seen: StorageMigration) -> None:
        count = len(_shards(seen).parts)
        if count != self.shard.count:
            self.say(
                f"StorageMigration {seen.metadata.name} is divided into {count} parts, and stays so; "
                f"--shards {self.shard.count} has no effect."
            )

    async def _take_part_in(self, seen: StorageMigration) -> None:
        try:
            if self._office is None:
                self.watch(seen)
                await self._seek_office(seen)
            if self._work is None and time.monotonic() >= self._not_before:
                await self._seek_work(seen)
            elif self._work is not None and self._due(seen) != self._doing:
                await end(self._work)
                self._work = None
        except (ApiError, Unreachable) as error:
            self.say(f"The state of the parts could not be written: {error}")

    def _has_ended(self) -> bool:
        """Whether the migration has ended by our own run. Raises what has ended our work otherwise."""
        if self._work is not None and self._work.done():
            work, self._work = self._work, None
            work.result()
        if self._office is not None and self._office.done():
            office, self._office = self._office, None
            return office.result()
        return False

    async def _seek_office(self, seen: StorageMigration) -> None:
        claim = _shards(seen).coordinator
        if not self._is_free(COORDINATOR, claim):
            return
        after = MigrationClaim(holder=self.identity, term=claim.term + 1, beat=claim.beat)
        mine = _Claimed(self.client, seen, COORDINATOR, claim)
        if await mine.write(after):
            self.say("This process coordinates the migration." + self._instead_of(claim))
            self._office = asyncio.create_task(self._hold_office(mine))

    async def _hold_office(self, mine: _Claimed) -> bool:
        """Run the migration, and show meanwhile that this process lives."""
        # If it has changed since it was read, the first write of the run fails, and it begins anew.
        run = asyncio.ensure_future(self.coordinate(mine.migration.model_copy(deep=True)))
        try:
            while not run.done():
                await asyncio.wait({run}, timeout=_until_beat())
                if not await self._beat(mine, mine.state.model_copy(update={"beat": mine.state.beat + 1})):
                    self.say("Another process coordinates the migration now.")
                    return False
            return run.result()
        except (ApiError, Unreachable) as error:
            self._bear(error)
            return False
        finally:
            try:
                await end(run)
            finally:
                await mine.release(mine.state)

    async def _beat(self, mine: _Claimed, after: MigrationClaim) -> bool:
        """Write a claim that is still ours. False if it is not; without an answer, it may be.

        Raises ApiError for a missing right: to write on would be of no use to anybody.
        """
        try:
            return await mine.write(after)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and lacks_right(error.code, error.message):
                raise
            _log.warning("The state of the parts could not be written: %s", error)
            return True

    async def _seek_work(self, seen: StorageMigration) -> None:
        work, parts = pass_at_work(seen), _shards(seen).parts
        free = [self._is_free(str(each), part) for each, part in enumerate(parts)]
        index = None if work is None else next_part(parts, work, self.shard, free)
        if work is None or index is None:
            return
        mine = _Claimed(self.client, seen, f"parts/{index}", parts[index])
        part = begun(parts[index], work, self.identity)
        if await mine.write(part):
            self.say(f"Works on part {index} of {len(parts)}." + self._instead_of(parts[index]))
            self._doing = self._due(seen)
            self._work = asyncio.create_task(self._work_on(mine, part, (index, len(parts))))

    def _is_free(self, key: str, claim: MigrationClaim) -> bool:
        """Whether to take it; also if it is ours already, which an answer that was lost did not say."""
        mine = claim.holder == self.identity
        return self._liveness.is_free(key, claim, time.monotonic()) or mine

    def _instead_of(self, claim: MigrationClaim) -> str:
        if claim.holder in ("", self.identity):
            return ""
        return f" Its last holder, {claim.holder}, shows no sign of life."

    def _due(self, seen: StorageMigration) -> tuple[str | None, MigrationLimits]:
        """The pass to work on, and how fast."""
        return pass_at_work(seen), self.request.applied_to(seen.spec).limits

    async def _work_on(self, mine: _Claimed, part: MigrationPart, which: tuple[int, int]) -> None:
        """Process one part in the current pass, and record how far it got, however it ends."""
        migration = mine.migration.model_copy(
            update={"spec": self.request.applied_to(mine.migration.spec)}, deep=True
        )
        sweep = prepare_sweep(
            self.client,
            migration,
            _target(migration),
            "Rewrite",
            lambda outcome, code, seconds: None,
            served=(),
            part=which,
        )
        ended: dict[str, object] = {}
        beats = count(part.beat + 1)
        running = asyncio.ensure_future(sweep.run(part.continue_token))
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=_until_beat())
                now = _advanced(part, sweep, next(beats))
                if not running.done() and not await self._beat(mine, now):
                    raise _Lost
            running.result()
            ended = {"done": True, "continue_token": None, "scanned": part.scanned + sweep.tally.scanned}
            self._troubles = 0
            rewritten = part.rewritten + sweep.tally.rewritten
            self.say(f"Part {which[0]} of {which[1]} is done: {rewritten:,} objects rewritten.")
        except _Lost:
            self.say(f"Another process works on part {which[0]} now.")
        except (Interrupted, ApiError, Unreachable) as error:
            seconds = backoff(self._troubles, 1.0, 60.0)
            self._troubles, self._not_before = self._troubles + 1, time.monotonic() + seconds
            ended = {"trouble": bounded(str(error), LINE_BYTES)}
            if isinstance(error, ApiError):
                # A token that the server does not take costs a list from the beginning.
                ended["continue_token"] = None
            self.say(f"Part {which[0]} was given up: {error}. Trying again in {seconds:.0f} s.")
        finally:
            try:
                await end(running)
            finally:
                # Only now, and not with the last beat: objects are written until here.
                last = _advanced(part, sweep, next(beats)).model_copy(update=ended)
                if last.trouble and not last.continue_token:
                    last = last.model_copy(update={"scanned": 0, "refused": 0, "examples": []})
                # Else a part that is done is listed again by whoever takes this process for dead.
                await mine.release(last, DEAD_SECONDS if last.done else _LAST_SAVE_SECONDS)


def _advanced(part: MigrationPart, sweep: Sweep, beat: int) -> MigrationPart:
    """The part, as it was begun, with what the pass has done since."""
    token, behind = sweep.checkpoint()
    known = {(each.namespace, each.name) for each in part.examples}
    fresh = [each for each in sweep.refused if (each.namespace, each.name) not in known]
    again = len(sweep.refused) - len(fresh)
    return part.model_copy(
        update={
            "beat": beat,
            "continue_token": token,
            "scanned": part.scanned + behind,
            "rewritten": part.rewritten + sweep.tally.rewritten,
            "gone": part.gone + sweep.tally.gone,
            "refused": part.refused + sweep.tally.refused_count - again,
            "examples": examples(part.examples, fresh),
            "total": part.scanned + sweep.tally.total,
            "concurrency": sweep.concurrency,
        }
    )


def _until_beat() -> float:
    return until_beat(random.random())


def _shards(migration: StorageMigration) -> MigrationShards:
    if migration.status.shards is None:
        raise ValueError("the migration is not divided into parts")
    return migration.status.shards


def _target(migration: StorageMigration) -> MigrationTarget:
    if migration.status.target is None:
        raise ValueError("the migration has no target yet")
    return migration.status.target
