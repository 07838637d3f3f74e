"""A pass that other processes carry out, part by part: it watches them until all parts are done.

For the run of the coordinator, it has the same form as a pass over all objects.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from crdkeeper.api.storagemigration import MigrationLimits, MigrationShards, RefusedObject, StorageMigration
from crdkeeper.cluster.resources.kinds import get_migration
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.migration.counts import Baseline, SweepTally
from crdkeeper.core.migration.protocol import SweepType
from crdkeeper.core.migration.sharding import name_of_pass, stopped_by, summed
from crdkeeper.operations.migration.sweep import RESOURCE_VERSIONS_RESET, Interrupted, Sweep

_LOOK_SECONDS = 1.0


@dataclass(slots=True)
class SharedPass:
    """The pass `work` of a migration, whose parts had these `terms` when the coordinator began it."""

    client: Client
    migration: StorageMigration
    work: str
    type: Literal["Rewrite"] = field(default="Rewrite", init=False)
    limits: MigrationLimits = field(init=False)
    tally: SweepTally = field(default_factory=SweepTally, init=False)
    concurrency: int = field(default=0, init=False)
    advanced: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Never set: the parts save what they have done."""

    def __post_init__(self) -> None:
        self.limits = self.migration.spec.limits

    @property
    def refused(self) -> list[RefusedObject]:
        """Those refused objects that the parts name."""
        return list(self.tally.refused)

    def checkpoint(self) -> tuple[None, int]:
        """The parts have their own tokens."""
        return None, self.tally.scanned

    async def run(self, token: str | None) -> None:
        """Return when all parts are done. Raises Interrupted, OfAnotherRelease, ApiError or Unreachable."""
        terms = [each.term for each in (await self._look()).parts]
        while True:
            shards = await self._look()
            if len(terms) != len(shards.parts):
                raise Interrupted("PartsChanged", "The number of parts has changed.")
            self.tally, done = summed(shards.parts, self.work)
            self.concurrency = sum(each.concurrency for each in shards.parts if each.holder)
            if done:
                return
            if why := stopped_by(shards.parts, self.work, terms):
                reason, _, message = why.partition(": ")
                if reason == RESOURCE_VERSIONS_RESET:
                    raise Interrupted(reason, message)
                raise Interrupted("PartsStopped", f"All parts that are left were given up. One said: {why}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self) -> MigrationShards:
        found = await get_migration(self.client, self.migration.metadata.name)
        if found is None or found.status.shards is None:
            raise Interrupted("PartsChanged", "The migration is not divided into parts any more.")
        return found.status.shards


def shared_pass(
    client: Client, migration: StorageMigration, type_: SweepType
) -> tuple[SharedPass, Baseline] | None:
    """The pass that is due, if several processes carry it out; and from what its counts go on."""
    status = migration.status
    if status.shards is None or type_ != "Rewrite":
        return None
    return SharedPass(client, migration, name_of_pass(status)), Baseline.of_shared(status)


Pass = Sweep | SharedPass
"""A pass over all objects, by this process or by several."""
