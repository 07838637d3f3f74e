"""A migration without the operator, on a laptop or in a Job: the same run, with its own status object.

That object records the progress, so a process that was killed continues when it is started again. If someone
else already migrates the resource, their migration is followed instead.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from crdkeeper.api.meta import API_VERSION, CLI, OPERATOR, find_condition
from crdkeeper.api.storagemigration import RefusedObject, StorageMigration, StorageMigrationStatus
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.definitions import get_definition
from crdkeeper.cluster.resources.discovery import discover, list_resources
from crdkeeper.cluster.resources.kinds import (
    OfAnotherRelease,
    create_migration,
    get_migration,
    list_migrations_of,
)
from crdkeeper.cluster.resources.shards import NotInstalled
from crdkeeper.cluster.resources.statusrecord import StatusRecord
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, may_pass
from crdkeeper.core.migration.choice import Create, Follow, Over, Resume, Unneeded
from crdkeeper.core.migration.protocol import Hold
from crdkeeper.core.migration.record import Announcement
from crdkeeper.core.migration.request import Request
from crdkeeper.core.migration.sharding import Shard
from crdkeeper.core.resourcenames import suggest
from crdkeeper.operations.migration.following import given_up, nothing_due, silence
from crdkeeper.operations.migration.rights import (
    LIST_MIGRATIONS,
    rights_to_look,
    rights_to_record,
    rights_to_rewrite,
)
from crdkeeper.operations.migration.run import MigrationRun
from crdkeeper.operations.migration.sharing import Sharing
from crdkeeper.operations.rights import check_rights, explain

_POLL_SECONDS = 2.0
_NO_NEWS_SECONDS = 60.0


class UnknownResource(Exception):
    """The resource does not exist."""


class _Turn(asyncio.Semaphore):
    """One run's use of shared slots."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        super().__init__()
        self._slots = slots
        self.held = False
        """Whether the run writes."""

    def locked(self) -> bool:
        return self._slots.locked()

    async def acquire(self) -> Literal[True]:
        await self._slots.acquire()
        self.held = True
        return True

    def release(self) -> None:
        self.held = False
        self._slots.release()


@dataclass(slots=True)
class Standalone:
    """One request. `watch` gets the migration whenever it has progressed, `say` gets other messages.

    Several requests may share `slots`, which bounds how many of them write at the same time. The fields below
    show the state, also after an interruption.
    """

    client: Client
    request: Request
    watch: Callable[[StorageMigration], None]
    say: Callable[[str], None]
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    apart: float = 0.0
    """Seconds that pass at least between two looks at the cluster while there is nothing to write."""
    identity: str = ""
    """Of this process, if it is one of several that share a migration."""
    existing: Sequence[StorageMigration] | None = None
    """All StorageMigrations, if they were listed just before; otherwise they are listed."""
    unread: set[str] = field(default_factory=set)
    """The names of those that another release has written, and that cannot be read: they are left alone."""
    migration: StorageMigration | None = field(default=None, init=False)
    """The latest state."""
    refused: Sequence[RefusedObject] = field(default=(), init=False)
    """The refused objects by name; if the run is ours, possibly more than the status lists."""
    saved: StorageMigrationStatus | None = field(default=None, init=False)
    """The latest status that is known to be stored; None if the migration is not an object in the cluster."""
    followed: bool = field(default=False, init=False)
    """Whether someone else runs it."""
    gone: bool = field(default=False, init=False)
    """Whether the object was deleted in the meantime."""
    _needed: list[Right] = field(default_factory=list, init=False)
    """The rights that what is done at present needs."""
    _taken_over: int = field(default=0, init=False)
    """How often another process stored nothing for so long that this one went on in its place."""

    async def run(self) -> None:
        """Run or follow the migration to its end, successful or not.

        Raises UnknownResource, NotInstalled, NotPermitted, ApiError or Unreachable; OfAnotherRelease if its
        object cannot be read any more.
        """
        try:
            await self._run()
        except ApiError as error:
            await explain(self.client, error, self._needed)
            raise

    async def _run(self) -> None:
        while True:
            self._needed = rights_to_look(self.request.resource)
            definition = await self._resolve()
            if self.request.dry_run:
                await self._review(definition)
                await self._carry_out(self.request.unstored())
                return
            self._needed.append(LIST_MIGRATIONS)
            # Listed before, it may be outdated, which a conflict shows: then it is listed again.
            existing = self.existing
            if existing is None:
                existing = await list_migrations_of(self.client, unread=self.unread)
            self.existing = None
            choice = self.request.choice(definition, existing or (), self.unread)
            if existing is None and not isinstance(choice, Unneeded):
                if self.request.shard is not None:
                    raise NotInstalled("--shards needs the kind StorageMigration, which is not installed.")
                await self._review(definition)
                self.say(
                    "The kind StorageMigration is not installed, so nothing can be saved: "
                    "after an interruption, the migration starts over."
                )
                await self._carry_out(self.request.unstored())
                return
            match choice:
                case Unneeded():
                    theirs = await self._carry_out(self.request.unstored())
                case Follow(migration):
                    theirs = migration
                case Over(migration):
                    self.say(f"StorageMigration {migration.metadata.name} is over.")
                    self.migration, self.saved = migration, migration.status
                    return
                case Resume(migration):
                    await self._review(definition, migration.metadata.name)
                    self.say(f"Resuming StorageMigration {migration.metadata.name}.")
                    theirs = await self._go_on(migration)
                case Create(name):
                    await self._review(definition, name, new=True)
                    created = await self._create(name)
                    if created is None:
                        continue  # the name was taken in the meantime
                    self.say(f"Created StorageMigration {name}.")
                    theirs = await self._go_on(created)
            if theirs is None:
                return
            followed = await self._follow(theirs)
            if followed is not None and not self._wants_more(followed):
                return

    async def _review(
        self, definition: DefinitionFacts | None, record: str | None = None, *, new: bool = False
    ) -> None:
        """Raises NotPermitted if the run would stop at a missing right. `record` keeps its state."""
        self._needed += rights_to_rewrite(self.request.spec(), custom=definition is not None)
        if record is not None:
            self._needed += rights_to_record(record, new=new)
        await check_rights(self.client, self._needed)

    async def _share(self, migration: StorageMigration, shard: Shard) -> None:
        """Run the migration together with other processes."""

        def saw(current: StorageMigration) -> None:
            self.migration, self.saved = current, current.status
            self.refused = current.status.quarantine.objects
            self.watch(current)

        async def coordinate(current: StorageMigration) -> bool:
            record = StatusRecord(self.client, current)
            return await self._carry_out(self.request.resumed(current), record, sharing) is None

        sharing = Sharing(
            self.client, self.request, shard, self.identity, saw, self.say, coordinate, migration
        )
        await sharing.run()
        self.gone = sharing.gone

    async def _go_on(self, migration: StorageMigration) -> StorageMigration | None:
        if self.request.shard is not None:
            await self._share(migration, self.request.shard)
            return None
        record = StatusRecord(self.client, migration)
        return await self._carry_out(self.request.resumed(migration), record)

    async def _resolve(self) -> DefinitionFacts | None:
        """The CRD, or None if the resource does not come from a CRD."""
        resource, definition, forbidden = self.request.resource, None, None
        try:
            definition = await get_definition(self.client, str(resource)) if resource.group else None
        except ApiError as error:
            # An account with access to a single CRD gets this answer for any other name, even a wrong one.
            if error.code != 403:
                raise
            forbidden = error
        if definition is not None:
            return definition
        if await discover(self.client, resource) is None:
            meant = suggest(str(resource), await list_resources(self.client))
            raise UnknownResource(f"no resource {resource}" + (f"; did you mean {meant}?" if meant else ""))
        if forbidden is not None:
            raise forbidden
        return None

    async def _create(self, name: str) -> StorageMigration | None:
        body = {
            "apiVersion": API_VERSION,
            "kind": StorageMigration.model_fields["kind"].default,
            "metadata": {"name": name},
            "spec": self.request.spec().to_object(),
        }
        try:
            return await create_migration(self.client, body)
        except ApiError as error:
            if error.code == 409:
                return None
            raise

    async def _carry_out(
        self,
        migration: StorageMigration,
        record: StatusRecord | None = None,
        sharing: Sharing | None = None,
    ) -> StorageMigration | None:
        """Run it, recorded in the cluster if possible. Returns it if someone else took it over."""
        self.migration, self.followed = migration, False
        self.saved = migration.status if record is not None else None
        waits = True

        async def save(current: StorageMigration) -> bool:
            self.refused = run.refused
            if sharing is not None:  # The parts are written by others.
                current.status.shards = sharing.migration.status.shards or current.status.shards
            self.watch(current)
            if record is None:
                return True
            status = current.status
            try:
                if not await record.save(current):
                    return False
            except ApiError as error:
                # The run would try again without end.
                await explain(self.client, error, self._needed)
                raise
            self.saved = status
            return True

        def patience(hold: Hold) -> bool:
            nonlocal waits
            waits = not hold.lasting
            return waits

        run = MigrationRun(
            self.client,
            migration,
            save=save,
            announce=_announce,
            observer=lambda outcome, code, seconds: None,
            slots=(turn := _Turn(self.slots)),
            patience=patience,
            pause=lambda seconds: max(seconds, self.apart),
        )
        heeding = asyncio.create_task(self._heed(run, turn)) if record is not None else None
        try:
            await run.run()
        finally:
            if heeding is not None:
                heeding.cancel()
        self.refused = run.refused
        if not waits:
            await check_rights(self.client, self._needed)  # one may have been withdrawn
        if record is None or migration.status.completion_time is not None or not waits:
            return None
        found = await get_migration(self.client, migration.metadata.name)
        self.gone = found is None or found.metadata.uid != migration.metadata.uid
        return None if self.gone else found

    async def _heed(self, run: MigrationRun, turn: "_Turn") -> None:
        """Pass the changes that people make to the object's spec, such as `suspend`, to the run.

        Only one of many runs writes, and is looked at often: to stop it is urgent.
        """
        name, uid = run.migration.metadata.name, run.migration.metadata.uid
        limit = run.migration.spec.retry.limit
        waited = 0.0
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS
            if waited < self.apart and not turn.held:
                continue
            waited = 0.0
            try:
                seen = await get_migration(self.client, name)
            except (ApiError, Unreachable, OfAnotherRelease):
                continue  # the run meets the same problem, and reports it
            if seen is not None and seen.metadata.uid == uid:
                seen.spec = self.request.applied_to(seen.spec)
                seen.spec.retry.limit = limit
                run.update(seen)

    async def _follow(self, migration: StorageMigration) -> StorageMigration | None:
        """Its state at the end. None if nobody seems to run it any more, so that this process may.

        What the last process of a command sent before it died can arrive after this one has read the object,
        and looks like the work of one that lives.
        """
        name = migration.metadata.name
        who = {OPERATOR: "The operator", CLI: "Another process"}.get(
            manager := migration.spec.managed_by, manager
        )
        # One that nobody has begun may be waiting for an operator that does not run.
        waits = manager == OPERATOR and not migration.status.conditions
        does = "has not begun" if waits else "is already running"
        self.say(f"{who} {does} StorageMigration {name}: following it.")
        self.migration, self.saved, self.followed = migration, migration.status, True
        clock = asyncio.get_running_loop().time
        moved_at, reported, rested = clock(), False, False
        while True:
            self.refused = migration.status.quarantine.objects
            self.watch(migration)
            limit = self.request.spec().retry.limit
            if migration.status.completion_time is not None or given_up(migration, limit):
                return migration
            await asyncio.sleep(max(_POLL_SECONDS, self.apart))
            try:
                seen = await get_migration(self.client, name)
            except (ApiError, Unreachable) as error:
                if not may_pass(error):
                    raise
                self.say(f"The API server does not respond: {error}")
                moved_at = clock()  # whoever runs it cannot store anything either
                continue
            if seen is None or seen.metadata.uid != migration.metadata.uid:
                self.gone = True
                return migration
            moved = seen.metadata.resource_version != migration.metadata.resource_version
            rests = nothing_due(seen, self.client.now())
            if moved or rests or rested:  # what was not due at the last look may have come due just now
                moved_at = clock()
            rested = rests
            # One that has many resources looks at each as rarely as this process does.
            silent, most = clock() - moved_at, max(silence(self._taken_over), 3 * self.apart)
            if manager == CLI and silent > most:
                self.say(f"{name} has not moved for {most:.0f} s: going on in the place of another process.")
                self._taken_over += 1
                return None
            if not reported and silent > _NO_NEWS_SECONDS:
                self.say(f"{name} has not moved for {_NO_NEWS_SECONDS:.0f} s. Does {who.lower()} still run?")
                if manager == OPERATOR:
                    self.say(f"If not, delete StorageMigration {name}, and run the same command again.")
                elif manager == CLI:
                    self.say(f"After {most:.0f} s, this process goes on in its place.")
                reported = True
            self.migration = migration = seen

    def _wants_more(self, followed: StorageMigration) -> bool:
        """Whether someone else's migration has succeeded without a trim, which this request asks for."""
        return succeeded(followed) and self.request.spec().trim and not followed.spec.trim


def succeeded(migration: StorageMigration) -> bool:
    """Whether a migration has completed successfully."""
    found = find_condition(migration.status.conditions, "Succeeded")
    return migration.status.completion_time is not None and found is not None and found.status == "True"


async def _announce(migration: StorageMigration, changes: Sequence[Announcement]) -> None:
    """Send no Events: users of a command see its output, and a Job's account need not create Events."""
